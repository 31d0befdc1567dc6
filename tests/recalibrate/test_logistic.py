"""Platt, quadratic, beta and spline maps: score equations, bounds, references, and worlds of known answer."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.numerics.logistic.binary import RIDGE, logistic_fit
from calibrant.recalibrate import Beta, Platt, Quadratic, Spline
from tests.recalibrate.worlds import quadratic_world


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("recalibrator", "features"),
    [
        (Platt(), lambda p: np.stack([np.ones_like(p), logit(p)], axis=1)),
        (Quadratic(), lambda p: np.stack([np.ones_like(p), logit(p), logit(p) ** 2], axis=1)),
        (Beta(), lambda p: np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)], axis=1)),
    ],
    ids=["Platt", "Quadratic", "Beta"],
)
def test_the_score_equations_hold(recalibrator, features, weighted):
    p, y = quadratic_world()
    weight = np.random.default_rng(1).exponential(size=len(p)) if weighted else np.ones(len(p))
    q = recalibrator.fit(p, y, sample_weight=weight).predict_proba(p)[:, 1]
    equations = features(p).T @ (weight * (q - y)) / weight.sum()
    at_bound = (recalibrator.coefficients_ == 0) & isinstance(recalibrator, Beta)
    np.testing.assert_allclose(equations[~at_bound], 0, atol=50 * RIDGE)
    assert (equations[at_bound] > 0).all()


@pytest.mark.parametrize(("recalibrator", "degree"), [(Platt(), 1), (Quadratic(), 2)], ids=["Platt", "Quadratic"])
def test_scikit_learns_logistic_regression_finds_the_same_map(recalibrator, degree):
    p, y = quadratic_world()
    x = logit(p)
    powers = np.stack([x**d for d in range(1, degree + 1)], axis=1)
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000, solver="newton-cg").fit(powers, y)
    np.testing.assert_allclose(
        recalibrator.fit(p, y).coefficients_, [peer.intercept_[0], *peer.coef_[0]], rtol=1e-5, atol=1e-6
    )


def test_platt_is_fitted_on_log_odds_not_on_probabilities():
    rng = np.random.default_rng(2)
    x = rng.normal(size=200_000) * 2
    y = rng.random(len(x)) < expit(-0.5 + 0.7 * x)
    np.testing.assert_allclose(Platt().fit(expit(x), y).coefficients_, [-0.5, 0.7], atol=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_beta_keeps_its_bounds_at_the_constrained_optimum(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(60)
    shape = [p, 1 - p, np.abs(2 * p - 1), 4 * p * (1 - p), p**3, np.full(60, 0.5)][seed]
    y = rng.random(60) < shape
    features = np.stack([np.log(p), -np.log1p(-p), np.ones(60)], axis=1)

    def loss(beta):
        eta = features @ beta
        return (np.logaddexp(0, eta) - y * eta).mean(), features.T @ (expit(eta) - y) / 60

    peer = minimize(loss, [1, 1, 0], jac=True, bounds=[(0, None), (0, None), (None, None)], tol=1e-14)
    a, b, _ = found = Beta().fit(p, y).coefficients_
    assert a >= 0
    assert b >= 0
    assert loss(found)[0] <= peer.fun + 1e-9


def test_beta_is_the_identity_on_calibrated_scores_and_finds_the_truth():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 200_000)
    y = rng.random(len(p)) < p
    np.testing.assert_allclose(Beta().fit(p, y).coefficients_, [1, 1, 0], atol=0.05)
    y = rng.random(len(p)) < expit(0.5 * np.log(p) - 2 * np.log1p(-p) + 0.3)
    np.testing.assert_allclose(Beta().fit(p, y).coefficients_, [0.5, 2, 0.3], atol=0.08)


def test_separable_rows_have_a_finite_optimum_at_which_the_ridge_holds_the_balance():
    x = np.array([-2.0, -1.0, 1.0, 2.0])
    design = np.stack([np.ones(4), x], axis=1)
    positive = np.array([0.0, 0.0, 1.0, 1.0])
    fit = logistic_fit(design, weight=np.ones(4), positive=positive, start=np.array([0.0, 1.0]))
    gradient = design.T @ (expit(design @ fit.coefficients) - positive)
    pull = RIDGE * 4 * (design**2).mean(axis=0) * (fit.coefficients - [0, 1])
    np.testing.assert_allclose(gradient + pull, 0, atol=1e-12)
    assert 5 < fit.coefficients[1] < 30


def test_a_stated_zero_or_one_counts_as_half_the_nearest_other_score():
    p = np.array([0.0, 0.01, 0.3, 0.5, 0.8, 1.0])
    y = [0, 0, 1, 0, 1, 1]
    moved = Platt().fit([expit(logit(0.01) - np.log(2)), *p[1:-1], expit(logit(0.8) + np.log(2))], y)
    np.testing.assert_allclose(Platt().fit(p, y).coefficients_, moved.coefficients_, atol=1e-7)


def test_quadratic_does_not_turn_where_nothing_was_seen():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = rng.random(2000) < expit(x + 0.2 * x**2)
    quadratic = Quadratic(input="logits").fit(x, y)
    low, lowest = quadratic.predict_proba([x.min() - 1, -80.0])[:, 1]
    assert low == lowest


@pytest.mark.parametrize("recalibrator", [Platt(), Quadratic(), Beta(), Spline()], ids=repr)
def test_a_grid_table_of_many_rows_gives_nearly_the_map_of_the_rows(recalibrator):
    p, y = quadratic_world(50_000)
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid())
    grid = np.linspace(0.01, 0.99, 50)
    by_rows, by_table = recalibrator.fit(p, y).predict_proba(grid), recalibrator.fit(table).predict_proba(grid)
    np.testing.assert_allclose(by_table, by_rows, atol=2e-4)


def test_predictions_of_nothing_but_zero_and_one_get_finite_limits():
    fitted = Platt().fit([0.0, 1.0, 1.0], [0, 1, 0])
    np.testing.assert_allclose(fitted.limits_, [-np.log(7), np.log(7)])  # 2 n + 1
    np.testing.assert_allclose(fitted.predict_proba([0.5])[:, 1], expit(fitted.coefficients_[0]))
    logits = Platt(input="logits").fit([-3.0, 0.0, 3.0, 4.0], [0, 1, 1, 0])
    np.testing.assert_array_equal(logits.limits_, [-np.inf, np.inf])
