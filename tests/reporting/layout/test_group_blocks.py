"""Periods, groups and classes."""

from dataclasses import replace

from calibrant.reporting.layout.group_blocks import SHOWN_GROUPS, classes_block, groups_block, over_time_block
from tests.reporting import hand_made


def one(block):
    (found,) = block
    return found


def test_all_flagged_groups_are_shown_and_the_others_folded():
    rows = [(f"g{k:02}", 0.5, 300 + k, "too high" if k < 30 else "not flagged") for k in range(60)]
    block = one(groups_block(hand_made.groups(rows), hand_made.binary()))
    shown, folded = block.body.split("30 more countries, not flagged")
    assert all(f">g{k:02}<" in shown for k in range(30))
    assert all(f">g{k:02}<" in folded for k in range(30, 60))
    assert "30 of 60" in block.lead


def test_of_groups_not_flagged_the_largest_are_shown():
    rows = [(f"g{k:02}", 1.0, 300 + k, "not flagged") for k in range(25)]
    block = one(groups_block(hand_made.groups(rows), hand_made.binary()))
    shown, _ = block.body.split("more countries, not flagged")
    assert sum(f">g{k:02}<" in shown for k in range(25)) == SHOWN_GROUPS
    assert ">g24<" in shown


def test_what_one_map_leaves_and_what_was_left_out_is_said():
    block = one(groups_block(replace(hand_made.groups(), omitted="2 groups have no rows."), hand_made.binary()))
    assert "After the best map for all rows, Brazil remains flagged." in block.body
    assert "2 groups have no rows." in block.body
    unknown = replace(hand_made.groups(), rows=tuple(replace(r, flagged_after=None) for r in hand_made.groups().rows))
    assert "best map" not in one(groups_block(unknown, hand_made.binary())).body
    healed = replace(hand_made.groups(), rows=tuple(replace(r, flagged_after=False) for r in hand_made.groups().rows))
    assert "no country remains flagged" in one(groups_block(healed, hand_made.binary())).body


def test_time_is_named_by_its_column():
    assert "by month" in one(over_time_block(hand_made.over_time(), hand_made.binary())).lead
    left = replace(hand_made.over_time(), omitted="3 rows have no date.")
    assert "3 rows have no date." in one(over_time_block(left, hand_made.binary())).body
    assert "standardised error" in one(over_time_block(hand_made.over_time(), hand_made.regression())).lead


def test_classes_have_totals_and_a_strip():
    totals, strip = classes_block(hand_made.classes(), hand_made.multiclass())
    assert "Refunds" in totals.title
    assert "55 cells" in strip.lead
    some, _ = classes_block(replace(hand_made.classes(), shown=3), hand_made.multiclass())
    assert "3 of 7 classes, largest deviations first" in some.lead
    assert "Refunds" not in some.body.split("<details")[0]
    assert len(list(classes_block(replace(hand_made.classes(), ranges=(), cells=()), hand_made.multiclass()))) == 1
