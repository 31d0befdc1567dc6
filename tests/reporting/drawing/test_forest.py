"""Cells share one axis, and markers stay inside their cell."""

from xml.etree import ElementTree

import pytest

from calibrant.reporting.contents import Value
from calibrant.reporting.drawing.forest import FLAGGED, Forest, gauge, share_bar

RATIOS = [Value(0.64, 0.46, 0.89), Value(1.84, 1.35, 2.51), Value(1.0), Value(0.0, 0.0, 1e9)]


def circle(svg):
    return next(ElementTree.fromstring(svg).iter("circle"))


def test_rows_share_the_line_of_reference():
    forest = Forest.of_ratios(RATIOS)
    lines = {
        line.get("x1")
        for value in RATIOS
        for line in ElementTree.fromstring(forest.cell(value, FLAGGED, width=250)).iter("line")
        if line.get("class") == "ref"
    }
    assert len(lines) == 1


@pytest.mark.parametrize("value", RATIOS)
def test_markers_stay_inside_their_cell(value):
    dot = circle(Forest.of_ratios(RATIOS).cell(value, FLAGGED, width=128, size=1.0))
    assert float(dot.get("cx")) - float(dot.get("r")) >= 0
    assert float(dot.get("cx")) + float(dot.get("r")) <= 128


def test_larger_groups_have_larger_markers():
    forest = Forest.of_ratios(RATIOS)
    sizes = [float(circle(forest.cell(RATIOS[0], FLAGGED, width=128, size=s)).get("r")) for s in (0.0, 0.5, 1.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] > 0


def test_the_ideal_is_always_named():
    crowded = Forest.of_ratios([Value(0.9, 0.1, 9.0)], most=9)
    assert ">1<" in crowded.head(90, "← high", "low →")


def test_differences_include_zero():
    forest = Forest.of_differences([Value(1.7, 0.9, 2.5)])
    assert forest.scale.holds(0.0)
    assert forest.ideal == 0


@pytest.mark.parametrize(
    ("value", "ideal", "log"),
    [
        (Value(0.8, 0.5, 1.0), 0.0, False),
        (Value(0.83, 0.77, 0.9), 1.0, True),
        (Value(82.5, 81.3, 83.6), 90.0, False),
        (Value(27.0), 0.0, False),
        (Value(0.0, 0.0, 0.0), 0.0, False),
        (Value(-0.3, -0.4, 0.1), 0.0, False),
        (Value(0.0), 1.0, True),
    ],
)
def test_gauges_hold_their_number(value, ideal, log):
    svg = gauge(value, ideal, below="less", above="more", log=log)
    assert 0 <= float(circle(svg).get("cx")) <= 300
    assert "more" in svg
    assert ("range" in svg) == (value.low is not None)


def test_bars_are_as_long_as_the_share():
    widths = [float(next(ElementTree.fromstring(share_bar(s)).iter("rect")).get("width")) for s in (0.0, 0.5, 1.0, 7.0)]
    assert widths == [0, 35, 70, 70]
