"""Before and after a sort: the same order, ties, blocks and sweeps."""

import numpy as np
import pytest

from calibrant.estimators.binned import largest_rising
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.numerics.rows import Rows
from calibrant.numerics.smoothers import isotonic_blocks
from calibrant.numerics.sorting import sorted_rows
from tests.numerics.compiled.both_ways import with_and_without

pytest.importorskip("numba")


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cuts", [[0, 1], [0, 5000], [0, 1, 1024, 1025, 4096, 5000]])
def test_sums_between_cuts_are_the_same(cuts, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(cuts[-1]).astype(dtype)
    rows = sorted_rows(Rows(p, p, (rng.random(len(p)) < p).astype(np.int8)))
    found, expected = with_and_without(monkeypatch, lambda: rows.between(np.array(cuts)))
    np.testing.assert_array_equal(found[[0, 1, 2, 4, 7]], expected[[0, 1, 2, 4, 7]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
