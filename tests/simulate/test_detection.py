"""Errors of the two kinds when an estimate is used as a test."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim

SWEEP = partial(cal.sweep_ece, norm=2)
WIDTH = partial(cal.ece, bins=cal.EqualWidth(15), norm=2)


def world_of_error(percent):
    from scipy.optimize import brentq

    d = brentq(lambda d: 100 * sim.World(sim.UniformScores(), sim.PowerCurve(d)).true_error(2) - percent, 1.0001, 5)
    return sim.World(sim.UniformScores(), sim.PowerCurve(d))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("n", "percent", "estimator", "miss"),
    [(500, 5, WIDTH, 0.725), (500, 5, SWEEP, 0.555), (500, 10, WIDTH, 0.087), (1000, 5, SWEEP, 0.160)],
)
def test_miss_rates_of_figure_5(n, percent, estimator, miss):
    found = sim.power(estimator, world_of_error(percent), n, repeats=1000)
    # the anchor's own 400 repeats, and the threshold, which both have only estimated
    spread = np.sqrt(miss * (1 - miss) * (1 / 400 + 1 / 1000) + 2 * 0.05**2 * miss * (1 - miss))
    assert found.type_two == pytest.approx(miss, abs=3 * spread)
    assert 100 * found.true_error == pytest.approx(percent)


def test_false_alarms_come_at_the_level_that_was_asked_for():
    found = sim.power(cal.ece, sim.World(sim.UniformScores(), sim.PowerCurve(2)), 200, alpha=0.1, repeats=2000)
    assert found.type_one == pytest.approx(0.1, abs=4 * np.sqrt(2) * found.type_one_se)
    assert found.power == 1 - found.type_two


def test_a_calibrated_world_is_called_miscalibrated_at_the_level():
    found = sim.power(cal.sweep_ece, sim.World(sim.UniformScores(), sim.PowerCurve(1)), 100, repeats=1000)
    assert 1 - found.type_two == pytest.approx(0.05, abs=0.03)


def test_an_alpha_outside_0_and_1_is_refused():
    with pytest.raises(ValueError, match="alpha must lie in"):
        sim.power(cal.ece, sim.World(sim.UniformScores()), 100, alpha=5)
