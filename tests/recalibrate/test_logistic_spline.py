"""The penalised logistic spline: its basis, its penalty, and worlds of known answer."""

import numpy as np
import pytest
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit, logsumexp

from calibrant.numerics.logistic.stacked import logistic_fits
from calibrant.recalibrate import Platt, Quadratic, Spline
from calibrant.recalibrate.logistic import _directions, _evidence, natural_spline_basis
from tests.recalibrate.worlds import quadratic_world


def test_the_spline_basis_is_that_of_scipys_natural_spline():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=8))
    values = rng.normal(size=8)
    peer = CubicSpline(knots, values, bc_type="natural")
    x = np.linspace(knots[0], knots[-1], 200)
    np.testing.assert_allclose(natural_spline_basis(x, knots) @ values, peer(x), atol=1e-10)
    beyond = np.array([knots[0] - 2, knots[-1] + 3])
    line = [peer(knots[0]) - 2 * peer(knots[0], 1), peer(knots[-1]) + 3 * peer(knots[-1], 1)]
    np.testing.assert_allclose(natural_spline_basis(beyond, knots) @ values, line, atol=1e-10)


def test_the_penalty_is_the_integral_of_the_squared_second_derivative():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.random(7))
    knots = (knots - knots[0]) / (knots[-1] - knots[0])
    coordinates = rng.normal(size=7)
    second = CubicSpline(knots, _directions(knots) @ coordinates, bc_type="natural")
    x = np.linspace(0, 1, 200_001)
    integral = np.trapezoid(second(x, 2) ** 2, x)
    assert (coordinates[2:] ** 2).sum() == pytest.approx(integral, rel=1e-6)


def test_the_spline_shrinks_to_platt_on_calibrated_scores():
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 0.8, 5000)
    y = rng.random(5000) < p
    grid = np.linspace(0.02, 0.98, 97)
    spline, platt = Spline().fit(p, y), Platt().fit(p, y)
    np.testing.assert_allclose(spline.predict_proba(grid), platt.predict_proba(grid), atol=0.02)


def test_the_spline_follows_a_curve_that_no_polynomial_does():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    truth = expit(logit(p) + np.sin(2 * logit(p)))
    y = rng.random(20_000) < truth
    q = Spline().fit(p, y).predict_proba(p)[:, 1]
    quadratic = Quadratic().fit(p, y).predict_proba(p)[:, 1]
    assert np.mean((q - truth) ** 2) < 0.15 * np.mean((quadratic - truth) ** 2)
    assert np.sqrt(np.mean((q - truth) ** 2)) < 0.02


@pytest.mark.parametrize("smoothness", [0.1, 3.0, 100.0])
def test_the_evidence_is_the_logarithm_of_the_marginal_likelihood(smoothness):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    positive = (rng.random(300) < expit(0.3 * x[:, 0])).astype(float)
    precision = np.array([smoothness])
    fits = logistic_fits(x, np.zeros(300), positive[None], 1 - positive[None], precision[None], tolerance=1e-9)
    b = np.linspace(-3, 3, 6001)
    eta = x * b
    log_joint = positive @ eta - np.logaddexp(0, eta).sum(axis=0) + stats.norm(0, smoothness**-0.5).logpdf(b)
    integral = logsumexp(log_joint) + np.log(b[1] - b[0])
    assert _evidence(fits, precision, np.array([True]))[0] == pytest.approx(integral, abs=0.02)


def test_rows_are_pooled_into_1024_groups():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=4096))
    knots = Spline(input="logits").fit(x, rng.random(4096) < expit(x)).knots_
    assert knots[[0, -1]] == pytest.approx([x[:4].mean(), x[-4:].mean()])


def test_the_chosen_smoothness_has_the_largest_evidence():
    p, y = quadratic_world(1500)
    chosen = Spline().fit(p, y).smoothness_
    x, order = np.sort(logit(p)), np.argsort(p)
    knots = Spline().fit(p, y).knots_
    design = natural_spline_basis(x, knots) @ _directions(knots)
    bends = np.arange(len(knots)) >= 2
    smoothness, outcomes = 10.0 ** np.arange(-4.0, 7.0, 0.5), y[order].astype(float)
    penalties = np.outer(smoothness, bends) + 1e-6 * np.ones(len(knots))
    fits = logistic_fits(design, x, outcomes[None], 1 - outcomes[None], penalties, tolerance=1e-9)
    best = np.log10(smoothness[_evidence(fits, smoothness, bends).argmax()])
    assert abs(np.log10(chosen) - best) <= 0.5  # rows are pooled into 1024 groups before the fit
