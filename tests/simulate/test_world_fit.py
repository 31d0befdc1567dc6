"""Fitting worlds: the true error is recovered, rounding and atoms included."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from tests.simulate.softmax import softmax_top, softmax_top_by_log_sum_exp


def test_the_logits_know_more_than_either(densenet):
    logits = np.sort(densenet[0].astype(np.float64), axis=1)
    z = logits[:, -1] - np.logaddexp.reduce(logits[:, :-1], axis=1)
    fit = sim.fit_world(densenet[1], softmax_top(logits), log_odds=z)
    assert isinstance(fit.world.scores, sim.BetaScores)
    assert fit.world.scores.b == pytest.approx(0.0555, abs=0.0005)


def test_the_exact_criteria_of_the_published_models(densenet):
    """With scores of 1 left out, as in the paper; its own numbers are means over ten bootstrap samples."""
    fit = sim.fit_world(densenet[1], softmax_top_by_log_sum_exp(densenet[0]))
    criteria = {curve.name: curve.aic for curve in fit.curves}
    assert [curve.name for curve in fit.curves[:2]] == ["logflip_logflip_b0_b1", "logit_logit_b0_b1"]
    assert fit.curves[4].name == "logit_logflip_b1"
    assert criteria["logflip_logflip_b0_b1"] == pytest.approx(2948.79, abs=0.01)
    assert criteria["logit_logit_b0_b1"] == pytest.approx(2952.81, abs=0.01)
    assert criteria["logit_logflip_b1"] == pytest.approx(2988.83, abs=0.01)
    constants = [value for name, value in criteria.items() if name.endswith("_b0")]
    assert constants == pytest.approx([3640.32] * 4, abs=0.01)


def test_a_fitted_world_has_the_error_of_the_true_one():
    world = sim.PAPER_WORLDS["densenet40_c100"]
    fit = sim.fit_world(world.sample(50_000, seed=1))
    assert fit.world.true_error(2) == pytest.approx(world.true_error(2), abs=0.01)
    seen = fit.goodness(repeats=50)
    assert seen.simulated == pytest.approx(seen.real, abs=5 * seen.simulated_sd)


@pytest.mark.no_cover
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_beta_is_recovered_from_scores_that_were_rounded_to_1(precision):
    world = sim.World(sim.BetaScores(2.8, 0.05), sim.Glm("logit_logit", 0, 0.3))
    data = world.sample(50_000, seed=0)
    rounded = data.y_prob.astype(precision)
    assert np.mean(rounded == 1) > 0.15
    fit = sim.fit_world(data.y_true, rounded)
    assert fit.world.scores.a == pytest.approx(2.8, rel=0.05)
    assert fit.world.scores.b == pytest.approx(0.05, rel=0.05)
    assert fit.world.true_error(2) == pytest.approx(world.true_error(2), abs=0.005)


def test_atoms_are_fitted_apart():
    truth = sim.World(sim.WithAtoms(sim.BetaScores(2, 2), 0.1, 0.2), sim.WithEnds(sim.IdentityCurve(), 0.05, 0.9))
    data = truth.sample(20_000, seed=0)
    fit = sim.fit_world(data)
    assert fit.world.scores.at_one == pytest.approx(np.mean(data.y_prob == 1), abs=1e-6)
    assert fit.world.curve([1.0])[0] == pytest.approx(data.y_true[data.y_prob == 1].mean())
    assert fit.world.true_error(1) == pytest.approx(truth.true_error(1), abs=0.01)


def test_the_printed_table_has_all_twelve_curves_best_first():
    fit = sim.fit_world(sim.World(sim.BetaScores(2, 1), sim.PowerCurve(2)).sample(500))
    lines = str(fit).splitlines()
    assert len(lines) == 15
    assert lines[-1].endswith("the first is used")
    assert lines[2].startswith(fit.best.name)
    assert fit.to_dict()["curves"][0]["name"] == fit.best.name


@pytest.mark.parametrize("curve", [sim.WavyCurve(), lambda p: np.where(p < 0.5, 0.25, 0.75)])
def test_a_world_that_no_parametric_curve_fits_is_smoothed_and_says_so(curve):
    world = sim.World(sim.UniformScores(), curve)
    fit = sim.fit_world(world.sample(10_000, seed=2))
    assert not fit.fits
    assert isinstance(fit.world.curve, sim.SmoothedCurve)
    assert fit.world.true_error(1) == pytest.approx(world.true_error(1), rel=0.25)
    assert fit.parametric.true_error(1) < 0.75 * world.true_error(1)
    assert "a smoothed curve is used" in str(fit)
    assert fit.to_dict()["fits"] is False


@pytest.mark.no_cover
def test_a_world_of_the_fitted_families_is_rarely_rejected():
    worlds = [sim.PAPER_WORLDS["resnet110_c100"], sim.World(sim.UniformScores(), sim.PowerCurve(1.5))]
    rejected = [not sim.fit_world(world.sample(500, seed=seed)).fits for world in worlds for seed in range(15)]
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 30)


def test_a_constant_curve_is_tested_along_the_scores():
    """The fitted probabilities are all alike, but the outcomes are not."""
    p = np.linspace(0.01, 0.99, 3000)
    y = np.random.default_rng(0).random(3000) < 0.5 + 0.3 * np.sin(6 * np.pi * p)
    assert not sim.fit_world(y, p).fits


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sim.fit_world([1, 1, 1], [0.2, 0.5, 0.7]), ValueError, "needs both outcomes"),
        (lambda: sim.fit_world([1, 0], [0.5, 0.5]), ValueError, "two different scores"),
        (lambda: sim.fit_world(cal.Binary([1, 0], [0.2, 0.5], weight=[1, 2])), TypeError, "unweighted"),
        (lambda: sim.fit_world(cal.Multiclass([1, 0], [[0.2, 0.8], [0.5, 0.5]])), TypeError, "top_label"),
        (lambda: sim.fit_world([1, 0], [0.2, 0.5], log_odds=[1.0]), ValueError, "log_odds must be 2 numbers"),
    ],
)
def test_what_cannot_be_fitted_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
