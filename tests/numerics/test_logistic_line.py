"""The likelihood of a logistic regression on one variable."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.numerics import logistic_line
from calibrant.numerics.logistic_line import LogisticLine
from calibrant.numerics.special import expit

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
    line = LogisticLine(z, np.ones(n), (rng.random(n) < expit(0.8 * z - 0.7)).astype(float))
    passes = []
    monkeypatch.setattr(logistic_line, "expit", lambda x: passes.append(1) or expit(x))
    at = line.intercept(1.3)
    assert len(passes) <= 8
    expected, observed = float(expit(at + 1.3 * z).sum()), float(line.events.sum())
    assert expected == pytest.approx(observed, rel=1e-13)
