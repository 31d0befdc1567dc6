"""Worlds of predicted spreads: closed forms, and samples with the true spread."""

from dataclasses import dataclass

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.simulate.score_distributions import integral


@dataclass(frozen=True)
class Uniform(sim.Spreads):
    low: float
    high: float

    def draw(self, rng, n):
        return rng.uniform(self.low, self.high, n)

    def expect(self, function):
        return integral(function, np.linspace(self.low, self.high, 33)) / (self.high - self.low)


def test_the_random_spreads_of_the_regression_paper():
    """sigma ~ U[1, 10] whatever the true spread: 0.8444 before scaling, 0.5195 after."""
    true = np.sqrt(0.37)
    world = sim.RegressionWorld(Uniform(1, 10), lambda sigma: np.full_like(sigma, true))
    assert world.true_error("ence") == pytest.approx(1 - true * np.log(10) / 9, abs=1e-9)
    scale = np.sqrt(0.037)
    scaled = sim.RegressionWorld(Uniform(scale, 10 * scale), world.curve)
    assert scaled.true_error("ence") == pytest.approx(0.5195, abs=1e-4)


@pytest.mark.parametrize("tails", [None, 5.0])
def test_regression_samples_have_the_true_spread(tails):
    world = sim.RegressionWorld(sim.LogNormalSpreads(2.0, 0.3), sim.Scaled(1.5), tails=tails)
    data = world.sample(200_000, seed=0)
    z = (data.y_true - data.mean) / data.std
    assert np.std(z) == pytest.approx(1.5, abs=0.03)
    assert np.median(data.std) == pytest.approx(2.0, abs=0.02)
    assert world.true_error() == pytest.approx(0.5)
    mean_square = 4 * np.exp(2 * 0.3**2)
    assert world.true_error("uce") == pytest.approx(1.25 * mean_square, rel=1e-9)


def test_ence_finds_the_true_error_of_a_regression_world():
    world = sim.RegressionWorld(sim.LogNormalSpreads(1.0, 0.4), sim.Scaled(1.3))
    found = sim.bias(lambda data: cal.ence(data), world, 2000, repeats=20)
    assert found.truth == pytest.approx(0.3)
    assert found.bias == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.LogNormalSpreads(-1), "needs a positive median"),
        (lambda: sim.RegressionWorld(sim.LogNormalSpreads(), tails=2), "tails must exceed 2"),
        (lambda: sim.RegressionWorld(sim.LogNormalSpreads()).true_error("nll"), "norm must be 'ence' or 'uce'"),
    ],
)
def test_invalid_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
