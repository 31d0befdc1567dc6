"""Square diagrams show every bin and hold no text that is not escaped; ECE by number of bins."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from calibrant.plot.scales import Scale
from calibrant.reporting.contents import Bin, Curve
from calibrant.reporting.drawing.canvas import Box
from calibrant.reporting.drawing.reliability import (
    CONFIDENCE,
    before_after_figure,
    bin_counts_figure,
    bin_hint,
    curve_points,
    diagonal,
    diagram_scale,
    reliability_figure,
    reliability_text,
    reliability_title,
    square,
    write_along_the_diagonal,
)
from calibrant.results.estimate import Value
from tests.reporting import hand_made


@pytest.mark.parametrize("axis", ["log odds", "linear"])
def test_the_diagram_is_square_and_shows_every_bin(axis):
    section = hand_made.reliability()
    figure = reliability_figure(section, hand_made.FACTS, axis, significant=True)
    for svg, width in ((figure.svg_wide, 548), (figure.svg_narrow, 352)):
        tree = ElementTree.fromstring(svg)
        assert float(tree.get("width")) == width
        frame = next(rect for rect in tree.iter("rect") if rect.get("class") == "frame")
        assert frame.get("width") == frame.get("height")
        dots = [c for c in tree.iter("circle") if c.get("class") == "dot"]
        assert len(dots) == len(section.bins[axis])
    assert len(figure.table.rows) == len(section.bins[axis])


def test_dots_are_where_the_numbers_say():
    section = hand_made.reliability()
    tree = ElementTree.fromstring(reliability_figure(section, hand_made.FACTS, "linear", significant=True).svg_wide)
    frame = next(rect for rect in tree.iter("rect") if rect.get("class") == "frame")
    left, top, side = (float(frame.get(name)) for name in ("x", "y", "width"))
    dots = [c for c in tree.iter("circle") if c.get("class") == "dot"]
    for dot, b in zip(dots, section.bins["linear"], strict=True):
        assert float(dot.get("cx")) == pytest.approx(left + side * b.predicted, abs=0.06)
        assert float(dot.get("cy")) == pytest.approx(top + side * (1 - b.observed.value), abs=0.06)


def test_no_bands_no_threshold_no_bins_is_a_figure_still():
    bare = replace(
        hand_made.reliability(threshold=False),
        curve=Curve((0.4,), (0.4,), (0.5,)),
        consistency=None,
        bins={"linear": ()},
        histogram={"linear": ()},
        ranges=(),
        axis="linear",
    )
    svg = reliability_figure(bare, hand_made.FACTS, "linear", significant=False).svg_wide
    assert "nullband" not in svg
    assert "threshold" not in svg
    assert (
        "threshold 10"
        in reliability_figure(hand_made.reliability(), hand_made.FACTS, "linear", significant=True).svg_wide
    )


def test_hints_have_three_lines_in_the_words_of_the_user():
    text = bin_hint(Bin(0.2, 0.35, 498, 75, 0.26, Value(0.151, 0.12, 0.185)), hand_made.FACTS)
    assert text == "Predicted 20 % to 35 %: mean 26 %\nObserved 15 % (12 to 18 %)\n498 payments, 75 frauds"


def test_words_of_users_are_escaped():
    facts = replace(hand_made.FACTS, row=hand_made.HOSTILE, event=hand_made.HOSTILE)
    figure = reliability_figure(hand_made.reliability(), facts, "linear", significant=True)
    assert "<img" not in figure.svg_wide
    assert "&lt;img" in figure.svg_wide


def test_confidence_has_its_own_words():
    figure = reliability_figure(
        hand_made.reliability(), hand_made.FACTS, "linear", significant=True, wording=CONFIDENCE
    )
    assert "Over-confident" in figure.svg_wide
    assert "Too high" not in figure.svg_wide
    assert figure.title.startswith("Confidence")


def test_the_area_is_a_square_at_every_width():
    for width in (352, 548, 1040):
        canvas = square(width, Scale(0.0, 1.0), above=78)
        assert canvas.plot_width == canvas.plot_height
        assert canvas.top == 78


def test_the_diagonal_joins_equal_values():
    canvas = square(500, Scale(0.01, 0.9, "log odds"))
    diagonal(canvas)
    line = next(ElementTree.fromstring(canvas.svg("t")).iter("line"))
    assert float(line.get("x1")) == canvas.x(0.01)
    assert float(line.get("y2")) == canvas.y(0.9)


def test_words_along_the_diagonal_avoid_what_is_drawn():
    canvas = square(548, Scale(0.0, 1.0))
    upper = Box(canvas.left + canvas.plot_width / 2, canvas.top, canvas.right, canvas.top + canvas.plot_height / 2)
    covered = write_along_the_diagonal(canvas, "perfect calibration", [upper])
    assert covered
    assert not any(box.meets(upper) for box in covered)
    assert all(canvas.inside.holds(box) for box in covered)
    assert write_along_the_diagonal(canvas, "much too long " * 40, []) == []


def test_rare_events_get_a_linear_axis_that_ends_near_them():
    rare = [Bin(0, 0.02, 100, 1, 0.01, Value(0.012, 0.001, 0.04))]
    assert diagram_scale(rare, "linear").high == 0.05
    assert diagram_scale(rare, "log odds").holds(0.01)
    assert diagram_scale([], "log odds").holds(0.5)


def test_certain_bins_do_not_break_the_axis_of_log_odds():
    bins = [Bin(0, 0.1, 9, 0, 0.0, Value(0.0, 0.0, 0.3)), Bin(0.9, 1.0, 9, 9, 1.0, Value(1.0, 0.7, 1.0))]
    scale = diagram_scale(bins, "log odds")
    assert 0 < scale.low < scale.high < 1


def test_the_curve_is_level_within_a_block():
    assert curve_points(Curve((0.1, 0.3), (0.2, 0.3), (0.0, 0.5))) == [(0.1, 0.0), (0.2, 0.0), (0.3, 0.5)]


def test_before_and_after_have_a_curve_each():
    section = hand_made.reliability()
    after = hand_made.recalibration().after
    figure = before_after_figure(section.curve, after, section.bins["log odds"], "log odds", "Platt scaling")
    assert figure.title == "Before and after Platt scaling"
    for svg in (figure.svg_wide, figure.svg_narrow):
        assert re.findall(r'class="(curve2?)"', svg) == ["curve", "curve2"]
        assert svg.count("afterband") == 1


def test_a_single_score_is_a_point():
    one = Curve((0.3,), (0.3,), (0.5,))
    figure = before_after_figure(one, Curve((0.5,), (0.5,), (0.5,)), (), "linear", "Platt scaling")
    assert figure.svg_wide.count('class="dotf"') == 1
    assert figure.svg_wide.count('class="dota"') == 1


def test_both_binnings_the_null_and_the_error_are_drawn():
    figure = bin_counts_figure(hand_made.bin_counts(), Value(0.0083, 0.005, 0.0102))
    for svg in (figure.svg_wide, figure.svg_narrow):
        for style in ("nullband", "afterband", "curve2", "curve3", "curve"):
            assert svg.count(f'class="{style}"') == 1
        assert svg.count('class="dotf"') == 16
    assert "calibration error 0.8 (0.5 to 1.0)" in figure.svg_wide


def test_without_an_error_or_its_interval():
    section = hand_made.bin_counts()
    assert "curve2" not in bin_counts_figure(section, None).svg_wide
    assert "afterband" not in bin_counts_figure(section, Value(0.01)).svg_wide


def test_a_single_number_of_bins_is_a_figure_still():
    one = {
        name: getattr(hand_made.bin_counts(), name)[:1]
        for name in ("counts", "equal_mass", "equal_width", "null_low", "null_high")
    }
    assert bin_counts_figure(replace(hand_made.bin_counts(), **one), None).svg_wide


def test_the_diagram_in_words():
    text = reliability_text(hand_made.reliability())
    assert text == (
        "The observed frequency agrees with the prediction within chance below 0.2 %, lies above the prediction "
        "from 0.2 to "
        "1 %, agrees with the prediction within chance from 1 to 5 % and lies below the prediction above 5 %. At "
        "scores "
        "above 20 %: 60 % predicted, 41 % observed."
    )
    calibrated = reliability_text(hand_made.reliability(of=lambda p: p))
    assert calibrated == "The observed frequency agrees with the prediction within chance in every range."
    no_ranges = replace(hand_made.reliability(), ranges=())
    assert "lies below" in reliability_text(no_ranges, confidence=True)


def test_reliability_names_the_range_with_most_of_the_error():
    section = hand_made.reliability()
    assert reliability_title(section, significant=True) == (
        "Scores above 20 % overstate the risk: 60 % predicted, 41 % observed"
    )
    low = hand_made.reliability(of=lambda p: min(1.3 * p, 0.999))
    assert reliability_title(low, significant=True) == (
        "Scores above 20 % understate the risk: 60 % predicted, 78 % observed"
    )
    assert reliability_title(section, significant=True, confidence=True) == (
        "Confidence above 20 % exceeds accuracy: 60 % predicted, 41 % right"
    )


def test_without_ranges_the_bins_are_named():
    title = reliability_title(replace(hand_made.reliability(), ranges=()), significant=True)
    assert title == "Scores of 20 to 35 % overstate the risk: 26.8 % predicted, 18 % observed"


def test_reliability_claims_no_direction_without_a_significant_test_or_a_clear_range():
    section = hand_made.reliability()
    words = "The observed frequencies agree with the predictions within chance"
    assert reliability_title(section, significant=False) == words
    calibrated = hand_made.reliability(of=lambda p: p)
    found = reliability_title(calibrated, significant=True)
    assert found == "The predictions are off, but at no range of scores by a clear amount"
    assert "accuracy agrees" in reliability_title(section, significant=False, confidence=True)


def test_what_cannot_be_judged_has_a_title_that_claims_nothing():
    assert reliability_title(hand_made.reliability(), significant=None) == "Predicted and observed frequencies"


def test_the_ece_by_bins_in_words():
    figure = bin_counts_figure(hand_made.bin_counts(), None)
    assert figure.title == "The plain ECE depends on how many bins you choose"
    assert "1.1 to 2.1 at 1,000." in figure.text
