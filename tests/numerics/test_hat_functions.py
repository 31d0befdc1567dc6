"""Piecewise linear functions of a position."""

import numpy as np
import pytest

from calibrant.numerics.hat_functions import hat_functions, mid_ranks, orthonormal_hats, pool_starts, unit_scaled


def test_hats_add_up_to_one_and_are_one_at_their_knot():
    position = np.linspace(0, 1, 41)
    hats = hat_functions(position, 5)
    np.testing.assert_allclose(hats.sum(axis=1), 1)
    np.testing.assert_allclose(hats[::10], np.eye(5))
    assert hat_functions(position, 1).tolist() == [[1.0]] * 41


def test_orthonormal_functions_span_the_hats_that_have_weight():
    rng = np.random.default_rng(0)
    position, share = np.sort(rng.random(30)) / 2, rng.dirichlet(np.ones(30))  # the upper half is empty
    half = orthonormal_hats(position, share, 9)
    assert half.shape[1] < 9
    np.testing.assert_allclose(half.T @ (half * share[:, None]), np.eye(half.shape[1]), atol=1e-9)
    line = 2 - 3 * position
    np.testing.assert_allclose(half @ (half.T @ (share * line)), line, atol=1e-9)


def test_ranks_scales_and_pools():
    assert mid_ranks(np.array([0.2, 0.6, 0.2])) == pytest.approx([0.1, 0.5, 0.9])
    assert unit_scaled(np.array([1.0, 2.0, 5.0])).tolist() == [0, 0.25, 1]
    assert unit_scaled(np.array([1.0, 2.0, 5.0]), 2.0, 4.0).tolist() == [0, 0, 1]
    assert unit_scaled(np.full(3, 7.0)).tolist() == [0, 0, 0]
    assert pool_starts(np.array([0.0, 0.1, 0.6, 0.9, 1.0]), 2).tolist() == [0, 2]


def test_functions_are_zero_where_there_is_no_weight():
    position, share = np.linspace(0, 1, 6), np.array([0.3, 0.0, 0.2, 0.3, 0.0, 0.2])
    half = orthonormal_hats(position, share, 3)
    assert not half[share == 0].any()
    np.testing.assert_allclose(half.T @ (share[:, None] * half), np.eye(3), atol=1e-12)
