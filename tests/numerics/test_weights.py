"""Effective numbers of rows, and the variance of a mean."""

import numpy as np
import pytest

from calibrant.numerics.weights import Mass, effective_n, variance_of_mean


def test_equal_weights_are_as_many_rows_whatever_their_unit():
    assert effective_n(None, 7) == 7
    assert effective_n(np.full(7, 0.3), 7) == pytest.approx(7)


def test_kish_by_hand():
    assert effective_n(np.array([1.0, 1.0, 4.0]), 3) == pytest.approx(36 / 18)
    assert Mass.of(np.array([1.0, 2.0]), 2) == (3.0, 5.0)
    assert Mass(0.0, 0.0).effective_n == 0


def test_the_variance_of_a_mean_is_unbiased_and_unknown_from_one_row():
    rng = np.random.default_rng(0)
    rows = rng.random((20_000, 5)) < 0.3
    mean = rows.mean(axis=1)
    found = variance_of_mean(mean, mean, np.full(len(mean), 5.0))
    assert found.mean() == pytest.approx(0.3 * 0.7 / 5, rel=0.02)
    assert found == pytest.approx(rows.var(axis=1, ddof=1) / 5)
    assert np.isnan(variance_of_mean(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))).all()
