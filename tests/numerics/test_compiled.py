"""Compiled loops: the same bins, cells, edges and blocks as without them, and sums that are exact to 1e-12."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.sweep import largest_rising
from calibrant.numerics.binned_sums import checked_equal_width_sums, equal_width_sums
from calibrant.numerics.isotonic import isotonic_blocks, pool_adjacent_violators
from calibrant.numerics.radix_buckets import BUCKETS, radix_bucket_sums, rows_in
from calibrant.numerics.rows import Rows
from calibrant.numerics.running_gaps import running_gap_extremes
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.numerics.sorting import sorted_rows
from calibrant.table.binning import HybridGrid, LogGrid
from calibrant.table.bintable import BinTable

numba = pytest.importorskip("numba")


def with_and_without(monkeypatch, action):
    """The results of an action with the compiled loops and without them."""
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    found = action()
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    return found, action()


def awkward_scores(edges, dtype, n=3000):
    """Edges and their neighbours, the ends, subnormal numbers, ties, and scores that crowd near 1 and near 0."""
    rng = np.random.default_rng(len(edges))
    near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    ends = [0.0, -0.0, 1.0, 5e-324, 1e-300, 1e-40, 1 - 2**-53, 1 - 2**-24, 0.5]
    crowd = rng.beta(1.1, 0.1, n)
    return np.concatenate([near, ends, crowd, 1 - crowd, rng.random(n), rng.random(n).round(2)]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 15, 33, 100])
def test_bins_of_equal_width_are_those_of_a_search_to_the_last_bit(bins, dtype, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    edges = np.linspace(0, 1, bins + 1)
    p = awkward_scores(edges, dtype)
    y = (np.random.default_rng(0).random(len(p)) < p).astype(np.int8)
    where = np.searchsorted(edges[1:-1], p, side="left")
    found = equal_width_sums(Rows(p, p, y), edges, squares=False)
    np.testing.assert_array_equal(found[0], np.bincount(where, minlength=bins))
    np.testing.assert_array_equal(found[4], np.bincount(where, y, bins))
    for k in range(bins):
        for column, some in ((3, where == k), (6, (where == k) & (y == 1))):
            exact = math.fsum(p[some].astype(np.float64))
            assert found[column, k] == pytest.approx(exact, rel=1e-13, abs=0)


@pytest.mark.parametrize("n", [1, 15, 16, 1023, 1024, 1025, 17_000])
@pytest.mark.parametrize("label", [np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_rows_that_nobody_checked_are_checked_and_summed_at_once(n, label, monkeypatch):
    rng = np.random.default_rng(n)
    p = rng.beta(1.1, 0.1, n)
    y = (rng.random(n) < p).astype(label)
    edges = np.linspace(0, 1, 16)
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    found = checked_equal_width_sums(y, p, edges)
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    assert checked_equal_width_sums(y, p, edges) is None
    expected = equal_width_sums(Rows(p, p, y.astype(np.int8)), edges, squares=False)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("place", [0, 1023, 1024, 4999])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e-300, 1 + 2**-52, 2.0])
def test_a_bad_score_is_refused_in_the_same_words(bad, place, monkeypatch):
    rng = np.random.default_rng(0)
    p, y = rng.random(5000), rng.integers(0, 2, 5000)
    p[place] = bad

    def words():
        with pytest.raises(InvalidPredictions) as refused:
            cal.ece(y, p, bins=cal.EqualWidth(15))
        return str(refused.value)

    found, expected = with_and_without(monkeypatch, words)
    assert found == expected


@pytest.mark.parametrize("bad", [2, -1, 127, -128])
def test_a_bad_label_is_refused_in_the_same_words(bad, monkeypatch):
    p, y = np.full(3000, 0.5), np.ones(3000, np.int8)
    y[1500] = bad

    def words():
        with pytest.raises(InvalidPredictions) as refused:
            cal.ece(y, p, bins=cal.EqualWidth(15))
        return str(refused.value)

    found, expected = with_and_without(monkeypatch, words)
    assert found == expected


def test_arrays_that_are_strided_read_only_or_of_other_byte_order_are_measured_alike(monkeypatch):
    rng = np.random.default_rng(3)
    p, y = rng.random(4000), rng.integers(0, 2, 4000)
    fixed = p.copy()
    fixed.setflags(write=False)
    for score, label in ((p[::2], y[::2]), (fixed, y), (p.astype(">f8"), y.astype(">i8")), (p, y.astype(float))):
        found, expected = with_and_without(monkeypatch, lambda s=score, t=label: cal.ece(t, s, bins=cal.EqualWidth(15)))
        assert found == pytest.approx(expected, rel=1e-13)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_radix_buckets_and_the_rows_in_them_are_the_same(dtype, monkeypatch):
    p = awkward_scores(np.linspace(0, 1, 33), dtype)
    rows = Rows(p, p, np.random.default_rng(1).integers(0, 2, len(p)).astype(np.int8))

    def buckets():
        codes = np.empty(len(p), np.int16)
        sums = radix_bucket_sums(rows, squares=True, codes=codes)
        return sums, codes, rows_in(np.arange(BUCKETS) % 3 == 0, codes)

    found, expected = with_and_without(monkeypatch, buckets)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[0][[0, 4]], expected[0][[0, 4]])
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[2], expected[2])


@pytest.mark.parametrize("decimals", [1, 2, 17])
@pytest.mark.parametrize("n", [1, 2, 3, 40, 3000])
def test_sweeps_stop_at_the_same_number_of_bins(n, decimals, monkeypatch):
    rng = np.random.default_rng(n)
    for power in (0.2, 1, 5):
        p = rng.random((1, n)).round(decimals)
        samples = SortedSamples.of(p, (rng.random((1, n)) < p**power).astype(np.int8))
        found, expected = with_and_without(monkeypatch, lambda s=samples: largest_rising(s))
        np.testing.assert_array_equal(found, expected)
    ordered = SortedSamples.of(p, (p > 0.5).astype(np.int8))
    found, expected = with_and_without(monkeypatch, lambda: largest_rising(ordered))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 2, 50, 2000])
def test_pooled_blocks_are_the_same(n, monkeypatch):
    rng = np.random.default_rng(n)
    weight = rng.integers(1, 9, n).astype(float)
    observed = rng.binomial(weight.astype(int), np.linspace(0.1, 0.9, n)).astype(float)
    found, expected = with_and_without(monkeypatch, lambda: pool_adjacent_violators(weight, observed))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [70_000, 200_001])
def test_extremes_of_running_sums_are_the_same(n, monkeypatch):
    rng = np.random.default_rng(n)
    for p in (rng.beta(1.1, 0.1, n), rng.random(n).astype(np.float32)):
        rows = Rows(p, p, (rng.random(n) < p**1.05).astype(np.int8))
        found, expected = with_and_without(monkeypatch, lambda r=rows: running_gap_extremes(r))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [1, 2, 17])
@pytest.mark.parametrize("n", [1, 2, 7, 5000])
def test_sorted_rows_their_ties_and_their_isotonic_blocks_are_the_same(n, decimals, dtype, monkeypatch):
    rng = np.random.default_rng(n)
    p = rng.random(n).round(decimals).astype(dtype)
    p[0] = -0.0
    y = (rng.random(n) < p).astype(np.int8)

    def ordered():
        found = sorted_rows(Rows(p, p, y))
        return found.rows.key, found.rows.observed, found.run_ends, found.ends is None, *isotonic_blocks(found)

    found, expected = with_and_without(monkeypatch, ordered)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.signbit(found[0]).any()
