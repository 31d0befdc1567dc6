"""Levels of bands that hold everywhere at once."""

import numpy as np
import pytest

from calibrant.inference.simultaneous import check_band, pointwise_level


def test_points_that_do_not_vary_are_left_out():
    assert pointwise_level(np.zeros((3, 3)), 0.9) == 0.9
    one = np.diag([2.0, 0.0])
    assert pointwise_level(one, 0.9) == pytest.approx(0.9, abs=0.01)


def test_bands_of_correlated_gaussians_hold_together():
    rng = np.random.default_rng(5)
    covariance = np.exp(-np.abs(np.subtract.outer(np.arange(20), np.arange(20))) / 5.0)
    drawn = rng.multivariate_normal(np.zeros(20), covariance, 4000)
    from scipy.special import ndtri

    k = ndtri((1 + pointwise_level(covariance, 0.95)) / 2)
    assert np.mean(np.abs(drawn).max(axis=1) <= k) == pytest.approx(0.95, abs=0.015)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="band must be one of"):
        check_band("uniform")
