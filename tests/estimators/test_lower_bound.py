"""Lower confidence bounds of the variational estimate."""

import math

import numpy as np
import pytest

import calibrant as cal


@pytest.mark.parametrize("norm", [1, "squared", "kl"])
def test_split_sample_bounds_lie_below_the_truth_and_are_not_empty(norm):
    rng = np.random.default_rng(2)
    truth = {1: 0.128660, "squared": 0.019893, "kl": 0.1113}[norm]
    bound = cal.estimators.SplitSampleBound(level=0.9)
    lows = []
    for _ in range(40):
        f = rng.beta(0.5, 0.5, 2000)
        h = 1 / (1 + ((1 - f) / f) ** 0.4)
        lows.append(cal.calibration_error(rng.random(2000) < h, f, norm=norm, bound=bound).interval.low)
    assert np.mean(np.array(lows) > truth) <= 0.1 + 3 * math.sqrt(0.09 / 40)
    assert np.mean(lows) > (0.5 * truth if norm == 1 else 0)


def test_the_interval_says_what_it_is():
    rng = np.random.default_rng(3)
    f = rng.random(1000)
    y = rng.random(1000) < f**2
    exact = cal.calibration_error(y, f, bound=cal.estimators.SplitSampleBound())
    assert exact.interval.side == "lower"
    assert exact.interval.high == math.inf
    assert "betting" in exact.interval.method
    assert exact.n == 500
    assert exact.method.startswith("split sample")
    near = cal.calibration_error(y, f, bound=cal.estimators.CrossFittedBound(level=0.9))
    z = 1.2815515655446004
    assert near.interval.low == pytest.approx(near - z * 1.5 * near.details["standard_error"])
    assert near == cal.calibration_error(y, f)


def test_many_rows_use_sums():
    rng = np.random.default_rng(4)
    f = rng.random(200_000)
    found = cal.calibration_error(rng.random(200_000) < f**2, f, bound=cal.estimators.SplitSampleBound())
    assert "Bernstein" in found.interval.method
    assert 0.15 < found.interval.low < 1 / 6
    assert found.n == pytest.approx(100_000, rel=0.02)


def test_several_classes_have_bounds_too():
    rng = np.random.default_rng(5)
    f = rng.dirichlet(np.ones(3), 1500)
    data = cal.Multiclass((rng.random(1500)[:, None] > np.cumsum(f[:, ::-1], axis=1)).sum(axis=1).clip(0, 2), f)
    found = cal.calibration_error(data, norm=2, bound=cal.estimators.SplitSampleBound())
    assert 0 < found.interval.low < found


def test_exact_bounds_refuse_what_they_cannot_promise():
    rng = np.random.default_rng(6)
    f, y = rng.random(100), rng.integers(0, 2, 100)
    for extra in ({"weight": 1 + rng.random(100)}, {"group": np.arange(100) // 2}):
        with pytest.raises(ValueError, match="independent rows without weights"):
            cal.calibration_error(cal.Binary(y, f, **extra), bound=cal.estimators.SplitSampleBound())
    unbounded = cal.estimators.Distance(lambda f, q: ((f - q) ** 2)[:, 0], lambda f, q: 2 * (q - f))
    with pytest.raises(ValueError, match="give the Distance a `bound`"):
        cal.calibration_error(y, f, norm=unbounded, bound=cal.estimators.SplitSampleBound())
    bounded = cal.estimators.Distance(unbounded.phi, unbounded.grad, bound=1.0)
    assert cal.calibration_error(y, f, norm=bounded, bound=cal.estimators.SplitSampleBound()).interval.low < 0.2
    with pytest.raises(ValueError, match="level must lie in"):
        cal.estimators.SplitSampleBound(level=1.0)
