"""Sections become blocks in their order, with anchors of their own; a notebook shows their figures."""

import re
from dataclasses import replace

import pytest

from calibrant.reporting.contents import MapRow, Omitted
from calibrant.reporting.layout.blocks import (
    bin_counts_block,
    blocks,
    classes_block,
    groups_block,
    omitted_block,
    over_time_block,
    recalibration_block,
    reliability_block,
    shares_block,
    spread_block,
)
from calibrant.reporting.text import SHOWN
from calibrant.results.estimate import Value
from tests.reporting import hand_made


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["binary", "multiclass", "regression", "unlabeled", "hostile"])
def test_every_kind_of_report_has_blocks_with_figures_and_their_text(name):
    contents = getattr(hand_made, name)()
    found = blocks(contents)
    assert len({block.anchor for block in found}) == len(found)
    for block in found:
        html = block.html()
        assert html.count("<figure") == html.count("Figure as text")
        assert "<img" not in html
        assert " style=" not in html
        ids = re.findall(r' id="([^"]+)"', html)
        assert len(ids) == len(set(ids))


def test_two_columns_of_groups_have_two_anchors():
    contents = hand_made.binary(sections=(hand_made.groups(), hand_made.groups(column="device")))
    assert [block.anchor for block in blocks(contents)] == ["groups", "groups-2"]


def test_what_is_left_out_is_said_with_its_reason():
    contents = hand_made.binary(omitted=(Omitted("Recalibration", "needs 100 rows <"),))
    assert "needs 100 rows &lt;" in omitted_block(contents).body
    assert omitted_block(hand_made.binary()) is None


def group_blocks_one(block):
    (found,) = block
    return found


def test_all_flagged_groups_are_shown_and_the_others_folded():
    rows = [(f"g{k:02}", 0.5, 300 + k, "too high" if k < 30 else "not flagged") for k in range(60)]
    block = group_blocks_one(groups_block(hand_made.groups(rows), hand_made.binary()))
    shown, folded = block.body.split("30 more countries, not flagged")
    assert all(f">g{k:02}<" in shown for k in range(30))
    assert all(f">g{k:02}<" in folded for k in range(30, 60))
    assert "30 of 60" in block.lead


def test_of_groups_not_flagged_the_largest_are_shown():
    rows = [(f"g{k:02}", 1.0, 300 + k, "not flagged") for k in range(25)]
    block = group_blocks_one(groups_block(hand_made.groups(rows), hand_made.binary()))
    shown, _ = block.body.split("more countries, not flagged")
    assert sum(f">g{k:02}<" in shown for k in range(25)) == SHOWN
    assert ">g24<" in shown


def test_what_one_map_leaves_and_what_was_left_out_is_said():
    block = group_blocks_one(
        groups_block(replace(hand_made.groups(), omitted="2 groups have no rows."), hand_made.binary())
    )
    assert "After the best map for all rows, Brazil remains flagged." in block.body
    assert "2 groups have no rows." in block.body
    unknown = replace(hand_made.groups(), rows=tuple(replace(r, flagged_after=None) for r in hand_made.groups().rows))
    assert "best map" not in group_blocks_one(groups_block(unknown, hand_made.binary())).body
    healed = replace(hand_made.groups(), rows=tuple(replace(r, flagged_after=False) for r in hand_made.groups().rows))
    assert "no country remains flagged" in group_blocks_one(groups_block(healed, hand_made.binary())).body


def test_time_is_named_by_its_column():
    assert "by month" in group_blocks_one(over_time_block(hand_made.over_time(), hand_made.binary())).lead
    left = replace(hand_made.over_time(), omitted="3 rows have no date.")
    assert "3 rows have no date." in group_blocks_one(over_time_block(left, hand_made.binary())).body
    assert "standardised error" in group_blocks_one(over_time_block(hand_made.over_time(), hand_made.regression())).lead


def test_classes_have_totals_and_a_strip():
    totals, strip = classes_block(hand_made.classes(), hand_made.multiclass())
    assert "Refunds" in totals.title
    assert "55 cells" in strip.lead
    some, _ = classes_block(replace(hand_made.classes(), shown=3), hand_made.multiclass())
    assert "3 of 7 classes: flagged ones first" in some.lead
    assert "Refunds" not in some.body.split("<details")[0]
    assert len(list(classes_block(replace(hand_made.classes(), ranges=(), cells=()), hand_made.multiclass()))) == 1


def one(block):
    (found,) = block
    return found


