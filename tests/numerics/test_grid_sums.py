"""Sums per cell in batches: the cells of the formula, whatever the size of the batches."""

import numpy as np
import pytest

from calibrant.numerics.binned_sums import exact_hybrid_index
from calibrant.numerics.grid_sums import HybridSums, LogSums

numba = pytest.importorskip("numba")


@pytest.fixture(scope="module")
def kernels():
    from calibrant.numerics.compiled import loops

    return loops


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
    key, low, high, (count, *_, predicted, positives, squares, product, _) = sums.cells()
    np.testing.assert_array_equal(key, np.unique(where))
    np.testing.assert_array_equal(count, np.bincount(where)[key])
    np.testing.assert_array_equal(positives, np.bincount(where, y)[key])
    for found, values in ((predicted, p), (squares, p * p), (product, p * y)):
        np.testing.assert_allclose(found, np.bincount(where, values)[key], rtol=1e-11)
    for k, lowest, highest in zip(key, low, high, strict=True):
        assert (lowest, highest) == (p[where == k].min(), p[where == k].max())


def test_rows_on_edges_are_placed_by_the_formula(kernels):
    cells, limit = 2**10, 37.0
    half = np.full(5000, 0.5)  # on the edge between the two cells in the middle
    sums = HybridSums(kernels, cells, limit)
    sums.take(np.ones(5000, np.int8), half)
    key, low, high, found = sums.cells()
    assert key.tolist() == exact_hybrid_index(half[:1], cells, limit).tolist()
    assert (found[0].tolist(), found[4].tolist(), low.tolist(), high.tolist()) == ([5000], [5000], [0.5], [0.5])


def test_keys_on_edges_of_the_logarithm_are_placed_by_the_formula(kernels):
    key = np.exp(np.arange(-20, 20) / 10)
    first = int(np.floor(np.log(key) * 10).min())
    sums = LogSums(kernels, 10, first, 41)
    sums.take(key, key**2, np.ones(len(key)))
    expected = np.bincount(np.floor(np.log(key) * 10).astype(int) - first, minlength=41)
    cell, _, _, found = sums.cells()
    np.testing.assert_array_equal(cell, np.flatnonzero(expected))
    np.testing.assert_array_equal(found[0], expected[cell])
