"""Sums of rows at once or in batches, per cell of a grid or per bin of equal width, in memory that does not grow.

Cells are found by a sort instead of logarithms. The bits of a float in [0, 1], read as a whole number, are ordered as
the float is. So a row is one whole number: its outcome, the bits of its score, and a last bit that is 0. Marks, odd
numbers just below the first row of every cell, are sorted along with the rows and afterwards separate the cells.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import fail
from calibrant.numerics import binned_sums
from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import CHUNK, SORTED_ROWS_PER_CELL, expit
from calibrant.numerics.rows import SUMS, Rows, extremes
from calibrant.table.binning import CellSums, EqualWidth, Grid, HybridGrid, LogGrid

#: Rows that wait, per cell of the grid: enough that the work per cell is small compared with the work per row.
#: Speed: only the time per row depends on it, no result does.
ROWS_PER_CELL = 64

Whole = NDArray[Any]


class GridCells(NamedTuple):
    """Numbers of cells, their lowest and highest score, and the columns of `SUMS`."""

    key: NDArray[np.intp]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    sums: NDArray[np.float64]


class BatchSums:
    """Rows of one precision: those that wait, and the sums of the others; `rows`, if known, limits the room made."""

    def __init__(self, grid: HybridGrid, dtype: np.dtype[Any], *, rows: int | None = None) -> None:
        self.grid, self.dtype = grid, dtype
        self.key, first = first_of_cells(grid, dtype)
        self.one, self.top = np.array(1, first.dtype), np.array(8 * first.itemsize - 1, first.dtype)
        marks = (first << self.one) - self.one  # just below the first row of the cell
        self.marks = np.concatenate([marks, marks + (self.one << self.top)])
        self.room = max(CHUNK, ROWS_PER_CELL * grid.cells)
        if rows is not None:
            self.room = min(self.room, max(rows, 1))
        self.codes = np.empty(len(self.marks) + self.room, first.dtype)
        self.waiting = 0
        self.count, self.predicted, self.squares = (np.zeros(len(self.marks)) for _ in range(3))
        self.low, self.high = np.full(len(self.marks), np.inf), np.full(len(self.marks), -np.inf)

    def take(self, y_true: NDArray[np.int8], y_prob: NDArray[Any]) -> None:
        """Add valid rows."""
        start = 0
        while start < len(y_prob):
            if self.waiting == self.room:
                self.absorb()
            size = min(len(y_prob) - start, self.room - self.waiting, CHUNK)
            part, begin = slice(start, start + size), len(self.marks) + self.waiting
            codes = self.codes[begin : begin + size]
            np.left_shift(y_prob[part].view(codes.dtype), self.one, out=codes)  # off with the sign that only -0.0 has
            positive = y_true[part].astype(codes.dtype)
            positive <<= self.top
            codes |= positive
            self.waiting += size
            start += size

    def absorb(self) -> None:
        """Sum what waits."""
        codes = self.codes[: len(self.marks) + self.waiting]
        self.waiting = 0
        codes[: len(self.marks)] = self.marks
        codes[1:].sort()  # the first mark comes first; it has no number below it
        at = np.zeros(len(self.marks) + 1, np.intp)
        at[-1] = len(codes)
        cell = 0  # the one that a chunk begins in
        for start in range(1, len(codes), CHUNK):
            marks = self._add_chunk(codes[start : start + CHUNK], cell)
            at[cell + 1 : cell + 1 + len(marks)] = start + marks
            cell += len(marks)
        count = np.diff(at) - 1
        some = count > 0
        self.count += count
        self.low[some] = np.minimum(self.low[some], self._scores(codes[at[:-1][some] + 1]))
        self.high[some] = np.maximum(self.high[some], self._scores(codes[at[1:][some] - 1]))

    def _add_chunk(self, codes: Whole, cell: int) -> NDArray[np.intp]:
        """Add the scores and their squares to the sums of `cell` and those after it; the places of the marks."""
        marks = np.flatnonzero((codes & self.one).astype(bool))
        starts = np.concatenate([[0], marks])
        scores = self._scores(codes)
        scores[marks] = 0.0
        cells = slice(cell, cell + len(starts))
        self.predicted[cells] += np.add.reduceat(scores, starts)
        scores *= scores
        self.squares[cells] += np.add.reduceat(scores, starts)
        return marks

    def _scores(self, codes: Whole) -> NDArray[np.float64]:
        bits = codes << 1  # off with the outcome
        bits >>= 2
        return bits.view(self.dtype).astype(np.float64, copy=False)

    def cells(self) -> GridCells:
        """The cells that have rows so far."""
        if self.waiting:
            self.absorb()
        columns = (self.count, self.predicted, self.squares, self.low, self.high)
        count, predicted, squares, low, high = (values.reshape(2, -1) for values in columns)  # by outcome
        total, positives = count.sum(axis=0), count[1]
        sums = [total, total, total, predicted.sum(axis=0), positives, squares.sum(axis=0), predicted[1], positives]
        some = total > 0
        return GridCells(self.key[some], low.min(axis=0)[some], high.max(axis=0)[some], np.stack(sums)[:, some])


class CompiledSums:
    """The same sums without a buffer and without a sort, in compiled loops."""

    def __init__(self, fast: ModuleType, grid: HybridGrid) -> None:
        self._sums, self._checked = binned_sums.HybridSums(fast, grid.cells, grid.limit), fast.checked
        self.take = self._sums.take

    def take_unchecked(self, y_true: Any, y_prob: Any) -> bool:
        """Add rows that nobody has checked; False, and no row is added, where it takes a closer look at them."""
        if not binned_sums.plain_arrays(y_true, y_prob) or not self._checked(y_prob, y_true):
            return False
        self.take(y_true, y_prob)
        return True

    def cells(self) -> GridCells:
        """The cells that have rows so far."""
        return GridCells(*self._sums.cells())


def grid_sums(grid: HybridGrid, dtype: np.dtype[Any], *, rows: int | None = None) -> BatchSums | CompiledSums:
    """What sums rows of a precision on a grid fastest here; of so many rows in all, if that is known."""
    fits = grid.equal_width is None and grid.cells < 2**24 and grid.limit < 700  # else odds may not be normal numbers
    saved = 10.0 if dtype == np.float64 else 1.0  # sorting is fast in single precision
    fast = compiled(rows or 0, saves=saved) if fits else None
    return BatchSums(grid, dtype, rows=rows) if fast is None else CompiledSums(fast, grid)


@lru_cache(maxsize=8)
def first_of_cells(grid: HybridGrid, dtype: np.dtype[Any]) -> tuple[NDArray[np.intp], Whole]:
    """The cells that scores of this precision can be in, fewer near 1, and the bits of the lowest score of each."""
    first = _first_of_plain_cells(grid.cells, grid.limit, dtype)
    if grid.equal_width is not None:
        edges = EqualWidth(grid.equal_width).edges[1:-1]
        first = np.concatenate([first, [_first_above(edge, dtype) for edge in edges]])
    first = np.sort(first)
    first = first[np.diff(first, prepend=-1) > 0].astype(f"u{dtype.itemsize}")
    return grid.index(first.view(dtype)), first


def _first_of_plain_cells(cells: int, limit: float, dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """The inverse of the grid, put right by bisection, all cells at once."""
    whole = np.dtype(f"u{dtype.itemsize}")
    last, number = int(np.ones(1, dtype).view(whole)[0]), np.arange(cells)

    def cell(bits: NDArray[np.int64]) -> NDArray[np.intp]:
        return binned_sums.hybrid_index(bits.astype(whole).view(dtype), cells, limit)

    guess = _inverse(cells, limit).astype(dtype).view(whole).astype(np.int64)
    low, high = np.maximum(guess - 64, 0), np.minimum(guess + 64, last)
    low[cell(low) >= number] = 0
    high[cell(high) < number] = last + 1  # no score is in this cell or above
    while len(rest := np.flatnonzero(low < high)):
        middle = (low[rest] + high[rest]) // 2
        reached = cell(middle) >= number[rest]
        high[rest[reached]] = middle[reached]
        low[rest[~reached]] = middle[~reached] + 1
    return high[high <= last]


def _inverse(cells: int, limit: float) -> NDArray[np.float64]:
    """The scores where cells begin but for rounding: interpolated on the logit, then two of Newton's steps."""
    least, slope = binned_sums.hybrid_scale(cells, limit)
    place = np.arange(cells)

    def score_at(logit: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share = expit(logit)
        return (1 + 2 * least) * share - least, (1 + 2 * least) * share * (1 - share)

    end = cells / 4 / slope
    logit = np.linspace(-end, end, 4097)
    logit = np.interp(place, score_at(logit)[0] * cells / 2 + logit * slope + cells / 4, logit)
    for _ in range(2):
        score, rise = score_at(logit)
        logit -= (score * cells / 2 + logit * slope + cells / 4 - place) / (rise * cells / 2 + slope)
    return np.clip(score_at(logit)[0], 0.0, 1.0)


def _first_above(edge: float, dtype: np.dtype[Any]) -> int:
    """The bits of the lowest number of this precision above `edge`."""
    near = np.array([edge], dtype)
    if float(near[0]) <= edge:
        near = np.nextafter(near, dtype.type(2))
    return int(near.view(f"u{dtype.itemsize}")[0])


#: Batches after which their sums are moved to the totals, so that no running sum has many terms.
#: Derived: 1024 additions round by at most 1024 x 1.1e-16 = 1.1e-13 of the sum.
BATCHES = 1024


class BinStream:
    """Sums of binary rows in bins of equal width between 0 and 1.

    With compiled loops each batch is summed at once, by the pass that checks it. Without them rows wait until there are
    enough of them, since every call of NumPy costs as much as many rows.
    """

    def __init__(self, bins: EqualWidth) -> None:
        size = binned_sums.unit_bins(bins.edges)
        if size is None:
            fail(f"A stream needs at most 1023 bins between 0 and 1, got {bins!r}.", ValueError)
        self._edges = bins.edges
        self._total, self._batches = np.zeros((len(SUMS), size)), 0
        self._total[SUMS.index("predicted_squares")] = np.nan  # of no use in bins
        fast = compiled(0, saves=0.0)
        self._loop = None if fast is None else fast.EqualWidthSums(size, labelled=True)
        room = CHUNK if fast is None else 0
        self._outcome, self._score, self._waiting = np.empty(room, np.int8), np.empty(room), 0

    def take_unchecked(self, y: Any, p: Any) -> bool:
        """Add rows that nobody has checked; False, and no row is added, where it takes a closer look at them."""
        if self._loop is None or not binned_sums.plain_arrays(y, p) or not self._loop.add(p, y):
            return False
        self._batches += 1
        if self._batches == BATCHES:
            self._settle()
        return True

    def take(self, y: NDArray[np.int8], p: NDArray[Any]) -> None:
        """Add valid rows."""
        if self.take_unchecked(np.ascontiguousarray(y), np.ascontiguousarray(p)):
            return
        if len(p) > len(self._score) - self._waiting:
            self._settle()
        if len(p) > len(self._score):  # there is no room, or it would be filled at once
            self._add(y, p)
            return
        place = slice(self._waiting, self._waiting + len(p))
        self._outcome[place], self._score[place] = y, p
        self._waiting = place.stop

    def cells(self) -> GridCells:
        """The sums of all bins so far."""
        self._settle()
        return GridCells(np.arange(self._total.shape[1]), self._edges[:-1], self._edges[1:], self._total.copy())

    def _add(self, y: NDArray[np.int8], p: NDArray[Any]) -> None:
        self._total += binned_sums.equal_width_sums(Rows(p, p, y), self._edges, squares=False)

    def _settle(self) -> None:
        """Move what waits to the totals."""
        if self._waiting:
            self._add(self._outcome[: self._waiting], self._score[: self._waiting])
            self._waiting = 0
        if self._loop is not None and self._batches:
            self._total += binned_sums.binary_columns(*self._loop.taken())
            self._batches = 0


def sums_on_grid(rows: Rows, grid: Grid) -> CellSums:
    """The sums of rows in the cells of a grid that hold any."""
    dense = isinstance(grid, HybridGrid) and len(rows.key) >= SORTED_ROWS_PER_CELL * grid.cells
    if isinstance(grid, HybridGrid) and dense and (rows.plain_binary or (rows.plain and rows.role != "both")):
        return CellSums(grid, *_by_sorting(rows, grid))
    if isinstance(grid, LogGrid) and (spreads := _spreads(rows, grid)) is not None:
        return spreads
    first, last = grid.index(np.array(extremes(rows.key)))  # cells rise with the key
    size = int(last - first) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)

    def index(key: NDArray[Any]) -> NDArray[np.intp]:
        where = grid.index(key)
        where -= first
        key = key.astype(np.float64, copy=False)
        np.minimum.at(low, where, key)
        np.maximum.at(high, where, key)
        return where

    sums = binned_sums.sums_by_index(rows, index, size)
    cell = np.flatnonzero(np.isfinite(low))
    return CellSums(grid, cell + first, low[cell], high[cell], sums[:, cell])


