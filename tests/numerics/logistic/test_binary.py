"""The one logistic Newton: against SciPy, with offset, penalty, ridge, bounds, and two samples."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.numerics.arrays import expit as expit_of_special
from calibrant.numerics.logistic import binary as logistic_line
from calibrant.numerics.logistic.binary import (
    RIDGE,
    LogisticLine,
    affine,
    logistic_fit,
    nonnegative_logistic_fit,
    positive_unlabeled_fit,
)


def cells(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    weight = rng.uniform(0.5, 3, n)
    return affine(x), weight, weight * expit(0.3 + 1.7 * x)


def logistic_loss(beta, design, weight, positive, offset=0.0):
    eta = design @ beta + offset
    return weight @ np.logaddexp(0, eta) - positive @ eta


def by_scipy(function, size, **options):
    found = minimize(function, np.zeros(size), method="BFGS", options={"gtol": 1e-10}, **options)
    return found.x


def test_the_coefficients_behind_exact_rates_are_found():
    design, weight, positive = cells()
    fit = logistic_fit(design, weight=weight, positive=positive, start=np.zeros(2))
    np.testing.assert_allclose(fit.coefficients, [0.3, 1.7], atol=1e-7)
    assert fit.loss == pytest.approx(logistic_loss(fit.coefficients, design, weight, positive), rel=1e-12)


def test_offset_and_penalty_enter_as_the_formula_says():
    design, weight, positive = cells()
    offset, penalty = np.linspace(-1, 1, len(weight)), np.array([[30.0, 5.0], [5.0, 20.0]])
    fit = logistic_fit(design, weight=weight, positive=positive, start=np.zeros(2), offset=offset, penalty=penalty)

    def objective(beta):
        return logistic_loss(beta, design, weight, positive, offset) + 0.5 * beta @ penalty @ beta

    np.testing.assert_allclose(fit.coefficients, by_scipy(objective, 2), atol=2e-6)
    eta = design @ fit.coefficients + offset
    information = (design.T * (weight * expit(eta) * expit(-eta))) @ design
    np.testing.assert_allclose(fit.curvature, information + penalty, rtol=1e-6)


def test_the_ridge_pulls_towards_the_start_in_units_of_the_columns():
    design, weight, positive = cells()
    start, ridge = np.array([0.0, 1.0]), 0.5
    fit = logistic_fit(design, weight=weight, positive=positive, start=start, ridge=ridge)
    squares = weight @ design**2

    def objective(beta):
        return logistic_loss(beta, design, weight, positive) + ridge / 2 * squares @ (beta - start) ** 2

    np.testing.assert_allclose(fit.coefficients, by_scipy(objective, 2), atol=2e-6)


def test_the_optimum_does_not_depend_on_where_it_begins():
    design, weight, positive = cells()
    near, far = (
        logistic_fit(design, weight=weight, positive=positive, start=np.array(start), ridge=0.0).coefficients
        for start in ([0.0, 1.0], [-40.0, 60.0])
    )
    np.testing.assert_allclose(near, far, atol=1e-9)


def test_separable_outcomes_have_a_finite_fit():
    x = np.array([-2.0, -1.0, 1.0, 2.0])
    fit = logistic_fit(affine(x), weight=np.ones(4), positive=np.array([0.0, 0, 1, 1]), start=np.zeros(2))
    assert 5 < fit.coefficients[1] < 100
    assert fit.loss < 1e-5
    assert RIDGE > 0


def test_many_rows_are_summed_in_chunks_like_few():
    design, weight, positive = cells(200_000, seed=1)
    fit = logistic_fit(design, weight=weight, positive=positive, start=np.zeros(2), ridge=0.0)
    np.testing.assert_allclose(fit.coefficients, [0.3, 1.7], atol=1e-9)


@pytest.mark.parametrize("truth", [[1.0, 2.0, 0.2], [-1.0, 1.5, 0.0], [1.5, -0.5, 0.1], [-1.0, -1.0, 0.4]])
def test_bounds_are_met_exactly(truth):
    rng = np.random.default_rng(2)
    design = np.column_stack([rng.normal(size=(300, 2)), np.ones(300)])
    weight = np.ones(300)
    positive = expit(design @ truth)
    found = nonnegative_logistic_fit(design, weight=weight, positive=positive, start=np.array([1.0, 1.0, 0.0]))
    expected = minimize(
        logistic_loss,
        np.ones(3),
        args=(design, weight, positive),
        method="L-BFGS-B",
        bounds=[(0, None), (0, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    np.testing.assert_allclose(found, expected.x, atol=2e-5)
    assert (found[:2] >= 0).all()


def test_two_samples_give_the_unbiased_risk():
    rng = np.random.default_rng(3)
    positive, unlabeled = affine(rng.normal(1, 1, 60)), affine(rng.normal(0, 1, 400))
    masses = {"positive_mass": np.full(60, 0.4 / 60), "unlabeled_mass": np.full(400, 1 / 400)}
    start, ridge = np.array([0.0, 1.0]), 0.02
    found = positive_unlabeled_fit(positive, unlabeled, start=start, ridge=ridge, **masses)

    def risk(beta):
        pull = ridge / 2 * (unlabeled**2).mean(axis=0) @ (beta - start) ** 2
        return np.logaddexp(0, unlabeled @ beta).mean() - 0.4 * (positive @ beta).mean() + pull

    np.testing.assert_allclose(found, by_scipy(risk, 2), atol=2e-5)
    falling = ([-1, 1] * design[:, ::-1] for design in (positive, unlabeled))
    bounded = positive_unlabeled_fit(*falling, start=start[::-1], ridge=ridge, nonnegative=True, **masses)
    assert bounded[0] == 0  # the best slope would be negative


def test_two_samples_that_are_one_are_ordinary_logistic_regression():
    design, weight, positive = cells()
    ordinary = logistic_fit(design, weight=weight, positive=positive, start=np.zeros(2), ridge=1e-6)
    both = positive_unlabeled_fit(
        design, design, positive_mass=positive, unlabeled_mass=weight, start=np.zeros(2), ridge=1e-6
    )
    np.testing.assert_allclose(both, ordinary.coefficients, atol=1e-10)


RNG = np.random.default_rng(3)
Z = np.sort(RNG.normal(size=80))
S = (RNG.random(80) < 1 / (1 + np.exp(0.5 - 0.7 * Z))).astype(float)
LINE = LogisticLine(Z, np.ones(80), S)


def loss(a, b):
    return float(np.sum(np.log1p(np.exp(a + b * Z)) - S * (a + b * Z)))


def test_the_fit_and_the_profile_are_minima():
    best = minimize(lambda ab: loss(*ab), [0.0, 0.0], method="BFGS", tol=1e-10)
    assert LINE.fit() == pytest.approx(tuple(best.x), abs=1e-5)
    assert LINE.smallest_loss() == pytest.approx(best.fun)
    for b in (-2.0, 0.0, 3.0, 200.0):
        a = LINE.intercept(b)
        assert np.sum(1 / (1 + np.exp(-(a + b * Z)))) == pytest.approx(S.sum(), abs=1e-6)
    assert LINE.profile_loss(1.3) == pytest.approx(minimize(lambda a: loss(a[0], 1.3), [0.0]).fun)
    assert LINE.intercept(1.0, events=20) < LINE.intercept(1.0, events=30)


def test_the_limits_have_the_profile_loss_asked_for():
    low, high = LINE.slope_limits(2.0)
    assert low < LINE.fit()[1] < high
    for end in (low, high):
        assert LINE.profile_loss(end) == pytest.approx(LINE.smallest_loss() + 2.0)


@pytest.mark.parametrize("direction", [1, -1])
def test_separation_leaves_one_end(direction):
    z = np.array([-2.0, -1.0, 0.5, 2.0])
    events = np.array([0.0, 0.0, 1.0, 2.0])  # the third cell holds both outcomes
    line = LogisticLine(z, np.full(4, 2.0), events if direction > 0 else events[::-1].copy())
    assert line.separation == direction
    assert line.smallest_loss() == pytest.approx(2 * np.log(2))
    low, high = line.slope_limits(1.92)
    assert (np.isinf(low), np.isinf(high)) == (direction < 0, direction > 0)
    end = low if direction > 0 else high
    assert line.profile_loss(end) == pytest.approx(line.smallest_loss() + 1.92)
    assert line.profile_loss(300.0 * direction) == pytest.approx(line.smallest_loss(), abs=1e-6)


def test_one_outcome_and_one_value_say_nothing_about_the_slope():
    nothing = LogisticLine(Z, np.ones(80), np.zeros(80))
    assert nothing.only_outcome == 0
    assert nothing.intercept(1.0) == -np.inf
    assert nothing.slope_limits(1.92) == (-np.inf, np.inf)
    assert LogisticLine(Z, np.ones(80), np.ones(80)).intercept(1.0) == np.inf
    flat = LogisticLine(np.zeros(3), np.ones(3), np.array([0.0, 1.0, 1.0]))
    assert flat.separation == 0
    assert flat.slope_limits(1.92) == (-np.inf, np.inf)
    assert flat.smallest_loss() == pytest.approx(-np.log(1 / 3) - 2 * np.log(2 / 3))


def test_the_curvature_is_the_second_derivative_of_the_loss():
    h = 1e-4
    found = LINE.curvature(0.2, 0.9)
    second = (LINE.loss(0.2, 0.9 + h) - 2 * LINE.loss(0.2, 0.9) + LINE.loss(0.2, 0.9 - h)) / h**2
    assert found[1, 1] == pytest.approx(second, rel=1e-4)
    assert found[0, 1] == found[1, 0]


@pytest.mark.parametrize("n", [50, 200_000])
def test_the_intercept_takes_few_passes_however_many_rows(n, monkeypatch):
    rng = np.random.default_rng(0)
    z = np.sort(rng.normal(1.0, 2.0, n))
    line = LogisticLine(z, np.ones(n), (rng.random(n) < expit_of_special(0.8 * z - 0.7)).astype(float))
    passes = []
    monkeypatch.setattr(logistic_line, "expit", lambda x: passes.append(1) or expit_of_special(x))
    at = line.intercept(1.3)
    assert len(passes) <= 8
    expected, observed = float(expit_of_special(at + 1.3 * z).sum()), float(line.events.sum())
    assert expected == pytest.approx(observed, rel=1e-13)
