"""Cells three per cent wide, relative to the distance of the score from 0 or 1: one pass over the rows, no sort.

The cell of a score is read off the bits of its distance, exponent and five bits of the fraction, so that cells are
narrow where the scores of confident models crowd. The cells alone are enough to resample from; with the few rows of
the cells that an edge falls into, they give bins of equal mass exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.rows import SUMS, Rows
from calibrant.numerics.sizes import SELECTION_ROWS
from calibrant.numerics.sorting import sorted_rows

#: Bits of the fraction that tell cells apart.
FRACTION = 5

#: Powers of two that tell cells apart; distances below the last share the outermost cell.
POWERS = 64

#: Cells from 0 to 0.5, which has a cell of its own; so has 1, whose neighbours are further away than the last power.
HALF = (POWERS << FRACTION) + 1

CELLS = 2 * HALF

#: Selection sorts the rows in the cells that edges fall into. Beyond this share of all it was measured to lose.
OPENED_SHARE = 0.5

#: Rows that tell that share beforehand.
SAMPLE = 1 << 12


def relative_sums(pairs: Rows, *, squares: bool = False, codes: NDArray[np.int16] | None = None) -> Floats:
    """The columns of `SUMS` of plain binary rows in each of the `CELLS`, in the order of the scores.

    Without `squares`, the sum of squared predictions is left NaN. `codes`, where given, is filled with where each row
    went (see `rows_in`).
    """
    count, predicted, squared = np.zeros(2 * CELLS, np.intp), np.zeros(2 * CELLS), np.zeros(2 * CELLS)
    coder = _Coder(pairs.key.dtype)
    for start in range(0, len(pairs.key), CHUNK):
        chunk = slice(start, start + CHUNK)
        code, p = coder.codes(pairs.key[chunk], pairs.observed[chunk])
        count += np.bincount(code, minlength=2 * CELLS)
        predicted += np.bincount(code, p, 2 * CELLS)
        if squares:
            squared += np.bincount(code, p * p, 2 * CELLS)
        if codes is not None:
            codes[chunk] = code
    sums = np.empty((len(SUMS), CELLS))
    sums[:3], sums[3] = _in_order(count), _in_order(predicted)
    sums[4] = sums[7] = _in_order(count, positive=True)
    sums[5] = _in_order(squared) if squares else np.nan
    sums[6] = _in_order(predicted, positive=True)
    return sums


def rows_in(cells: NDArray[np.bool_], codes: NDArray[np.int16]) -> NDArray[np.intp]:
    """The rows in the cells that are marked, given the codes that `relative_sums` filled in."""
    marked = np.repeat(np.concatenate([cells[:HALF], cells[: HALF - 1 : -1]]), 2)
    chosen, index = np.empty(len(codes), np.bool_), np.empty(CHUNK, np.intp)
    for start in range(0, len(codes), CHUNK):
        some = codes[start : start + CHUNK]
        index[: len(some)] = some
        marked.take(index[: len(some)], out=chosen[start : start + CHUNK], mode="clip")
    return np.flatnonzero(chosen)


def worth_selecting(pairs: Rows, n: int) -> bool:
    """Whether `equal_mass_sums` applies and is likely to beat a sort: half the time for a million rows and 15 bins.

    It is not where rows are few, nor where edges fall into the cells of most rows: many bins, or scores in few cells.
    """
    size = len(pairs.key)
    if not pairs.plain_binary or size < SELECTION_ROWS[pairs.key.dtype]:
        return False
    count = relative_sums(pairs.take(slice(None, None, size // SAMPLE)))[0].astype(np.intp)
    opened = np.unique(_inner_ranks(count, n)[1])
    return bool(count[opened].sum() <= OPENED_SHARE * count.sum())


def equal_mass_sums(pairs: Rows, n: int, *, squares: bool) -> tuple[Floats, Floats]:
    """Edges and sums of `n` bins of equal mass of plain binary rows; only the rows around the edges are sorted."""
    codes = np.empty(len(pairs.key), np.int16)
    sums = relative_sums(pairs, squares=squares, codes=codes)
    count = sums[0].astype(np.intp)
    ranks, cell = _inner_ranks(count, n)
    opened = np.zeros(CELLS, np.bool_)
    opened[cell] = True
    around = sorted_rows(pairs.take(rows_in(opened, codes)))
    ahead = np.cumsum(np.where(opened, 0, count))[cell]
    low, high = pairs.key.min(), pairs.key.max()
    at = around.rows.key[ranks - ahead - 1]
    at, first = np.unique(at[at < high], return_index=True)
    edges = np.concatenate([[low], at, [high]]).astype(np.float64) + 0.0  # no edge is -0.0

    sums[:, opened] *= 0
    sums = np.add.reduceat(sums, np.concatenate([[0], cell[first]]), axis=1)
    cuts = np.searchsorted(around.rows.key, at, side="right")
    cuts = np.unique(np.concatenate([[0], cuts, [len(around)]]))  # the last bin may have no row around an edge
    sums[:, : len(cuts) - 1] += around.between(cuts)
    return edges, sums


def _inner_ranks(count: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The ranks of the inner edges and the cells they fall into; the last cell holds only ones, as its edge says."""
    running = np.cumsum(count)
    ranks = running[-1] * np.arange(1, n) // n
    ranks = ranks[(ranks > 0) & (ranks <= running[-2])]
    return ranks, np.searchsorted(running, ranks, side="left")


class _Coder:
    """Twice the cell, plus the outcome; the cells of the upper half come after all others, from 1 down to 0.5.

    The arrays are kept from chunk to chunk: fresh memory costs as much as the arithmetic.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        double = dtype == np.float64
        self.distance = np.empty(CHUNK, dtype)
        self.bits: NDArray[Any] = self.distance.view(np.int64 if double else np.int32)
        self.shift = np.finfo(dtype).nmant - FRACTION
        self.lowest = (-int(np.finfo(dtype).minexp) - POWERS) << FRACTION
        self.upper, self.side = np.empty(CHUNK, np.bool_), np.empty(CHUNK, np.int16)
        self.double = None if double else (np.empty(CHUNK, np.intp), np.empty(CHUNK))

    def codes(self, p: NDArray[Any], observed: NDArray[np.int8]) -> tuple[NDArray[np.intp], Floats]:
        """The codes of a chunk of rows, and the scores in double precision; overwritten by the next call."""
        size = len(p)
        distance, code, upper, side = self.distance[:size], self.bits[:size], self.upper[:size], self.side[:size]
        np.rint(p, out=distance)
        np.subtract(p, distance, out=distance)  # exact
        np.abs(distance, out=distance)
        code >>= self.shift
        code -= self.lowest
        np.maximum(code, 0, out=code)
        code += code
        code += observed
        np.greater(p, 0.5, out=upper)
        np.multiply(upper.view(np.int8), np.int16(2 * HALF), out=side)
        code += side
        if self.double is None:
            return code, p
        index, score = self.double[0][:size], self.double[1][:size]
        index[:], score[:] = code, p
        return index, score


def _in_order(apart: NDArray[Any], *, positive: bool = False) -> NDArray[Any]:
    """Sums by code as sums by cell in the order of the scores, of the positive rows or of all."""
    pairs = apart.reshape(CELLS, 2)
    cells = pairs[:, 1] if positive else pairs.sum(axis=1)
    return np.concatenate([cells[:HALF], cells[: HALF - 1 : -1]])
