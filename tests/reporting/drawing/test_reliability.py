"""The diagram is square on both axes, shows every bin, and holds no text that is not escaped."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from calibrant.reporting.contents import Bin, Curve, Value
from calibrant.reporting.drawing.reliability import CONFIDENCE, bin_hint, reliability_figure
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
    assert text == "Predicted 20 % to 35 %: mean 26.0 %\nObserved 15 % (12 to 18 %)\n498 payments, 75 frauds"


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
