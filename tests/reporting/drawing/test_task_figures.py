"""The figures of forecasts and of positive-unlabeled rows."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

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


def test_titles_of_the_spread():
    section = hand_made.spread()
    found = "Where the predicted spread is smallest, errors are 1.50 times as large"
    assert spread_figure(section, significant=True).title == found
    assert spread_figure(section, significant=False).title == "Errors agree with the predicted spread within chance"
    wide = tuple(replace(b, null=(0.0, 99.0)) for b in section.bins)
    assert "by a clear amount" in spread_figure(replace(section, bins=wide), significant=True).title
    last = (*wide[:-1], replace(wide[-1], null=(0.0, 1.0)))
    assert "is largest" in spread_figure(replace(section, bins=last), significant=True).title
    inner = (*wide[:3], replace(wide[3], null=(0.0, 1.0)), *wide[4:])
    assert "is about 3.4" in spread_figure(replace(section, bins=inner), significant=True).title


def test_titles_of_coverage():
    section = hand_made.spread()
    assert coverage_figure(section).title == "90 % intervals hold 82.8 % (81.7 to 83.9 %)"
    bare = replace(section, coverage=(Coverage(0.8, Value(0.712)),))
    assert coverage_figure(bare).title == "80 % intervals hold 71.2 %"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (300, 300, "into the tails too often"),
        (50, 50, "into the tails too rarely"),
        (300, 50, "lower than predicted too often"),
        (50, 300, "higher than predicted too often"),
        (200, 200, "evenly into their predicted distributions, within chance"),
    ],
)
def test_the_histogram_of_f(first, last, words):
    section = replace(hand_made.spread(), pit=(first, *[200.0] * 18, last))
    assert words in pit_figure(section, significant=True).title
    uneven = replace(section, pit=(200.0, *[100.0, 300.0] * 9, 200.0))
    assert "unevenly" in pit_figure(uneven, significant=True).title
    assert pit_figure(uneven, significant=None).title == "Where outcomes fall in their predicted distributions"


def test_titles_of_shares():
    none = "No share between 11 and 27 % makes these probabilities calibrated, if labels are at random"
    assert shares_figure(hand_made.shares()).title == none
    assert shares_figure(hand_made.shares(zero=True)).title == "For shares from 11 to 14 % the interval includes 0"
    section = hand_made.shares()
    assert (
        implied_figure(section, significant=True).title
        == "Predictions are too low over part of the range, if 19 % are positive"
    )
    assert "within chance" in implied_figure(section, significant=False).title
    first, *others = section.implied
    other_way = replace(first, observed=Value(first.predicted / 4, first.predicted / 5, first.predicted / 3))
    assert (
        "too high for others" in implied_figure(replace(section, implied=(other_way, *others)), significant=True).title
    )
    assert "too high over" in implied_figure(replace(section, implied=(other_way,)), significant=True).title


def test_what_cannot_be_judged_has_titles_that_claim_nothing():
    assert spread_figure(hand_made.spread(), significant=None).title == "Predicted spread and observed errors"
    found = implied_figure(hand_made.shares(), significant=None).title
    assert found == "Predicted and implied shares, if 19 % are positive"


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (spread_figure(hand_made.spread(), significant=True), "1.50 times the predicted spread where it is smallest"),
        (coverage_figure(hand_made.spread()), "lies below nominal coverage. The gap is largest at 95 %"),
        (pit_figure(hand_made.spread(), significant=True), "hold 1.6 and 1.8 times the expected number"),
        (shares_figure(hand_made.shares()), "smallest, 3.2 points, at a share of 11 %"),
        (implied_figure(hand_made.shares(), significant=True), "above the prediction in 12 of 12 bins"),
    ],
)
def test_figures_in_words_and_tables(figure, words):
    assert words in figure.text
    if figure.table is not None:
        assert figure.table.rows
        assert all(len(row) == len(figure.table.columns) for row in figure.table.rows)