def test_the_diagram_has_a_switch_between_two_axes_and_starts_on_the_section_s():
    block = one(reliability_block(hand_made.reliability(), hand_made.binary()))
    assert block.body.count('type="radio"') == 2
    assert 'value="logit" checked' in block.body
    assert "Where the error sits" in block.body
    assert "At the decision threshold of 10\u00a0%" in block.body
    linear = one(reliability_block(replace(hand_made.reliability(), axis="linear"), hand_made.binary()))
    assert 'value="linear" checked' in linear.body


def test_one_axis_needs_no_switch():
    section = hand_made.reliability(threshold=False)
    only = replace(section, bins={"linear": section.bins["linear"]}, axis="linear", ranges=())
    block = one(reliability_block(only, hand_made.binary()))
    assert "radio" not in block.body
    assert "Where the error sits" not in block.body
    assert "threshold" not in block.body


def test_titles_follow_the_verdict():
    quiet = hand_made.binary(verdict=replace(hand_made.BINARY_VERDICT, state="not significant"))
    assert "within chance" in one(reliability_block(hand_made.reliability(), quiet)).title


def test_confidence_is_called_so():
    contents = hand_made.multiclass()
    block = one(reliability_block(contents.sections[0], contents))
    assert block.name == "Top label"
    assert "Over-confident" in block.body


def test_recalibration_shows_curve_maps_and_code():
    block = one(recalibration_block(hand_made.recalibration(), hand_made.binary()))
    assert "Before and after Platt scaling" in block.body
    assert block.body.count("<pre") == 2
    assert "the remaining error is at most 0.6 points" in block.body
    assert "Fit on recent rows." in block.body


def test_recalibration_without_curve_code_or_maps():
    bare = replace(hand_made.recalibration(helps=False), after=None, command="", code="", maps=())
    block = one(recalibration_block(bare, hand_made.binary()))
    assert "<pre" not in block.body
    assert "No map could be fitted." in block.body
    remains = MapRow("Platt scaling", 2.0, Value(0.01, 0.006, 0.016), Value(0.07, 0.04, 0.1), "best")
    recent = replace(hand_made.recalibration(), recent=remains)
    assert "an error of 1.0 points (0.6 to 1.6) remains" in one(recalibration_block(recent, hand_made.binary())).body


def test_the_ece_stands_beside_the_calibration_error_where_there_is_one():
    assert "Green" in one(bin_counts_block(hand_made.bin_counts(), hand_made.binary())).lead
    assert "Green" not in one(bin_counts_block(hand_made.bin_counts(), hand_made.binary(numbers=()))).lead


def test_forecasts_have_spread_coverage_and_the_histogram():
    contents = hand_made.regression()
    first, second = spread_block(hand_made.spread(), contents)
    assert first.body.count("<figure") == 2
    assert second.title == "Outcomes fall into the tails too often"


def test_parts_that_are_missing_are_left_out():
    bare = replace(hand_made.spread(), bins=(), pit=())
    (only,) = spread_block(bare, hand_made.regression())
    assert "<figcaption" not in only.body
    assert "Root" not in only.lead
    assert only.title == "90 % intervals hold 82.8 % (81.7 to 83.9 %)"
    assert list(spread_block(replace(bare, coverage=()), hand_made.regression())) == []


def test_shares_say_what_the_data_allow_and_what_they_cannot_show():
    first, second = shares_block(hand_made.shares(), hand_made.unlabeled())
    assert "at most 35.7 %" in first.lead
    assert "No row is known to be negative" in second.body
    bare = replace(hand_made.shares(), implied=(), largest=None)
    assert len(list(shares_block(bare, hand_made.unlabeled()))) == 1


@pytest.mark.parametrize(
    ("contents", "number"),
    [
        (hand_made.binary(), 3),
        (hand_made.multiclass(), 2),
        (hand_made.regression(), 2),
        (hand_made.unlabeled(), 1),
        (hand_made.hostile(), 3),
    ],
)
def test_a_notebook_shows_the_main_figures_of_every_kind_of_report(contents, number):
    found = [block for block in blocks(contents) if block.in_notebook is not None]
    assert len(found) == number
    for block in found:
        assert block.title
        assert "<svg" in block.in_notebook or "<table" in block.in_notebook
        assert "<details" not in block.in_notebook
        assert "<img" not in block.in_notebook


def test_of_many_groups_a_notebook_shows_the_flagged_and_the_largest():
    rows = [(f"g{k:02}", 1.0, 300, "not flagged") for k in range(40)] + [("worst", 0.2, 900, "too high")]
    (block,) = blocks(hand_made.binary(sections=(hand_made.groups(rows),)))
    assert ">worst<" in block.in_notebook
    assert block.in_notebook.count("<tr") == 21
