"""One table of every printed number: each line has a verdict, and RESULTS.md begins with it."""

from pathlib import Path

import pytest
from reproduce.variational_report import PUBLISHED_TABLE_1

from reproduce import final_table, published


def test_every_line_has_a_verdict_and_the_page_begins_with_the_table(shared_data):
    rows = [line for line in final_table.lines() if line.startswith("| 00")]
    assert 100 <= len(rows) <= 150
    for row in rows:
        assert row.count("|") == 7
        assert row.split("|")[6].split()[0].rstrip(":;") in ("reproduced", "explained", "impossible"), row
    page = (final_table.RESULTS.parent / "RESULTS.md").read_text(encoding="utf8")
    assert page.index("| paper | number | printed | ours | distance | verdict |") < 1000
    assert len(page) < 40_000
    assert "\n".join(final_table.lines()) in page  # else: `python -m reproduce.final_table --write`


def test_a_distance_beyond_chance_without_a_reason_stays_open():
    assert final_table.of_distance(2.9)[1] == "reproduced"
    assert final_table.of_distance(-3.1)[1].startswith("OPEN")
    assert final_table.of_distance(-3.1, "other data")[1] == "explained: other data"


def test_a_folder_named_relatively_is_the_folder_of_results(shared_data, monkeypatch):
    monkeypatch.chdir(final_table.RESULTS.parents[1])
    assert final_table.lines(Path("reproduce/results")) == final_table.lines()


def test_a_printed_fit_lies_between_two_roundings():
    assert final_table._between("2.7752, 0.0478", ["2.7702, 0.0477", "2.6243, 0.0447"])  # within 1 % of the first
    assert final_table._between("1.1823, 0.1081", ["1.1948, 0.1097", "1.1400, 0.1026"])
    assert not final_table._between("2.7752, 0.0606", ["2.7702, 0.0477", "2.6243, 0.0447"])


def test_the_authors_cases_give_their_table_2_to_all_digits(shared_data):
    found = published.table_2()
    if not found:
        pytest.skip("the authors' files are not here")
    printed = {"over, .4x": (0.1281, -0.0007), "under, 4x": (-0.0003, 0.1256), "both": (0.0620, 0.0629)}
    for world, parts in printed.items():
        assert [round(mean, 4) for mean, _ in found[world][:2]] == pytest.approx(parts, abs=1e-9)


def test_the_authors_cases_give_their_table_1_to_all_digits(shared_data):
    found = published.table_1()
    if not found:
        pytest.skip("the authors' files are not here")
    for name, printed in PUBLISHED_TABLE_1.items():
        assert tuple(round(share, 1) for share in found[name]) == printed, name
