"""A report in words: facts, answers, tables, escapes, in every form."""

import json
from dataclasses import replace

import pytest

import calibrant as cal
from calibrant.reporting.contents import Contents, Facts, GroupRow, Groups, Omitted, Value, Verdict
from calibrant.reporting.model import Finding, Report
from calibrant.reporting.text import facts
from tests.reporting.samples import CALIBRATED, SPREAD

#: Words of the first edition that readers stumbled over.
FORBIDDEN = (
    "stated", "beside it", "can be shown", "bring it to", "if perfect", "averaged smoothers", "came out the other way",
    "error left", "MultiScale", "EqualMass", "EqualWidth", "PaperBins", "_debias", "_sweep", "smECE", "C_v", "z^2",
    "p = 0.000", "−0.0 ", "None", "nan",
)  # fmt: skip


@pytest.mark.no_cover
def test_all_forms_carry_the_verdict_and_escape_what_users_named(over):
    sentence = over.verdict.sentence
    assert sentence.split()[-1] in str(over)
    assert json.loads(over.to_json())["verdict"]["sentence"] == sentence
    assert sentence in over.to_markdown()
    assert "&lt;script>" in over.to_markdown()
    assert 'a "quoted" \\| group' in over.to_markdown()
    for html in (over.to_html(), over._repr_html_()):
        assert "<script>alert(1)" not in html
        assert "<b>confident</b>" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


@pytest.mark.no_cover
@pytest.mark.parametrize("data", [CALIBRATED, SPREAD], ids=["binary", "regression"])
def test_no_word_of_the_first_edition_and_no_python_reaches_a_reader(over, data):
    for report in (over, cal.report(data)):
        for text in (str(report), report.to_markdown()):
            assert [word for word in FORBIDDEN if word in text] == []


def test_the_terminal_shows_verdict_answers_findings_and_tables(over):
    text = str(over)
    order = [
        "Not calibrated",
        "How sure:",
        "What it means:",
        "What to do:",
        "Findings",
        "In numbers",
        "Estimates",
        "Tests",
    ]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert all(len(line) <= 100 for line in text.split("In numbers")[0].splitlines())
    assert not any(line.lstrip().startswith("%") for line in text.splitlines())


def test_control_characters_reach_neither_a_terminal_nor_a_page():
    evil = "\x1b]0;title\x07\x1b[31m\u202ered"
    row = GroupRow(evil, 9, Value(1.2), Value(0.1), "not flagged", 0.5, flagged=False, observed=3, expected=4)
    found = Report(
        evil,
        Contents(
            "binary",
            Facts(9, model=evil, source=evil),
            Verdict("B5", "not significant", "note", None, f"Worst is {evil}."),
            (),
            (Groups(evil, (row,), omitted=evil),),
            (Omitted(evil, evil),),
        ),
        findings=(Finding("CAL202", "note", f"Group {evil} is off."),),
    )
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "x1b" in text


def test_facts_that_are_not_known_are_left_out(over):
    assert facts(over.contents).startswith("3,000 rows · ")
    bare = replace(over.contents, facts=Facts(5))
    assert facts(bare) == "5 rows"
    whole = Facts(5, "payment", "fraud", 1, 0.2, 0.3, 4.0, 3, "2025", "gbm", "file")
    assert facts(replace(bare, facts=whole)) == (
        "5 payments · 1 fraud (20.0 %) · mean prediction 30.0 % · effective number 4 · 3 groups of dependent "
        "rows · 2025 "
        "· gbm · file"
    )
    several = replace(bare, kind="classes", facts=Facts(5, classes=3, base_rate=0.5, mean_prediction=0.6))
    assert facts(several) == "5 rows · 3 classes · accuracy 50.0 % · mean confidence 60.0 %"
    unlabeled = replace(bare, kind="unlabeled", facts=Facts(5, events=2, base_rate=0.5))
    assert facts(unlabeled) == "5 rows · 2 labelled positives · assumed share of positives 50.0 %"
