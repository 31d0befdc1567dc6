"""Multinomial regression with a line per class, against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.numerics.multinomial_lines import MultinomialLines


def made(n=150, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    eta = np.column_stack([np.zeros(n), [0.3, -0.2] + [0.8, 1.4] * x])
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    codes = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    return MultinomialLines(x, codes, rng.gamma(2.0, size=n))


def written_out(lines, parameters):
    eta = np.column_stack([np.zeros(len(lines.x)), parameters[:2] + parameters[2:] * lines.x])
    logs = eta - np.log(np.exp(eta).sum(axis=1, keepdims=True))
    return -lines.weight @ logs[np.arange(len(eta)), lines.codes]


def test_the_fit_is_the_minimum_of_the_loss_written_out():
    lines = made()
    at, loss, found = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4, dtype=bool))
    other = minimize(lambda t: written_out(lines, t), np.zeros(4), tol=1e-12)
    assert found
    assert loss == pytest.approx(other.fun)
    assert at == pytest.approx(other.x, abs=1e-4)
    fixed, _, _ = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), np.array([True, True, False, False]))
    assert fixed[2:].tolist() == [1.0, 1.0]


def test_derivatives_are_those_of_the_loss():
    lines, at, step = made(), np.array([0.1, -0.3, 0.7, 1.2]), 1e-5
    unit = np.eye(4) * step
    gradient = [(written_out(lines, at + d) - written_out(lines, at - d)) / (2 * step) for d in unit]
    assert -(lines.weight @ lines.residuals(at)) == pytest.approx(np.array(gradient), rel=1e-5)
    hessian = [-(lines.weight @ (lines.residuals(at + d) - lines.residuals(at - d))) / (2 * step) for d in unit]
    assert lines.information(at) == pytest.approx(np.array(hessian), rel=1e-4, abs=1e-3)


def test_limits_are_where_the_profile_rises():
    lines, free = made(), np.ones(4, dtype=bool)
    best, loss, _ = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), free)
    low, high = lines.limits(best, free, 2, 1.92, 0.1)
    for end in (low, high):
        profile = minimize(
            lambda t, end=end: written_out(lines, np.insert(t, 2, end)), np.delete(best, 2), tol=1e-12
        ).fun
        assert profile - loss == pytest.approx(1.92, abs=1e-3)
    assert low < best[2] < high


def test_separated_outcomes_have_no_fit():
    x = np.linspace(-1, 1, 20)[:, None]
    assert not MultinomialLines(x, (x[:, 0] > 0).astype(int), np.ones(20)).fit(np.array([0.0, 1.0]), np.ones(2, bool))[
        2
    ]


def test_limits_are_found_where_one_row_keeps_a_class_from_being_separated():
    """One event of the first class, and one row beyond it: the best slope is far out, but slopes below 1 are likely."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet([0.05, 1, 2], 60) * 0.999 + 0.0003
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((60, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    lines = MultinomialLines(np.log(p[:, :2] / p[:, 2:]), np.array([1, 2, 0])[y], np.ones(60))
    free = np.ones(4, dtype=bool)
    best, lowest, found = lines.fit(np.array([0.0, 0.0, 1.0, 1.0]), free)
    low, high = lines.limits(best, free, 2, 1.92, 30.0)
    assert found
    assert best[2] > 15

    def profile(slope, intercept):
        others = minimize(lambda t: written_out(lines, np.array([t[0], t[1], slope, t[2]])), [intercept, -0.5, 0.75])
        return others.fun

    assert profile(low, 0.0) - lowest == pytest.approx(1.92, abs=1e-3)
    assert low < 1
    assert high > 30
