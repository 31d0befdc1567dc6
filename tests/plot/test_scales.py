"""Axes: few round ticks, limits that hold what is drawn, and certain probabilities beyond the ends of log odds."""

import math
from itertools import pairwise

import pytest

from calibrant.plot.scales import Scale, covering, evenly, probability_scale

SCALES = [
    Scale(0.0, 1.0),
    Scale(0.0, 0.023),
    Scale(-0.6, 2.9),
    Scale(0.4, 2.6, "log"),
    Scale(0.93, 1.08, "log"),
    Scale(0.02, 3000.0, "log"),
    Scale(1e-5, 0.9, "log odds"),
    Scale(0.3, 0.7, "log odds"),
    Scale(0.48, 0.52, "log odds"),
    Scale(1e-6, 1 - 1e-6, "log odds"),
]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("most", [4, 6, 8])
def test_ticks_lie_on_the_axis_in_order_and_are_not_too_many(scale, most):
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most
    assert list(ticks) == sorted(set(ticks))
    assert all(scale.holds(tick) or math.isclose(tick, scale.low) or math.isclose(tick, scale.high) for tick in ticks)


@pytest.mark.parametrize("scale", SCALES)
def test_places_run_from_0_to_1(scale):
    assert scale.at(scale.low) == 0
    assert scale.at(scale.high) == 1
    middle = (scale.low + scale.high) / 2
    assert 0 < scale.at(middle) < 1


def test_log_odds_have_infinite_ends_that_are_drawn_beyond_the_axis():
    scale = Scale(0.01, 0.99, "log odds")
    assert scale.at(0.0) < 0
    assert scale.at(1.0) > 1


def test_an_axis_covers_its_values_and_skips_what_it_cannot_show():
    found = covering([0.5, math.inf, math.nan, 0.0, 4.0], "log", include=[1.0])
    assert found.low < 0.5
    assert 4.0 < found.high < 6.0
    assert covering([], "log").holds(1.0)
    one = covering([3.0], "linear")
    assert one.low < 3.0 < one.high


def test_a_narrow_logarithmic_axis_has_equal_steps():
    assert Scale(1.0, 1.5, "log").ticks(6) == (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
    assert Scale(1.0, 2.0, "log").ticks(6) == (1.0, 1.25, 1.5, 2.0)


def test_an_axis_of_log_odds_has_a_margin_and_a_least_width():
    wide = probability_scale([0.1, 0.9], log_odds=True)
    assert (wide.low, wide.high) == pytest.approx((1 / 9 / 1.9 / (1 + 1 / 9 / 1.9), 9 * 1.9 / (1 + 9 * 1.9)))
    narrow = probability_scale([0.5], log_odds=True)
    assert narrow.high / (1 - narrow.high) == pytest.approx(1.9 * 16 / 1.9**2)


def test_values_along_an_axis_are_evenly_placed():
    for scale in (Scale(0.0, 1.0), Scale(0.001, 0.9, "log odds")):
        places = [scale.at(value) for value in evenly(scale, 60)]
        steps = [b - a for a, b in pairwise(places)]
        assert max(steps) - min(steps) < 1e-9


def test_examples_of_ticks() -> None:
    assert Scale(0.0, 1.0).ticks(6) == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert Scale(0.4, 2.6, "log").ticks(4) == (0.5, 1.0, 2.0)
    assert Scale(0.0005, 0.8, "log odds").ticks(8) == (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7)


def test_examples_of_evenly() -> None:
    assert evenly(Scale(0.0, 1.0), 4) == [0.0, 0.25, 0.5, 0.75, 1.0]
