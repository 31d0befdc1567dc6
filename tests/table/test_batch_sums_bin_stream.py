"""Sums in fixed bins of rows that come in batches: those of all rows, and none of a batch that is refused."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.table.batch_sums import BATCHES, BinStream


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 700, 65_536, 150_000])
def test_batches_of_any_size_add_up_to_the_table_of_all_rows(batch, dtype, fast):
    rng = np.random.default_rng(batch)
    n = min(150_000, (BATCHES + 10) * batch)
    p = rng.beta(1.1, 0.3, n).astype(dtype)
    y = (rng.random(n) < p).astype(np.int8)
    stream = BinStream(cal.EqualWidth(15))
    for start in range(0, n, batch):
        stream.take(y[start : start + batch], p[start : start + batch])
    expected = cal.BinTable.of(cal.Binary(y, p), cal.EqualWidth(15), squares=False)
    found = stream.cells()
    np.testing.assert_array_equal(found.sums[[0, 1, 2, 4, 7]], expected.sums[[0, 1, 2, 4, 7]])
    np.testing.assert_allclose(found.sums[[3, 6]], expected.sums[[3, 6]], rtol=1e-12)
    np.testing.assert_array_equal(stream.cells().sums, found.sums)  # asking changes nothing


def test_rows_that_are_not_plain_are_left_to_a_closer_look(fast):
    stream, y, p = BinStream(cal.EqualWidth(15)), np.array([0, 1]), np.array([0.2, 0.7])
    others = [([0, 1], p), (y, [0.2, 0.7]), (y.astype(float), p), (y, p.astype(">f8")), (y[:1], p), (y[::-1], p)]
    bad = [(y + 1, p), (y, p + 0.5), (y, p * np.nan), (y[:0], p[:0])]
    assert not any(stream.take_unchecked(labels, scores) for labels, scores in others + bad)
    assert stream.cells().sums[0].sum() == 0
    assert stream.take_unchecked(y, p) == (fast == "on")


@pytest.mark.parametrize("bins", [cal.EqualWidth(1024), cal.EqualWidth(15, low=-1.0), cal.EqualWidth(15, high=2.0)])
def test_other_bins_are_refused(bins):
    with pytest.raises(ValueError, match="between 0 and 1"):
        BinStream(bins)
