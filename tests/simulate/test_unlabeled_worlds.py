"""Worlds of positive and unlabeled rows, and mixtures of normal logits with their published errors."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate
from calibrant import simulate as sim
from tests.pu.worlds import BETTER, LESS, TRUE_ERROR


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
