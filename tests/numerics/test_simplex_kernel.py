"""Kernel regression on the simplex: the double sum, blocks, and rows left out."""

import numpy as np
import pytest

from calibrant.numerics import simplex_kernel
from calibrant.numerics.simplex_kernel import SimplexKernel


def case(n=60, k=4):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(k), n), rng.integers(0, k - 1, n), rng.uniform(0.5, 2, n)  # the last class is absent


@pytest.mark.parametrize("block", [10, 10**6])
def test_shares_are_the_double_sum(block, monkeypatch):
    monkeypatch.setattr(simplex_kernel, "_BLOCK", block)
    p, y, w = case()
    new = np.random.default_rng(1).dirichlet(np.ones(4), 25)
    for h in (0.05, 0.1, 0.5):
        found = SimplexKernel.of(p, y, w).shares(new, h)
        for row, at in zip(found, new, strict=True):
            kernel = w * np.exp(-((at - p) ** 2).sum(axis=1) / (2 * h**2))
            np.testing.assert_allclose(row, np.bincount(y, kernel, 4) / kernel.sum(), atol=1e-9)


def test_far_from_all_rows_the_nearest_decides():
    kernel = SimplexKernel.of(np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1]]), np.array([2, 1]), None)
    np.testing.assert_allclose(kernel.shares(np.array([[1.0, 0.0, 0.0]]), 1e-3), [[0, 0, 1]], atol=1e-12)


@pytest.mark.parametrize("block", [10, 10**6])
def test_rows_are_left_out_one_by_one(block, monkeypatch):
    monkeypatch.setattr(simplex_kernel, "_BLOCK", block)
    p, y, w = case()
    kernel = SimplexKernel.of(p, y, w)
    rows = np.array([3, 17, 40])
    found = kernel.held_out_log_loss(rows, np.array([0.1, 0.3]), 1e-3)
    for h, loss in zip((0.1, 0.3), found, strict=True):
        total = 0.0
        for row in rows:
            others = np.arange(60) != row
            alone = SimplexKernel.of(kernel.at[others], kernel.codes[others], kernel.weight[others])
            hit = alone.shares(kernel.at[[row]], h)[0, kernel.codes[row]]
            total -= kernel.weight[row] * np.log(max(hit, 1e-3))
        assert loss == pytest.approx(total / kernel.weight[rows].sum())


def test_a_row_without_others_is_uniform():
    kernel = SimplexKernel.of(np.array([[0.9, 0.1, 0.0]]), np.array([0]), None)
    assert kernel.held_out_log_loss(np.array([0]), np.array([0.1]), 1e-3)[0] == pytest.approx(np.log(3))
