"""Fitting worlds: the true error is recovered, rounding and atoms included, by exact maximum likelihood."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

import calibrant as cal
from calibrant import simulate as sim
from calibrant.numerics.arrays import log_odds
from calibrant.simulate.world_fit import _last_below_one, fit_rounded_beta, minimum
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


#: Log-odds of the largest double below 1, where published fits put scores of 1.
LAST = log_odds(1 - 2.0**-53)


def test_the_published_beta_comes_from_single_precision(densenet):
    single = softmax_top_by_log_sum_exp(densenet[0]).astype(np.float64)
    assert np.mean(single == 1) > 0.6
    beta = sim.fit_beta(np.minimum(log_odds(single), LAST))
    assert (beta.a, beta.b) == (pytest.approx(1.9824, abs=5e-5), pytest.approx(0.0397, abs=5e-5))


def test_double_precision_gives_another_beta(densenet):
    beta = sim.fit_beta(np.minimum(log_odds(softmax_top(densenet[0].astype(np.float64))), LAST))
    assert (beta.a, beta.b) == (pytest.approx(2.67, abs=0.005), pytest.approx(0.057, abs=0.0005))


def test_a_beta_fit_is_that_of_scipy():
    scores = stats.beta(2.0, 3.5).rvs(2000, random_state=1)
    a, b, _, _ = stats.beta.fit(scores, floc=0, fscale=1)
    beta = sim.fit_beta(log_odds(scores))
    assert (beta.a, beta.b) == (pytest.approx(a, rel=1e-4), pytest.approx(b, rel=1e-4))


@pytest.mark.parametrize("beta", [sim.BetaScores(2.8, 0.05), sim.BetaScores(0.1, 0.1), sim.BetaScores(30, 2)])
def test_a_beta_is_recovered(beta):
    found = sim.fit_beta(beta.draw(np.random.default_rng(0), 100_000))
    assert (found.a, found.b) == (pytest.approx(beta.a, rel=0.02), pytest.approx(beta.b, rel=0.02))


@pytest.mark.no_cover
def test_logistic_curves_are_those_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    data = sim.World(sim.BetaScores(2, 1), sim.Glm("logit_logit", 0.3, 0.6)).sample(3000, seed=2)
    z = log_odds(data.y_prob)
    fits = {fit.name: fit for fit in sim.fit_curves(z, data.y_true)}
    both = LogisticRegression(C=1e12, tol=1e-10).fit(z[:, None], data.y_true)
    assert fits["logit_logit_b0_b1"].curve.b0 == pytest.approx(both.intercept_[0], abs=1e-4)
    assert fits["logit_logit_b0_b1"].curve.b1 == pytest.approx(both.coef_[0, 0], abs=1e-4)
    slope = LogisticRegression(C=1e12, tol=1e-10, fit_intercept=False).fit(z[:, None], data.y_true)
    assert fits["logit_logit_b1"].curve.b1 == pytest.approx(slope.coef_[0, 0], abs=1e-4)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "curve",
    [
        sim.Glm("logit_logit", -0.9, 0.5),
        sim.Glm("logit_logflip", -0.3, -0.4),
        sim.Glm("log_log", -0.05, 1.4),
        sim.Glm("logflip_logflip", -0.2, 0.4),
    ],
    ids=lambda curve: curve.family,
)
def test_each_family_is_found_and_its_likelihood_cannot_be_raised(curve):
    z = sim.BetaScores(1.5, 0.5).draw(np.random.default_rng(0), 40_000)
    hit = (np.random.default_rng(1).random(40_000) < curve.at(z)).astype(np.int8)
    fits = sim.fit_curves(z, hit)
    assert fits[0].curve.family == curve.family
    assert (fits[0].curve.b0, fits[0].curve.b1) == (
        pytest.approx(curve.b0, abs=0.05),
        pytest.approx(curve.b1, abs=0.05),
    )

    def negative_likelihood(at):
        chance = sim.Glm(curve.family, *at).at(z)
        with np.errstate(divide="ignore"):
            return -np.log(np.where(hit, chance, 1 - chance)).sum()

    best = [fits[0].curve.b0, fits[0].curve.b1]
    assert negative_likelihood(best) == pytest.approx(fits[0].nll, rel=1e-9)
    search = optimize.minimize(negative_likelihood, best, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-7})
    assert search.fun >= fits[0].nll - 1e-4


def test_a_curve_that_touches_1_is_fitted_on_the_border():
    """log_log with b0 = 0: the best intercept is where the curve reaches 1 at the highest score."""
    z = sim.BetaScores(3, 1).draw(np.random.default_rng(0), 500)
    hit = np.ones(500, dtype=np.int8)
    hit[np.argsort(z)[:60]] = 0
    fits = {fit.name: fit for fit in sim.fit_curves(z, hit)}
    values = fits["log_log_b0_b1"].curve.at(z)
    assert values.max() == pytest.approx(1.0, abs=1e-6)
    assert fits["log_log_b0_b1"].nll <= fits["log_log_b0"].nll


def test_a_rounded_beta_has_no_atom_of_its_own():
    """Scores above 1 - 2^-24 that were rounded to 1 are what the Beta predicts; more of them are an atom."""
    z, last = sim.BetaScores(2.0, 0.1).draw(np.random.default_rng(0), 50_000), np.log(2.0**25)
    inner, ones = z[z <= last], int(np.sum(z > last))
    beta, atom = fit_rounded_beta(inner, ones, last)
    assert (beta.a, beta.b, atom) == (pytest.approx(2.0, rel=0.03), pytest.approx(0.1, rel=0.03), 0.0)
    beta, atom = fit_rounded_beta(inner, ones + 5000, last)
    assert (beta.b, atom) == (pytest.approx(0.1, rel=0.03), pytest.approx(5000 / 55_000, abs=0.01))


@pytest.mark.no_cover
def test_a_smoothed_curve_follows_what_no_family_can():
    world = sim.World(sim.UniformScores(), sim.WavyCurve())
    z = world.scores.draw(np.random.default_rng(0), 50_000)
    hit = (np.random.default_rng(1).random(50_000) < world.curve.at(z)).astype(np.int8)
    smooth, best = sim.fit_smoothed(z, hit), sim.fit_curves(z, hit)[0].curve
    off = [float(np.abs(curve.at(z) - world.curve.at(z)).mean()) for curve in (smooth, best)]
    assert off[0] < 0.3 * off[1]
    assert smooth.at(np.array([[-np.inf], [np.inf]])).shape == (2, 1)


def test_the_minimum_of_a_convex_function_on_its_border():
    def bowl(x):
        return float(((x - [1.0, -2.0]) ** 2).sum()), 2 * (x - [1.0, -2.0]), 2 * np.eye(2)

    assert minimum(bowl, np.array([5.0, 5.0])) == pytest.approx([1.0, -2.0])
    assert minimum(bowl, np.array([5.0, 5.0]), low=0.0) == pytest.approx([1.0, 0.0])


def test_curve_fitting_what_cannot_be_fitted_is_refused():
    with pytest.raises(ValueError, match="two different scores"):
        sim.fit_beta(np.zeros(3))
    with pytest.raises(ValueError, match="needs both outcomes"):
        sim.fit_curves(np.arange(3.0), np.ones(3, dtype=np.int8))


def test_a_curve_rejected_at_five_percent_does_not_fit():
    fit = sim.fit_world(sim.World(sim.UniformScores()).sample(300))
    for p_value, fits in ((0.04, False), (0.07, True)):
        assert replace(fit, test=replace(fit.test, p_value=p_value)).fits == fits


@pytest.mark.parametrize(("step", "rounded"), [(8e-7, True), (1.5e-6, False)])
def test_scores_of_1_are_rounded_ones_where_others_are_next_to_1(step, rounded):
    """Above log-odds of log(2 / step), half way to 1, scores were rounded."""
    last = _last_below_one(np.array([0.5, 1 - step, 1.0]))
    assert last == pytest.approx(np.log(2 / step) if rounded else np.inf)
