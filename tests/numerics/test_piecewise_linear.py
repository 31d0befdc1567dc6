"""Piecewise linear functions of a position, and lines that stay close to a function."""

import numpy as np
import pytest

from calibrant.numerics.piecewise_linear import (
    broken_line,
    hat_functions,
    mid_ranks,
    orthonormal_hats,
    pool_starts,
    unit_scaled,
)


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


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
@pytest.mark.parametrize(
    "function", [np.sin, np.tanh, np.abs, lambda x: np.exp(-x * x)], ids=["sin", "tanh", "abs", "bell"]
)
def test_the_line_is_nowhere_further_off_than_asked_for(function, tolerance):
    x, y = broken_line(function, np.linspace(-5, 5, 11), tolerance=tolerance)
    dense = np.linspace(-5, 5, 20_001)
    assert np.abs(np.interp(dense, x, y) - function(dense)).max() < 1.2 * tolerance
    np.testing.assert_array_equal(y, function(x))
    assert (np.diff(x) > 0).all()


def test_a_line_is_left_as_it_is_and_a_curve_gets_points_where_it_bends():
    x, _ = broken_line(lambda x: 3 * x - 1, np.array([0.0, 2.0, 5.0]), tolerance=1e-9)
    assert x.tolist() == [0.0, 2.0, 5.0]
    x, _ = broken_line(lambda x: np.tanh(20 * x), np.linspace(-4, 4, 9), tolerance=1e-3)
    assert np.mean(np.abs(x) < 0.5) > 0.7


def test_a_jump_ends_the_search_instead_of_going_on_for_ever():
    x, y = broken_line(lambda x: (x > 0.3).astype(float), np.array([0.0, 1.0]), tolerance=1e-3)
    assert len(x) < 60
    assert np.interp(0.3001, x, y) == 1
