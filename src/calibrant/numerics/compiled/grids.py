"""Grids of many cells: the sums of rows per cell, whose places need a logarithm.

Rows too near an edge for the fast logarithm are only listed; the formula of the grid then places them. So the cells are
those of the formula, to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.kernel import (
    I64,
    ONE,
    TERMS,
    U64,
    atanh_ratio,
    contracting,
    inner,
    kernel,
    polynomial,
    reordering,
    to_totals,
)

#: Columns of a cell: one line of the cache.
COLUMNS = 8

#: Rows of a block: so many cells stay in the first-level cache.
ROWS = 256

#: The fast logarithm is off by less than this.
LOG_ERROR = 1e-9

#: Other roundings of a place, as a part of a cell.
NEAR_EDGE = 1e-6

_MANTISSA, _TO_FLOAT, _LN2 = I64((1 << 52) - 1), I64(0x433 << 52), float(np.log(2.0))


#: For |s| up to 1/3, off by 1.1e-10.
_C0, _C1, _C2, _C3, _C4, _C5 = polynomial(atanh_ratio, 0.0, 1 / 9, 5)


@contracting
def _log_ratio(a: Any, b: Any) -> Any:
    """log(a / b) of normal numbers, made of arithmetic that every processor has for vectors.

    Whole numbers below 2^52 become floats by their place in the bits of 2^52.
    """
    bits_a, bits_b = np.float64(a).view(np.int64), np.float64(b).view(np.int64)
    power = I64((bits_a >> I64(52)) | _TO_FLOAT).view(np.float64) - I64((bits_b >> I64(52)) | _TO_FLOAT).view(
        np.float64
    )
    x = I64((bits_a & _MANTISSA) | ONE).view(np.float64)
    y = I64((bits_b & _MANTISSA) | ONE).view(np.float64)
    s = (x - y) / (x + y)
    q = s * s
    r = _C5 * q + _C4
    r = r * q + _C3
    r = r * q + _C2
    r = r * q + _C1
    r = r * q + _C0
    return power * _LN2 + 2.0 * s * r


@contracting
def _hybrid_places(score: Any, cells: Any, offset: Any, slope: Any, far: Any, index: Any, part: Any) -> Any:
    """Find eight times the cell of each score, and how far from its middle; whether any is further than `far`."""
    size, near = np.float64(cells), I64(0)
    half, quarter, last, most = size / 2.0, size / 4.0, size - 0.999, size - 0.5
    for i in range(score.shape[0]):
        v = np.float64(score[i])
        x = v * half + _log_ratio(v + offset, (1.0 - v) + offset) * slope + quarter
        x = 0.5 if x < 0.999 else x  # there is no edge below or above
        x = most if x > last else x
        whole = np.floor(x)
        away = abs(x - whole - 0.5)
        near |= I64(away > far)
        part[i] = away
        index[i] = np.uint32(np.int32(whole) * np.int32(COLUMNS))
    return near


@contracting
def _log_places(key: Any, cells: Any, per_fold: Any, first: Any, far: Any, index: Any, part: Any) -> Any:
    """The same of cells of the logarithm of a key."""
    near, most = I64(0), np.float64(cells) - 0.5
    for i in range(key.shape[0]):
        x = _log_ratio(np.float64(key[i]), 1.0) * per_fold - first
        x = x if x > 0.0 else 0.0
        x = x if x < most else most
        whole = np.floor(x)
        away = abs(x - whole - 0.5)
        near |= I64(away > far)
        part[i] = away
        index[i] = np.uint32(np.int32(whole) * np.int32(COLUMNS))
    return near


@inner
def _list(part: Any, far: Any, start: Any, spare: Any, index: Any, unsure: Any, listed: Any) -> Any:
    """List the rows near an edge, and send them to a cell that nobody reads; how many are listed by now."""
    for i in range(part.shape[0]):
        if part[i] > far:
            unsure[listed] = start + i
            listed += 1
            index[i] = np.uint32(spare * COLUMNS)
    return listed


@reordering
def _fetch(index: Any, table: Any) -> Any:
    """Read the cells of some rows, whose table is larger than the cache.

    Reads that need nothing from each other are under way all at once; the additions that follow then wait for none.
    """
    total = 0.0
    for i in range(index.shape[0]):
        total += table[U64(index[i])]
    return total


@kernel
def hybrid(p: Any, y: Any, cells: Any, offset: Any, slope: Any, far: Any, table: Any, totals: Any, unsure: Any) -> Any:
    """Add rows and sums of p and p^2 per cell and outcome, and keep the lowest p and the highest.

    The columns of a cell are those of outcome 0, the lowest p, those of outcome 1, the highest p. Returns the number of
    rows listed in `unsure`.
    """
    listed, index, part, spare = 0, np.empty(ROWS, np.uint32), np.empty(ROWS), U64(cells * COLUMNS)
    for start in range(0, p.shape[0], ROWS):
        m = min(p.shape[0] - start, ROWS)
        score, label = p[start : start + m], y[start : start + m]
        if _hybrid_places(score, cells, offset, slope, far, index, part):
            listed = _list(part[:m], far, start, cells, index, unsure, listed)
        table[spare] = _fetch(index[:m], table)  # or the compiler would find the reads useless
        for i in range(m):
            cell, v = U64(index[i]), np.float64(score[i])
            if v < table[cell + U64(3)]:
                table[cell + U64(3)] = v
            if v > table[cell + U64(7)]:
                table[cell + U64(7)] = v
            at = cell + U64(label[i]) * U64(4)
            rows, total, square = table[at] + 1.0, table[at + U64(1)] + v, table[at + U64(2)] + v * v
            table[at], table[at + U64(1)], table[at + U64(2)] = rows, total, square
            if rows == TERMS:
                to_totals(at, table, totals, 3)
    return listed


@kernel
def log_grid(
    key: Any, u: Any, v: Any, cells: Any, per_fold: Any, first: Any, far: Any, table: Any, totals: Any, unsure: Any
) -> Any:
    """Add rows, u, u^2, u v, v, v^2 (predicted u, observed v) per cell of the log of the key, and keep its extremes.

    The columns of a cell are rows, u, v, the lowest key, u^2, u v, v^2, the highest key. Returns the number of rows
    listed. The table must have the cells of all keys.
    """
    listed, index, part = 0, np.empty(ROWS, np.uint32), np.empty(ROWS)
    for start in range(0, key.shape[0], ROWS):
        m = min(key.shape[0] - start, ROWS)
        score, first_sum, second_sum = key[start : start + m], u[start : start + m], v[start : start + m]
        if _log_places(score, cells, per_fold, first, far, index, part):
            listed = _list(part[:m], far, start, cells, index, unsure, listed)
        for i in range(m):
            at, s = U64(index[i]), np.float64(score[i])
            a, b = np.float64(first_sum[i]), np.float64(second_sum[i])
            if s < table[at + U64(3)]:
                table[at + U64(3)] = s
            if s > table[at + U64(7)]:
                table[at + U64(7)] = s
            rows, x, y = table[at] + 1.0, table[at + U64(1)] + a, table[at + U64(2)] + b
            xx, xy, yy = table[at + U64(4)] + a * a, table[at + U64(5)] + a * b, table[at + U64(6)] + b * b
            table[at], table[at + U64(1)], table[at + U64(2)] = rows, x, y
            table[at + U64(4)], table[at + U64(5)], table[at + U64(6)] = xx, xy, yy
            if rows == TERMS:
                to_totals(at, table, totals, 3)
                to_totals(at + U64(4), table, totals, 3)
    return listed
