"""Sums per cell in batches: the cells of the formula, whatever the size of the batches."""

import numpy as np
import pytest

from calibrant.numerics.binned_sums import exact_hybrid_index
from calibrant.numerics.grid_sums import HybridSums, LogSums

numba = pytest.importorskip("numba")


@pytest.fixture(scope="module")
def kernels():
    from calibrant.numerics import compiled

    return compiled


@pytest.mark.parametrize("batch", [1, 7, 1000, 200_000])
def test_batches_of_any_size_add_up_to_the_sums_of_the_rows(kernels, batch):
    rng = np.random.default_rng(0)
    n, cells, limit = (300 if batch == 1 else 150_000), 128, 20.0
    p = rng.beta(0.4, 0.3, n)
    y = (rng.random(n) < p).astype(np.int8)
    sums = HybridSums(kernels, cells, limit)
    for start in range(0, n, batch):
        sums.take(y[start : start + batch], p[start : start + batch])
    where = exact_hybrid_index(p, cells, limit)
    count, positives, predicted, squares, product, low, high = sums.columns()
    np.testing.assert_array_equal(count, np.bincount(where, minlength=cells))
    np.testing.assert_array_equal(positives, np.bincount(where, y, cells))
    for found, values in ((predicted, p), (squares, p * p), (product, p * y)):
        np.testing.assert_allclose(found, np.bincount(where, values, cells), rtol=1e-11)
    for k in np.flatnonzero(count):
        assert (low[k], high[k]) == (p[where == k].min(), p[where == k].max())


def test_rows_on_edges_are_placed_by_the_formula(kernels):
    cells, limit = 2**10, 37.0
    half = np.full(5000, 0.5)  # on the edge between the two cells in the middle
    sums = HybridSums(kernels, cells, limit)
    sums.take(np.ones(5000, np.int8), half)
    count = sums.columns()[0]
    assert count[exact_hybrid_index(half[:1], cells, limit)[0]] == 5000
    assert count.sum() == 5000


def test_keys_on_edges_of_the_logarithm_are_placed_by_the_formula(kernels):
    key = np.exp(np.arange(-20, 20) / 10)
    first = int(np.floor(np.log(key) * 10).min())
    sums = LogSums(kernels, 10, first, 41)
    sums.take(key, key**2, np.ones(len(key)))
    expected = np.bincount(np.floor(np.log(key) * 10).astype(int) - first, minlength=41)
    np.testing.assert_array_equal(sums.columns()[0], expected)
