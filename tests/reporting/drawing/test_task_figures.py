"""The figures of forecasts and of positive-unlabeled rows."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.contents import Coverage
from calibrant.reporting.drawing.task_figures import (
    coverage_figure,
    implied_figure,
    pit_figure,
    shares_figure,
    spread_figure,
)
from calibrant.results.estimate import Value
from tests.reporting import hand_made


def test_errors_against_spread_are_square_and_name_the_unit():
    figure = spread_figure(hand_made.spread(), significant=True)
    tree = ElementTree.fromstring(figure.svg_wide)
    frame = next(rect for rect in tree.iter("rect") if rect.get("class") == "frame")
    assert frame.get("width") == frame.get("height")
    assert "Predicted standard deviation, EUR/MWh" in figure.svg_wide
    assert "Too narrow" in figure.svg_wide
    assert len(list(tree.iter("circle"))) == 14
    bare = replace(hand_made.spread(), unit="")
    assert "Predicted standard deviation<" in spread_figure(bare, significant=False).svg_wide


def test_coverage_with_and_without_intervals():
    figure = coverage_figure(hand_made.spread())
    assert "confband" in figure.svg_wide
    assert figure.title == "90 % intervals hold 82.8 % (81.7 to 83.9 %)"
    bare = replace(hand_made.spread(), coverage=(Coverage(0.8, Value(0.9)),))
    assert "confband" not in coverage_figure(bare).svg_wide


def test_bars_of_the_histogram_are_relative_to_what_is_expected():
    figure = pit_figure(replace(hand_made.spread(), pit=(100.0, 300.0), pit_null=(150.0, 250.0)), significant=True)
    bars = [
        r for r in ElementTree.fromstring(figure.svg_wide).iter("rect") if (r.get("class") or "").startswith("barm")
    ]
    first, second = (float(bar.get("height")) for bar in bars)
    assert abs(second / first - 3) < 0.02
    assert "200 expected" in figure.svg_wide


def test_the_assumed_share_is_marked():
    figure = shares_figure(hand_made.shares())
    assert "assumed: 19" in figure.svg_wide
    assert figure.svg_wide.count('class="dotf"') == 1
    outside = shares_figure(replace(hand_made.shares(), prior=0.5))
    assert "assumed:" not in outside.svg_wide
    right = shares_figure(replace(hand_made.shares(), prior=0.265))
    assert "assumed:" in right.svg_wide


def test_implied_shares_are_square():
    figure = implied_figure(hand_made.shares(), significant=True)
    tree = ElementTree.fromstring(figure.svg_wide)
    frame = next(rect for rect in tree.iter("rect") if rect.get("class") == "frame")
    assert frame.get("width") == frame.get("height")
    assert len(list(tree.iter("circle"))) == 12
