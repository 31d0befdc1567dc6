"""Grids of many cells: the sums of rows per cell, whose places need a logarithm.

Rows too near an edge for the fast logarithm are only listed; the formula of the grid then places them. So the cells are
those of the formula, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.numerics.compiled.kernel import (
    BLOCK,
    I64,
    ONE,
    TERMS,
    U64,
    atanh_ratio,
    contracting,
    inner,
    kernel,
    polynomial,
    to_totals,
)
from calibrant.numerics.compiled.vectors import add_at, fetch

#: Columns of a cell: one line of the cache.
COLUMNS = 8

#: Cells are asked for so many rows before they are added to: the table is larger than the cache.
AHEAD = 32

#: The fast logarithms are off by less than this.
LOG_ERROR = 2e-9

#: Other roundings of a place, as a part of a cell.
NEAR_EDGE = 1e-6

_FRACTION, _MANTISSA, _TO_FLOAT, _ONE = U64(52), U64((1 << 52) - 1), U64(0x433 << 52), U64(ONE)
_BIAS, _LN2 = 2.0**52 + 1023.0, float(np.log(2.0))

#: atanh(s) / s by s^2 for |s| up to 1/3, off by 1.1e-10.
_C0, _C1, _C2, _C3, _C4, _C5 = polynomial(atanh_ratio, 0.0, 1 / 9, 5)

#: The log of numbers from 1 to 2, off by 9.5e-10.
_D0, _D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9, _D10 = polynomial(np.log, 1.0, 2.0, 10)


@inner
def _parts(a: Any) -> Any:
    """The exponent of a positive normal number, with its bias and 2^52, and its mantissa.

    Whole numbers below 2^52 become floats by their place in the bits of 2^52: arithmetic that every processor has for
    vectors, as is all of the logarithms.
    """
    bits = np.float64(a).view(np.uint64)
    return U64((bits >> _FRACTION) | _TO_FLOAT).view(np.float64), U64((bits & _MANTISSA) | _ONE).view(np.float64)


@contracting
def _log_ratio(a: Any, b: Any) -> Any:
    """log(a / b) of positive normal numbers."""
    power, x = _parts(a)
    other, y = _parts(b)
    s = (x - y) / (x + y)
    q = s * s
    r = _C5 * q + _C4
    r = r * q + _C3
    r = r * q + _C2
    r = r * q + _C1
    r = r * q + _C0
    return (power - other) * _LN2 + 2.0 * s * r


@contracting
def _log(a: Any) -> Any:
    """The log of a positive normal number, without a division."""
    power, x = _parts(a)
    r = _D10 * x + _D9
    r = r * x + _D8
    r = r * x + _D7
    r = r * x + _D6
    r = r * x + _D5
    r = r * x + _D4
    r = r * x + _D3
    r = r * x + _D2
    r = r * x + _D1
    r = r * x + _D0
    return (power - _BIAS) * _LN2 + r


@contracting
def _hybrid_place(v: Any, size: Any, offset: Any, slope: Any) -> Any:
    """The cell of a score, and the part of it below the score; the outermost cells have only one edge."""
    x = v * (size / 2.0) + _log_ratio(v + offset, (1.0 - v) + offset) * slope + size / 4.0
    x = 0.5 if x < 0.999 else x
    return size - 0.5 if x > size - 0.999 else x


@contracting
def _log_place(key: Any, size: Any, per_fold: Any, first: Any) -> Any:
    """The same of cells of the logarithm of a key, on an edge if it is in the first cell, in the last, or in none."""
    x = _log(key) * per_fold - first
    x = x if x > 1.0 else 1.0
    return x if x < size - 1.0 else size - 1.0


@inner
def _away(x: Any) -> Any:
    """How far a place is from the middle of its cell."""
    return abs(x - np.floor(x) - 0.5)


def _finders(place: Callable[..., Any]) -> tuple[Any, Any]:
    """The loops that find cells, and that list rows near an edge, by one rule for places."""

    @contracting
    def cells(key: Any, size: Any, first: Any, second: Any, far: Any, index: Any) -> Any:
        """Find eight times the cell of each key, and whether any is further than `far` from the middle of its cell."""
        near = I64(0)
        for i in range(key.shape[0]):
            x = place(np.float64(key[i]), size, first, second)
            near |= I64(_away(x) > far)
            index[i] = np.uint32(np.int32(x) * np.int32(COLUMNS))
        return near

    @inner
    def listing(
        key: Any, size: Any, first: Any, second: Any, far: Any, index: Any, start: Any, unsure: Any, listed: Any
    ) -> Any:
        """List the rows near an edge, and send them to the cell after the last; how many are listed by now."""
        for i in range(key.shape[0]):
            if _away(place(np.float64(key[i]), size, first, second)) > far:
                unsure[listed] = start + i
                listed += 1
                index[i] = np.uint32(size) * np.uint32(COLUMNS)
        return listed

    return cells, listing


_hybrid_cells, _list_of_hybrid = _finders(_hybrid_place)
_log_cells, _list_of_log = _finders(_log_place)


@inner
def _beyond(key: Any, size: Any, per_fold: Any, first: Any) -> Any:
    """Whether a key is in the first cell, in the last, or in none."""
    for i in range(key.shape[0]):
        x = _log_place(key[i], size, per_fold, first)
        if x <= 1.0 or x >= size - 1.0:
            return True
    return False


@kernel
def hybrid(p: Any, y: Any, cells: Any, offset: Any, slope: Any, far: Any, table: Any, totals: Any, unsure: Any) -> Any:
    """Add rows and sums of p and p^2 per cell and outcome, and keep the lowest p and the highest.

    The columns of a cell are those of outcome 0, the lowest p, those of outcome 1, the highest p. Returns the number of
    rows listed in `unsure`.
    """
    listed, index, scale = 0, np.zeros(BLOCK + AHEAD, np.uint32), (np.float64(cells), offset, slope, far)
    for start in range(0, p.shape[0], BLOCK):
        score, label = p[start : start + BLOCK], y[start : start + BLOCK]
        if _hybrid_cells(score, *scale, index):
            listed = _list_of_hybrid(score, *scale, index, start, unsure, listed)
        for i in range(score.shape[0]):
            fetch(table, U64(index[U64(i) + U64(AHEAD)]))
            cell, v = U64(index[i]), np.float64(score[i])
            if v < table[cell + U64(3)]:
                table[cell + U64(3)] = v
            if v > table[cell + U64(7)]:
                table[cell + U64(7)] = v
            at = cell + U64(label[i]) * U64(4)
            if add_at(table, at, (1.0, v, v * v, 0.0)) == TERMS:  # the fourth is the lowest or the highest score
                to_totals(at, table, totals, 3)
    return listed


@kernel
def log_grid(
    key: Any, u: Any, v: Any, cells: Any, per_fold: Any, first: Any, far: Any, table: Any, totals: Any, unsure: Any
) -> Any:
    """Add rows, u, u^2, u v, v, v^2 (predicted u, observed v) per cell of the log of the key, and keep its extremes.

    The columns of a cell are rows, u, v, the lowest key, u^2, u v, v^2, the highest key. Returns the number of rows
    listed, and of rows done: all before a block with a key in the first cell, in the last, or in none.
    """
    listed, index, scale = 0, np.zeros(BLOCK + AHEAD, np.uint32), (np.float64(cells), per_fold, first)
    for start in range(0, key.shape[0], BLOCK):
        score, predicted, observed = key[start : start + BLOCK], u[start : start + BLOCK], v[start : start + BLOCK]
        if _log_cells(score, *scale, far, index):
            if _beyond(score, *scale):
                return listed, start
            listed = _list_of_log(score, *scale, far, index, start, unsure, listed)
        for i in range(score.shape[0]):
            fetch(table, U64(index[U64(i) + U64(AHEAD)]))
            at, s, a, b = U64(index[i]), score[i], predicted[i], observed[i]
            if s < table[at + U64(3)]:
                table[at + U64(3)] = s
            if s > table[at + U64(7)]:
                table[at + U64(7)] = s
            rows = add_at(table, at, (1.0, a, b, 0.0))  # the fourth are the lowest and the highest key
            add_at(table, at + U64(4), (a * a, a * b, b * b, 0.0))
            if rows == TERMS:
                to_totals(at, table, totals, 3)
                to_totals(at + U64(4), table, totals, 3)
    return listed, key.shape[0]
