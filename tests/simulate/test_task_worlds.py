"""Worlds of several classes: published errors, samples, and two classes as a binary world.

Worlds of predicted spreads: closed forms, and samples with the true spread.

Worlds of positive and unlabeled rows, and mixtures of normal logits with their published errors.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant import simulate as sim
from calibrant.simulate.score_distributions import integral
from tests.pu.worlds import BETTER, LESS, TRUE_ERROR


@pytest.mark.parametrize(
    ("classes", "sharpness", "errors"),
    [
        (3, 0.3, {1: 0.4410, 2: 0.27581, np.inf: 0.2205, "squared": 0.0865}),
        (3, 2.0, {2: 0.15942}),
        (10, 0.3, {2: 0.24754}),
    ],
)
def test_multiclass_errors_are_those_of_the_variational_paper(classes, sharpness, errors):
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * classes), sim.TemperatureCurve(1 / sharpness))
    for norm, expected in errors.items():
        assert world.true_error(norm) == pytest.approx(expected, abs=8e-4)


def test_a_multiclass_sample_follows_its_true_probabilities():
    world = sim.MulticlassWorld(sim.DirichletScores([1.0, 2.0, 0.5]), lambda p: p**2)
    data = world.sample(40_000, seed=1)
    squares = data.y_prob**2
    chances = squares / squares.sum(axis=1, keepdims=True)
    for k in range(3):
        assert np.mean(data.y_true == k) == pytest.approx(chances[:, k].mean(), abs=0.01)
        assert np.mean((data.y_true == k) * data.y_prob[:, k]) == pytest.approx(
            np.mean(chances[:, k] * data.y_prob[:, k]), abs=0.01
        )


@pytest.mark.no_cover
def test_a_calibrated_multiclass_world_has_no_error_of_any_kind():
    world = sim.MulticlassWorld(sim.DirichletScores([0.7] * 4))
    assert [world.true_error(norm) for norm in (1, 2, "kl")] == pytest.approx([0, 0, 0], abs=1e-12)
    assert world.true_error(2, of="top_label") == pytest.approx(0, abs=1e-12)


def test_two_classes_are_a_binary_world():
    pair = sim.MulticlassWorld(sim.DirichletScores([2.0, 1.0]), sim.TemperatureCurve(2))
    single = sim.World(sim.BetaScores(2.0, 1.0), sim.TemperatureCurve(2))
    assert pair.true_error(1) == pytest.approx(2 * single.true_error(1), abs=5e-4)
    assert pair.true_error("kl") == pytest.approx(single.true_error("kl"), abs=5e-4)


def test_the_top_label_error_is_what_bins_of_confidence_see():
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * 3), sim.TemperatureCurve(2.5))
    data = world.sample(200_000, seed=0).top_label()
    assert cal.debiased_ece(data, bins=cal.EqualMass(50), norm=2) == pytest.approx(
        world.true_error(2, of="top_label"), abs=0.005
    )


def test_bias_works_in_a_multiclass_world():
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * 3))
    found = sim.bias(lambda data: cal.ece(data.top_label()), world, 100, repeats=20)
    assert found.truth == pytest.approx(0, abs=1e-12)
    assert found.bias > 0.03


@pytest.mark.parametrize("alpha", [[1.0], [1.0, 0.0]])
def test_a_dirichlet_needs_two_positive_numbers(alpha):
    with pytest.raises(ValueError, match="DirichletScores needs at least two positive numbers"):
        sim.DirichletScores(alpha)


def test_true_errors_are_the_same_on_every_day():
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * 3), sim.TemperatureCurve(1 / 0.3))
    assert world.true_error(2) == pytest.approx(0.27554711014638844, rel=1e-12)
    assert world.true_error(2, of="top_label") == pytest.approx(0.23224102389916704, rel=1e-12)


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


@pytest.mark.parametrize(("b0", "b1", "error"), [(-0.5, 1.5, 0.0744), (-0.2, 1.9, 0.0235)])
def test_the_synthetic_models_of_the_positive_unlabeled_paper(b0, b1, error):
    scores = sim.LogitMixtureScores([b0 + b1, b0 - b1], [b1, b1], [0.5, 0.5])
    world = sim.PUWorld(sim.World(scores, sim.Glm("logit_logit", -2 * b0 / b1, 2 / b1)))
    assert world.prior == pytest.approx(0.5, abs=1e-9)
    assert world.true_error(1) == pytest.approx(error, abs=5e-5)
    data = world.sample(40_000, seed=0)
    log_odds = np.log(data.positive / (1 - data.positive))
    assert log_odds.mean() == pytest.approx(b0 + b1, abs=0.05)
    assert np.std(log_odds) == pytest.approx(b1, abs=0.05)


def test_a_positive_unlabeled_sample_has_its_share_of_positives():
    data = sim.PUWorld(sim.World(sim.UniformScores()), labelled=0.2).sample(500)
    assert (len(data.positive), len(data.unlabeled), data.prior) == (100, 400, pytest.approx(0.5))


def test_the_share_of_labelled_rows_lies_inside_0_and_1():
    with pytest.raises(ValueError, match="labelled must lie in"):
        sim.PUWorld(sim.World(sim.UniformScores()), labelled=1)


def synthetic(world):
    b0, b1 = world
    return simulate.LogitMixtureWorld(
        0.5, simulate.LogitMixtureScores((b0 + b1,), (b1,)), simulate.LogitMixtureScores((b0 - b1,), (b1,))
    )


@pytest.mark.parametrize("world", [LESS, BETTER])
def test_the_true_errors_are_those_of_the_paper(world):
    assert synthetic(world).true_error() == pytest.approx(TRUE_ERROR[world], abs=1e-6)


def test_the_l2_errors_are_those_of_the_record():
    assert synthetic(LESS).true_error(2) == pytest.approx(0.096152, abs=1e-6)
    assert synthetic(BETTER).true_error(2) == pytest.approx(0.030194, abs=1e-6)


@pytest.mark.parametrize("world", [LESS, BETTER])
def test_infinitely_many_rows_in_many_bins_give_the_true_error(world):
    positive, predicted = synthetic(world).masses(np.linspace(0, 1, 1001))
    assert positive.sum() == pytest.approx(1)
    assert np.abs(0.5 * positive - predicted).sum() == pytest.approx(TRUE_ERROR[world], abs=2e-5)


def test_a_mixture_fitted_to_its_own_sample_has_about_its_error():
    data = synthetic(LESS).labelled(np.random.default_rng(4), 10_000)
    fitted = simulate.fit_logit_mixture(data, components=3)
    assert fitted.true_error() == pytest.approx(TRUE_ERROR[LESS], abs=0.008)
    assert len(fitted.positive.means) == 1
    assert cal.ece(fitted.sample(2000, 20_000)) == pytest.approx(fitted.true_error(), abs=0.02)
    with pytest.raises(cal.InvalidPredictions, match="both classes"):
        simulate.fit_logit_mixture([1, 1], [0.2, 0.3])
    with pytest.raises(cal.InvalidPredictions, match="to have a logit"):
        simulate.fit_logit_mixture(cal.Binary([0, 1], [0.0, 0.5]))