def _by_sorting(rows: Rows, grid: HybridGrid) -> GridCells:
    """The cells of plain rows: sorted in batches along with the edges of the cells, no row needs a logarithm."""
    summed = grid_sums(grid, rows.key.dtype, rows=len(rows.key))
    alike = np.broadcast_to(np.int8(rows.role == "positives"), rows.key.shape)
    outcomes = rows.observed if rows.role == "both" else alike
    summed.take(outcomes, rows.key)
    cells = summed.cells()
    if rows.role == "population":
        cells.sums[[4, 6, 7]] = 0.0
    elif rows.role == "positives":
        cells.sums[0] *= rows.counted
        cells.sums[[1, 2, 3, 5]] = 0.0
    return cells


def _spreads(rows: Rows, grid: LogGrid) -> CellSums | None:
    """The cells of unweighted rows, such as spreads and squared errors, by compiled loops, where these are at hand."""
    floats = all(column.dtype == np.float64 for column in (rows.key, rows.predicted, rows.observed))
    fast = compiled(len(rows.key), saves=40.0) if floats and rows.weight is None and rows.role == "both" else None
    if fast is None:
        return None
    summed = binned_sums.LogSums(fast, grid.per_fold)
    return CellSums(grid, *summed.cells()) if summed.take(rows.key, rows.predicted, rows.observed) else None
