"""assert_calibrated fails for models that are off, and rarely for others."""

import numpy as np
import pytest

import calibrant as cal


def test_a_model_that_is_off_fails_and_says_by_how_much(rows):
    y, p = rows
    with pytest.raises(AssertionError, match=r"above 0\.02: <.*at 95%"):
        cal.assert_calibrated(y, p)
    assert cal.assert_calibrated(y, p, below=0.2) == pytest.approx(0.1, abs=0.03)


def test_a_calibrated_model_of_any_size_rarely_fails():
    rng = np.random.default_rng(1)
    failures = 0
    for _ in range(40):
        p = rng.random(300)
        try:
            cal.assert_calibrated(rng.random(300) < p, p, below=0.001)
        except AssertionError:
            failures += 1
    assert failures <= 5  # 2 are expected; 6 or more come once in a hundred such tests


def test_without_level_the_estimate_decides(rows):
    y, p = rows
    with pytest.raises(AssertionError, match="Averaged error"):
        cal.assert_calibrated(y[:100], p[:100], level=None, below=0.001)


def test_all_tasks_can_be_asserted():
    rng = np.random.default_rng(2)
    std = rng.lognormal(0, 0.3, 2000)
    noise = std * rng.normal(size=2000)
    cal.assert_calibrated(cal.Gaussian(noise, np.zeros(2000), std))
    with pytest.raises(AssertionError, match="Interval error"):
        cal.assert_calibrated(cal.Gaussian(3 * noise, np.zeros(2000), std))
    p = rng.dirichlet([1, 1, 1], 2000)
    with pytest.raises(AssertionError):
        cal.assert_calibrated(cal.Multiclass(rng.integers(0, 3, 2000), p))
    score = rng.random(4000)
    positive = rng.random(4000)[rng.random(4000) < 0.5]
    with pytest.raises(AssertionError):
        cal.assert_calibrated(cal.PositiveUnlabeled(positive, score, prior=0.5))
