"""Few bins of equal width: those of a search to the last bit, and bad rows in the same words."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.binned_sums import checked_equal_width_sums, equal_width_sums
from calibrant.numerics.rows import Rows
from tests.numerics.compiled.both_ways import awkward_scores, with_and_without

pytest.importorskip("numba")

from calibrant.numerics.compiled import loops


@pytest.mark.no_cover
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


@pytest.mark.no_cover
def test_arrays_that_are_strided_read_only_or_of_other_byte_order_are_measured_alike(monkeypatch):
    rng = np.random.default_rng(3)
    p, y = rng.random(4000), rng.integers(0, 2, 4000)
    fixed = p.copy()
    fixed.setflags(write=False)
    for score, label in ((p[::2], y[::2]), (fixed, y), (p.astype(">f8"), y.astype(">i8")), (p, y.astype(float))):
        found, expected = with_and_without(monkeypatch, lambda s=score, t=label: cal.ece(t, s, bins=cal.EqualWidth(15)))
        assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("label", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_good_where_scores_lie_in_the_unit_interval_and_labels_are_0_or_1(dtype, label):
    p, y = np.array([0.0, 0.5, 1.0], dtype), np.array([0, 1, 1], label)
    assert loops.checked(p, y)
    for bad in (np.nan, np.inf, -np.inf, -1e-30, 1 + 2**-20):
        assert not loops.checked(np.array([0.5, bad, 0.5], dtype), y)
    for bad in (2, np.iinfo(label).max, np.iinfo(label).min):
        assert loops.checked(p, np.array([0, bad, 1], label)) == (bad == 0)
    assert loops.checked(p, y)
