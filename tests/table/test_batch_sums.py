"""Batches of rows become exact sums per cell."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.scale import StreamingTable
from calibrant.table.batch_sums import first_of_cells
from tests.scale.logs import assert_same_table

pytestmark = pytest.mark.usefixtures("fast")


@pytest.mark.no_cover
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "grid",
    [
        cal.table.HybridGrid(),
        cal.table.HybridGrid(10, 1.0),
        cal.table.HybridGrid(1),
        cal.table.HybridGrid(1000, 690.0),
        cal.table.HybridGrid(64, equal_width=15),
    ],
    ids=str,
)
def test_a_stream_knows_the_first_score_of_every_cell(grid, dtype):
    cell, bits = first_of_cells(grid, np.dtype(dtype))
    first = bits.view(dtype)
    assert (first[0], cell[0]) == (0, 0)
    assert (np.diff(cell) > 0).all()
    np.testing.assert_array_equal(grid.index(np.nextafter(first[1:], dtype(-1))), cell[:-1])
    assert grid.index(np.ones(1, dtype))[0] == cell[-1]


def test_a_stream_takes_the_ends_of_the_scale_ties_and_negative_zero():
    p = np.array([0.0, -0.0, 1.0, 1.0, 5e-324, 1 - 2**-53, 0.5, 0.5, 1 / 15, 2 / 15])
    y = np.array([0, 1, 1, 0, 0, 1, 1, 0, 1, 0])
    for dtype in (np.float32, np.float64):
        for grid in (cal.table.HybridGrid(), cal.table.HybridGrid(8, equal_width=15)):
            stream = StreamingTable(grid=grid)
            for _ in range(3):
                stream.update(y, p.astype(dtype))
                stream.table()
            once = cal.BinTable.of(cal.Binary(y, p.astype(dtype)), grid)
            assert_same_table(stream.table(), once + once + once)


def test_more_rows_than_the_buffer_holds_are_absorbed_on_the_way():
    rng = np.random.default_rng(2)
    p = rng.beta(0.3, 0.6, 300_000)[::2]  # not contiguous
    y = rng.random(len(p)) < p
    stream = StreamingTable(grid=cal.table.HybridGrid(2**10))
    for start in range(0, len(p), 70_001):
        stream.update(y[start : start + 70_001], p[start : start + 70_001])
    assert_same_table(stream.table(), cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(2**10)))
