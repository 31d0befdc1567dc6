"""The diagram with its switch and tables, recalibration with its code, the plain ECE."""

from dataclasses import replace

from calibrant.reporting.contents import MapRow, Value
from calibrant.reporting.layout.probability_blocks import bin_counts_block, recalibration_block, reliability_block
from tests.reporting import hand_made


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
