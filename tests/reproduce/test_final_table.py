"""One table of every printed number: each line has a verdict, and RESULTS.md begins with it."""

import pytest
from reproduce.variational_report import PUBLISHED_TABLE_1

from reproduce import final_table, published


def test_every_line_has_a_verdict_and_the_page_begins_with_the_table(shared_data):
    rows = [line for line in final_table.lines() if line.startswith("| 00")]
    assert 100 <= len(rows) <= 150
    for row in rows:
        assert row.count("|") == 7
        assert row.split("|")[6].split()[0].rstrip(":;") in ("reproduced", "explained", "conjecture", "impossible"), row
    page = (final_table.RESULTS.parent / "RESULTS.md").read_text(encoding="utf8")
    assert page.index("| paper | number | printed | ours | distance | verdict |") < 1000
    assert len(page) < 40_000


def test_a_distance_beyond_chance_without_a_reason_stays_open():
    assert final_table.of_distance(2.9)[1] == "reproduced"
    assert final_table.of_distance(-3.1)[1].startswith("OPEN")
    assert final_table.of_distance(-3.1, "other data")[1] == "explained: other data"


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
