"""Sums per cell in batches: the cells of the formula, whatever the size of the batches."""

import numpy as np
import pytest

from calibrant.numerics import binned_sums as grid_sums
from calibrant.numerics.binned_sums import HybridSums, LogSums, exact_hybrid_index

numba = pytest.importorskip("numba")


@pytest.fixture(scope="module")
def kernels():
    from calibrant.numerics.compiled import loops

    return loops


@pytest.mark.no_cover
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
    sums = LogSums(kernels, 10)
    assert sums.take(key, key**2, np.ones(len(key)))
    expected, count = np.unique(np.floor(np.log(key) * 10), return_counts=True)
    cell, _, _, found = sums.cells()
    np.testing.assert_array_equal(cell, expected)
    np.testing.assert_array_equal(found[0], count)


def test_a_table_of_logarithms_grows_with_its_keys(kernels):
    rng = np.random.default_rng(3)
    parts = [rng.lognormal(sigma=sigma, size=3000) for sigma in (0.1, 1.0, 0.5, 5.0)]
    parts += [np.full(2000, 1e-9), np.full(2000, 1e9)]
    sums = LogSums(kernels, 100)
    for key in parts:
        assert sums.take(key, key**2, key**2 / 2)
    key = np.concatenate(parts)
    where = np.floor(np.log(key) * 100).astype(int)
    cell, low, high, (count, *_, predicted, observed, _, _, _) = sums.cells()
    np.testing.assert_array_equal(cell, np.unique(where))
    np.testing.assert_array_equal(count, np.bincount(where - where.min())[cell - where.min()])
    np.testing.assert_allclose(predicted, [(key[where == k] ** 2).sum() for k in cell], rtol=1e-12)
    np.testing.assert_allclose(observed, predicted / 2, rtol=1e-12)
    np.testing.assert_array_equal(low, [key[where == k].min() for k in cell])
    np.testing.assert_array_equal(high, [key[where == k].max() for k in cell])


@pytest.mark.parametrize("bad", [5e-324, 2.0**-1023, 0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("before", [0, 5000])
def test_keys_that_are_not_normal_numbers_are_left_to_others(kernels, bad, before):
    key = np.append(np.linspace(0.1, 10, before), bad)
    with np.errstate(all="raise"):
        assert not LogSums(kernels, 100).take(key, np.ones(len(key)), np.ones(len(key)))


def test_keys_too_far_apart_are_left_to_others(kernels, monkeypatch):
    monkeypatch.setattr(grid_sums, "MOST_CELLS", 5000)
    key = np.array([1e-100, 1e100])
    assert LogSums(kernels, 10).take(key, key, key)
    assert not LogSums(kernels, 11).take(key, key, key)
