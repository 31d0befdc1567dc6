"""Cells that save a sort: the same buckets, rows and extremes."""

import numpy as np
import pytest

from calibrant.numerics.rows import Rows
from calibrant.numerics.sorting import BUCKETS, radix_bucket_sums, rows_in, running_gap_extremes
from tests.numerics.compiled.both_ways import awkward_scores, with_and_without

pytest.importorskip("numba")


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


@pytest.mark.parametrize("n", [70_000, 200_001])
def test_extremes_of_running_sums_are_the_same(n, monkeypatch):
    rng = np.random.default_rng(n)
    for p in (rng.beta(1.1, 0.1, n), rng.random(n).astype(np.float32)):
        rows = Rows(p, p, (rng.random(n) < p**1.05).astype(np.int8))
        found, expected = with_and_without(monkeypatch, lambda r=rows: running_gap_extremes(r))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
