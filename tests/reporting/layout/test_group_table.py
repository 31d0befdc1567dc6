"""A line per group, flagged ones marked by word, shape and colour."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.layout.group_table import group_table
from tests.reporting import hand_made


def cells(rows, column="country", **options):
    tree = ElementTree.fromstring(group_table(rows, column, **options))
    head = ["".join(cell.itertext()) for cell in tree.iter("th")]
    return head, [["".join(cell.itertext()) for cell in line.iter("td")] for line in tree.find("tbody")]


def test_every_number_stands_in_the_table():
    head, lines = cells(hand_made.groups().rows)
    assert head[0] == "Country"
    assert head[-1] == "Adjusted p"
    assert lines[0][:4] == ["Poland", "1,558", "36", "57"]
    assert lines[0][5:] == ["0.64 (0.46 to 0.89)", "0.8 (0.2 to 1.5)", "too high", "< 0.001"]
    assert lines[3][-2:] == ["not flagged", "0.21"]


def test_groups_that_cannot_be_judged_say_so():
    rows = [replace(row, judged=False, flagged=False) for row in hand_made.groups().rows]
    assert cells(rows)[1][0][-2:] == ["too few to judge", "–"]


def test_forecasts_have_no_counts_of_events():
    spread = hand_made.regression().sections[1]
    head, lines = cells(spread.rows, spread.column, spread=True)
    assert head[:2] == ["Lead time", "Rows"]
    assert "Expected" not in head
    assert len(lines[0]) == len(head)


def test_classes_share_their_rows_so_these_are_not_repeated():
    head, lines = cells(hand_made.classes().rows, "class")
    assert "Rows" not in head
    assert lines[0][0] == "Other"


def test_names_are_escaped_and_long_ones_may_break():
    rows = [replace(row, name=hand_made.HOSTILE * 3) for row in hand_made.groups().rows]
    table = group_table(rows, hand_made.HOSTILE)
    assert "<img" not in table
    assert "short" not in table
