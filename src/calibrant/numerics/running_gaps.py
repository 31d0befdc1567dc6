"""The extremes of the running sums of prediction minus outcome, mostly without a sort.

The rows are summed in narrow cells of the score. Within a cell the running sum can rise by no more than the predictions
of its negative rows, and fall by no more than one minus the predictions of its positive rows. So only the cells that
could hold an extreme have their rows sorted: a few in ten thousand.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.radix_buckets import rows_with
from calibrant.numerics.rows import Rows
from calibrant.numerics.sizes import GAP_CELL_ROWS
from calibrant.numerics.sorting import SortedRows, sorted_rows
from calibrant.numerics.switch import compiled

#: Cells per unit of the score: with the outcome, their number still fits in two bytes.
CELLS = 1 << 13

#: Beyond this share of all rows in cells to be opened, sorting all rows is faster.
OPENED_SHARE = 0.5


class GapCells(NamedTuple):
    """Rows and sums of the predictions by cell and outcome, of shape (cells, 2), and twice the cell of each row."""

    rows: Floats
    predicted: Floats
    codes: NDArray[np.int16]


def running_gap_extremes(rows: Rows) -> tuple[float, float]:
    """The lowest and the highest sum of p - y over all rows up to a score, of plain binary rows; 0 if none is beyond.

    >>> p = np.array([0.25, 0.25, 0.75, 0.75])
    >>> running_gap_extremes(Rows(p, p, np.array([0, 0, 1, 1], np.int8)))
    (0.0, 0.5)
    """
    if len(rows.key) < GAP_CELL_ROWS:
        return _extremes_of_sorted(sorted_rows(rows))
    cells = gap_cells(rows)
    up, down = cells.predicted[:, 0], cells.rows[:, 1] - cells.predicted[:, 1]
    end = np.cumsum(up - down)
    start = np.concatenate([[0.0], end[:-1]])
    lowest, highest = min(float(end.min()), 0.0), max(float(end.max()), 0.0)
    margin = 1e-12 * len(rows.key)  # rounding of the sums
    opened = (start + up > highest - margin) | (start - down < lowest + margin)
    opened &= (up > 0) & (down > 0)  # else the sum goes one way, and its ends are known
    sizes = cells.rows[opened].sum(axis=1).astype(np.intp)
    if sizes.sum() > OPENED_SHARE * len(rows.key):
        return _extremes_of_sorted(sorted_rows(rows))
    if not len(sizes):
        return lowest, highest
    within = sorted_rows(rows.take(_rows_in(opened, cells.codes)))
    gap = within.rows.key.astype(np.float64)
    gap -= within.rows.observed
    running = np.cumsum(gap)
    before = np.concatenate([[0.0], running[np.cumsum(sizes)[:-1] - 1]])
    running += np.repeat(start[opened] - before, sizes)
    running = running[within.run_ends - 1]
    return min(lowest, float(running.min())), max(highest, float(running.max()))


def gap_cells(rows: Rows) -> GapCells:
    """The sums of plain binary rows in cells of the score, the same for equal scores and rising with the score."""
    size = 2 * (CELLS + 1)
    count, predicted = np.zeros(size, np.intp), np.zeros(size)
    codes = np.empty(len(rows.key), np.int16)
    fast = compiled(len(codes), saves=4.0) if rows.key.flags.c_contiguous and rows.observed.flags.c_contiguous else None
    if fast is not None:
        table = _compiled_cells(fast, rows, codes)
        return GapCells(table[..., 0], table[..., 1], codes)
    position, short, index = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.int32), np.empty(CHUNK, np.intp)
    double = np.empty(CHUNK)
    for begin in range(0, len(codes), CHUNK):
        p, code = rows.key[begin : begin + CHUNK], codes[begin : begin + CHUNK]
        where, cell = index[: len(p)], short[: len(p)]
        np.multiply(p, np.float32(CELLS), out=position[: len(p)], casting="same_kind")
        np.copyto(cell, position[: len(p)], casting="unsafe")
        cell += cell
        cell += rows.observed[begin : begin + CHUNK]
        np.copyto(where, cell)
        np.copyto(code, cell, casting="unsafe")
        count += np.bincount(where, minlength=size)
        if p.dtype != np.float64:
            np.copyto(double[: len(p)], p)
            p = double[: len(p)]
        predicted += np.bincount(where, p, size)
    return GapCells(count.reshape(-1, 2).astype(np.float64), predicted.reshape(-1, 2), codes)


def _compiled_cells(fast: ModuleType, rows: Rows, codes: NDArray[np.int16]) -> Floats:
    """Rows and sums of p, of shape (cells, 2, 2)."""
    table, totals = np.zeros((CELLS + 1, 2, 2)), np.zeros((CELLS + 1, 2, 2))
    fast.gap_cells(rows.key, rows.observed, CELLS, table.reshape(-1), totals.reshape(-1), codes)
    return table + totals


def _rows_in(opened: NDArray[np.bool_], codes: NDArray[np.int16]) -> NDArray[np.intp]:
    """The rows whose cell is opened."""
    return rows_with(np.repeat(opened, 2), codes)


def _extremes_of_sorted(ordered: SortedRows) -> tuple[float, float]:
    gap = ordered.rows.key.astype(np.float64)
    gap -= ordered.rows.observed
    running = np.cumsum(gap, out=gap)
    if ordered.ends is not None:
        running = running[ordered.ends - 1]
    return min(float(running.min()), 0.0), max(float(running.max()), 0.0)
