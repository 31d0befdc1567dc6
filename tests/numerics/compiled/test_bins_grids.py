"""Grids of many cells: the cells of the formula to the last bit, and long sums that keep twelve digits."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.binned_sums import equal_width_sums
from calibrant.numerics.rows import Rows
from calibrant.table.binning import HybridGrid, LogGrid
from calibrant.table.bintable import BinTable
from tests.numerics.compiled.both_ways import awkward_scores, with_and_without

pytest.importorskip("numba")


def test_long_sums_of_one_score_keep_twelve_digits(monkeypatch):
    n = 3_000_000
    p, y = np.full(n, 0.1), np.zeros(n, np.int8)
    exact = math.fsum([0.1] * 1000) * (n // 1000)
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    assert equal_width_sums(Rows(p, p, y), np.linspace(0, 1, 16), squares=False)[3, 1] == pytest.approx(
        exact, rel=1e-12
    )
    cells = BinTable.of(cal.Binary(y, p), HybridGrid(64))
    assert cells.predicted.sum() == pytest.approx(exact, rel=1e-12)


@pytest.mark.no_cover
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("grid", [HybridGrid(), HybridGrid(64, 5.0), HybridGrid(1)], ids=repr)
def test_cells_of_hybrid_grids_are_the_same_to_the_last_bit(grid, dtype, monkeypatch):
    edges = np.linspace(0, 1, 257)
    p = awkward_scores(edges, dtype, 40_000)
    y = np.random.default_rng(1).integers(0, 2, len(p))
    found, expected = with_and_without(monkeypatch, lambda: BinTable.of(cal.Binary(y, p), grid))
    for name in ("key", "low", "high", "count", "observed"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-12)


def test_cells_of_spreads_are_the_same_to_the_last_bit(monkeypatch):
    rng = np.random.default_rng(2)
    edges = np.exp(np.arange(-300, 300) / 1024)
    std = np.concatenate(
        [edges, np.nextafter(edges, 0), np.nextafter(edges, 9), rng.lognormal(size=5000), [1e-70, 1e70]]
    )
    data = cal.Gaussian(rng.normal(size=len(std)), np.zeros(len(std)), std)
    found, expected = with_and_without(monkeypatch, lambda: BinTable.of(data, LogGrid()))
    for name in ("key", "low", "high", "count"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-12)
