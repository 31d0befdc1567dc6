"""The paper cites what its bibliography has, and quotes numbers as the files of results have them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "paper" / "paper.md").read_text(encoding="utf8")
BODY = TEXT.split("---\n", 2)[2]
#: The rows of the table of results: what was measured, the numbers, and the file that has them.
ROWS = re.findall(r"^\| (.+) \| (.+) \| `(.+\.md)` \|$", BODY, flags=re.M)
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?: %)?"
#: Sections that JOSS asks for.
SECTIONS = (
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "References",
)


def numbers(cell):
    """The numbers of a cell: "111, 55" are two, "2,041" is one."""
    return [part.strip() for part in cell.split(", ")]


def has(source, number):
    """Whether a text has this number, and not only a longer one that contains it."""
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d%]|[.,]\d)", source) is not None


def test_every_citation_is_in_the_bibliography_and_every_entry_is_cited():
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf8"), flags=re.M)
    assert len(entries) == len(set(entries)) > 15
    assert set(re.findall(r"@(\w+)", BODY)) == set(entries)


def test_the_sections_that_the_journal_asks_for_are_there():
    found = re.findall(r"^# (.+)$", BODY, flags=re.M)
    assert [title for title in SECTIONS if title not in found] == []
    assert 750 < len(re.sub(r"^\|.*$", "", BODY, flags=re.M).split()) < 1750  # the length that the journal allows


@pytest.mark.parametrize(("what", "cell", "file"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_the_file_beside_a_result_has_its_numbers(what, cell, file):
    source = (ROOT / file).read_text(encoding="utf8")
    for number in numbers(cell):
        assert re.fullmatch(NUMBER, number), number
        assert has(source, number), (what, number)


def test_results_are_quoted_in_the_table_alone():
    prose = re.sub(r"^\|.*$", "", BODY, flags=re.M)
    assert len(ROWS) == len(re.findall(r"^\|", BODY, flags=re.M)) - 2 > 10  # every line below the head is checked
    assert re.findall(r"\d+\.\d+", prose) == []


@pytest.mark.parametrize(
    ("source", "number", "expected"),
    [
        ("rejects 68 %, of", "68 %", True),
        ("51 expected", "1", False),
        ("| 0.0397 |", "0.039", False),
        ("2,041 cells", "041", False),
        ("105 of 2,041 cells", "2,041", True),
        ("forest -31, ", "-31", True),
    ],
)
def test_a_part_of_a_longer_number_does_not_count(source, number, expected):
    assert has(source, number) is expected
