"""Effective numbers of rows, and the variance of a mean."""

import numpy as np
import pytest

from calibrant.numerics.weights import (
    Mass,
    effective_n,
    importance_weights,
    mean_and_error,
    variance_of_mean,
    weighted_rows,
)


def test_equal_weights_are_as_many_rows_whatever_their_unit():
    assert effective_n(None, 7) == 7
    assert effective_n(np.full(7, 0.3), 7) == pytest.approx(7)


def test_kish_by_hand():
    assert effective_n(np.array([1.0, 1.0, 4.0]), 3) == pytest.approx(36 / 18)
    assert Mass.of(np.array([1.0, 2.0]), 2) == (3.0, 5.0)
    assert Mass(0.0, 0.0).effective_n == 0


def test_importance_weights_have_no_unit_and_add_up_to_the_effective_number_of_rows():
    weight = np.array([1.0, 1.0, 4.0])
    for unit in (1e-150, 0.1, 1, 7, 1e150):
        assert importance_weights(unit * weight) == pytest.approx(weight * (2 / 6))
    assert importance_weights(None) is None
    assert importance_weights(np.full(5, 0.1)) is None
    assert importance_weights(np.array([0.3, 0.1 + 0.2])) is None  # the same up to rounding


def test_importance_weights_of_entries_that_stand_for_more_rows_add_up_to_these():
    counts = np.array([3.0, 1.0, 2.0])
    assert importance_weights(counts, 6.0) is counts
    assert importance_weights(0.1 * counts, 6.0) == pytest.approx(counts)
    assert importance_weights(np.ones(2), 6.0) == pytest.approx([3, 3])


def test_rows_without_weight_next_to_the_largest_are_none():
    np.testing.assert_array_equal(weighted_rows(np.array([0.0, 1e-300, 1e70, 1.0])), [2, 3])


def test_the_variance_of_a_mean_is_unbiased_and_unknown_from_one_row():
    rng = np.random.default_rng(0)
    rows = rng.random((20_000, 5)) < 0.3
    mean = rows.mean(axis=1)
    found = variance_of_mean(mean, mean, np.full(len(mean), 5.0))
    assert found.mean() == pytest.approx(0.3 * 0.7 / 5, rel=0.02)
    assert found == pytest.approx(rows.var(axis=1, ddof=1) / 5)
    assert np.isnan(variance_of_mean(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))).all()


def test_the_error_of_a_mean_counts_clusters_once():
    values, weight = np.arange(10.0), np.ones(10)
    assert mean_and_error(values, weight) == pytest.approx((4.5, values.std() / np.sqrt(10)))
    doubled = mean_and_error(np.repeat(values, 2), np.ones(20), np.repeat(np.arange(10), 2))
    assert doubled == pytest.approx(mean_and_error(values, weight))
