"""Compiled sums of rows: bins of equal width, narrow cells that replace a sort, and grids of many cells.

The place of a row in a grid needs a logarithm. Rows too near an edge for the fast logarithm are only listed, and the
formula of the grid then places them. So the cells are those of the formula, to the last bit.
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
    add_at,
    atanh_ratio,
    contracting,
    fetch,
    horner,
    inner,
    kernel,
    polynomial,
    to_totals,
)

#: Copies of the table, so that neighbouring rows never wait for the same number, and blocks between two additions to
#: the totals, so that no running sum has many terms. Speed: benchmarks/fast.py; no result depends on it but for the
#: rounding of sums.
LANES, FLUSH = 16, 16


@inner
def places(score: Any, bins: Any, step: Any, offset: Any, unit: Any, index: Any) -> Any:
    """Find the place of each score, `unit` times its bin plus its offset; negative if a score is bad.

    floor(bins p + 1/2) is the bin or one more, and one comparison with the true edge settles it. The bits of a score
    outside [0, 1], of NaN and of -0.0 are negative or larger than those of 1. No branch depends on the data.
    """
    scale, last, wrong = np.float64(bins), np.float64(bins - 1), I64(0)
    for i in range(score.shape[0]):
        v = np.float64(score[i])
        bits = v.view(np.int64)
        wrong |= (ONE - bits) | bits
        above = np.floor(v * scale + 0.5)
        where = above - (1.0 if v <= above * step else 0.0)
        where = where if where > 0.0 else 0.0
        where = where if where < last else last
        index[i] = np.uint32(np.int32(where) * np.int32(unit) + offset[i])
    return wrong


@inner
def _add(score: Any, index: Any, table: Any) -> None:
    """Add each score and a count of one at its place: one load, addition and store of 16 bytes."""
    for i in range(score.shape[0]):
        add_at(table, U64(index[i]), (np.float64(score[i]), 1.0))


@inner
def _flush(lanes: Any, totals: Any) -> None:
    """Move the sums of all lanes to `totals`, of shape (places, 2)."""
    size = totals.shape[0]
    for lane in range(LANES):
        for k in range(size):
            totals[k, 0] += lanes[(lane * size + k) * 2]
            totals[k, 1] += lanes[(lane * size + k) * 2 + 1]
    lanes[:] = 0.0


@inner
def _with_outcomes(label: Any, seen: Any, index: Any) -> None:
    """Move rows of outcome 1 to the places after those of outcome 0; add the union of all bits of labels to `seen`."""
    union = seen[0]
    for i in range(label.shape[0]):
        outcome = seen.dtype.type(label[i])
        union |= outcome
        index[i] += np.uint32((outcome & 1) * 2)
    seen[0] = union


@kernel
def _sums(p: Any, y: Any, seen: Any, step: Any, lane: Any, index: Any, lanes: Any, totals: Any) -> Any:
    """Add sums of p and rows per bin and outcome (if there are labels) to `totals`; negative if a score is bad."""
    wrong, blocks, outcomes = I64(0), 0, 1 if y is None else 2
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, place = p[start : start + m], index[:m]
        wrong |= places(score, totals.shape[0] // outcomes, step, lane, 2 * outcomes, place)
        if y is not None:  # Numba compiles only what applies
            _with_outcomes(y[start : start + m], seen, place)
        _add(score, place, lanes)
        blocks += 1
        if blocks == FLUSH:
            blocks = 0
            _flush(lanes, totals)
    _flush(lanes, totals)
    return wrong


@kernel
def good_rows(p: Any, y: Any, seen: Any) -> Any:
    """Negative if a score is bad; the union of all bits of labels is added to `seen`."""
    wrong = I64(0)
    for i in range(p.shape[0]):
        bits = np.float64(p[i]).view(np.int64)
        wrong |= (ONE - bits) | bits
    union = seen[0]
    for i in range(y.shape[0]):
        union |= seen.dtype.type(y[i])
    seen[0] = union
    return wrong


def _no_bits(y: Any | None) -> Any:
    """Where the union of the bits of all labels is gathered, empty as yet: 0 or 1 only if every label is."""
    return np.zeros(1, np.int64 if y is not None and y.dtype.itemsize == 8 else np.int32)


def checked(p: Any, y: Any) -> bool:
    """Whether all scores lie in [0, 1] and all labels are 0 or 1; rows with -0.0 are left to a closer look."""
    seen = _no_bits(y)
    return not (good_rows(p, y, seen) < 0 or seen[0] & ~1)


class EqualWidthSums:
    """Sums over `bins` bins of equal width between 0 and 1, with the arrays that every call needs."""

    def __init__(self, bins: int, *, labelled: bool) -> None:
        self._bins, places = bins, 2 * bins if labelled else bins
        self._kept, self._totals = np.zeros((places, 2)), np.zeros((places, 2))
        self._lane = (np.arange(BLOCK) % LANES * places * 2).astype(np.int32)
        self._work = 1 / bins, self._lane, np.empty(BLOCK, np.uint32), np.zeros(LANES * places * 2), self._totals

    def add(self, p: Any, y: Any | None) -> bool:
        """Add any rows; False, and nothing is added, if one of them is bad."""
        seen = _no_bits(y)
        bad = _sums(p, y, seen, *self._work) < 0 or seen[0] & ~1
        if not bad:
            self._kept += self._totals
        self._totals.fill(0.0)
        return not bad

    def taken(self) -> Any:
        """Rows and sums of p per bin and outcome (one, if there are no labels), which then begin anew."""
        found = self._kept.reshape(self._bins, -1, 2)[..., ::-1].transpose(2, 0, 1).copy()
        self._kept.fill(0.0)
        return found


def equal_width(p: Any, y: Any | None, bins: int) -> Any | None:
    """Rows and sums of p per bin and outcome (one, if there are no labels), of any rows; None if a row is bad."""
    sums = EqualWidthSums(bins, labelled=y is not None)
    return sums.taken() if sums.add(p, y) else None


@inner
def _add_to_cell(score: Any, code: Any, copies: Any, columns: Any, table: Any, totals: Any) -> None:
    """Add rows and sums of p, and of p^2 as a third column, per code.

    In two copies, rows of the same code wait less for each other; in one, more of the table is in the cache.
    """
    for i in range(score.shape[0]):
        at, v = (U64(np.uint16(code[i])) * U64(copies) + U64(i & (copies - 1))) * U64(columns), np.float64(score[i])
        rows, total = table[at] + 1.0, table[at + U64(1)] + v
        table[at], table[at + U64(1)] = rows, total
        if columns == 3:
            table[at + U64(2)] += v * v
        if rows == TERMS:
            to_totals(at, table, totals, columns)


@kernel
def gap_cells(p: Any, y: Any, cells: Any, table: Any, totals: Any, codes: Any) -> None:
    """Add rows and sums of p per equally wide cell and outcome; `codes` becomes twice the cell, plus the outcome."""
    scale = np.float64(cells)
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, label, code = p[start : start + m], y[start : start + m], codes[start : start + m]
        for i in range(m):
            code[i] = np.int16(2 * np.int32(np.float32(np.float64(score[i]) * scale)) + np.int32(label[i]))
        _add_to_cell(score, code, 1, 2, table, totals)


@kernel
def radix_cells(
    p: Any, y: Any, shift: Any, lowest: Any, half: Any, columns: Any, table: Any, totals: Any, codes: Any
) -> None:
    """Add rows, sums of p and, with three columns, of p^2 per bucket and outcome; codes as in `sorting`."""
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, label, code = p[start : start + m], y[start : start + m], codes[start : start + m]
        for i in range(m):
            v = np.float64(score[i])
            upper = v > 0.5
            distance = np.float64(1.0 - v if upper else abs(v))  # -0.0 is 0.0
            bucket = np.int32(distance.view(np.uint64) >> U64(shift)) - np.int32(lowest)
            side = np.int32(2 * half) if upper else np.int32(0)
            code[i] = np.int16(2 * max(bucket, np.int32(0)) + np.int32(label[i]) + side)
        _add_to_cell(score, code, 2, columns, table, totals)


@kernel
def marked_rows(codes: Any, marked: Any, first: Any, rows: Any) -> Any:
    """List the rows whose code is marked; how many there are. `rows` must have room for one more."""
    found = U64(0)
    for i in range(codes.shape[0]):
        rows[found] = first + i
        found += U64(marked[U64(np.uint16(codes[i]))])
    return found


#: Columns of a cell. Derived: eight float64 are a line of the cache.
COLUMNS = 8

#: Rows by which cells are asked for before they are added to: the table is larger than the cache. Speed:
#: benchmarks/fast.py; no result depends on it.
AHEAD = 32

#: The fast logarithms are off by less than this. Derived: twice the errors of the polynomials below.
LOG_ERROR = 2e-9

#: Other roundings of a place, as a part of a cell. Derived: places are below 2^24, so that each of them is below 4e-9.
NEAR_EDGE = 1e-6

#: Bits of floats, and 2^52 with the bias of exponents. Derived: IEEE 754.
_FRACTION, _MANTISSA, _TO_FLOAT, _ONE = U64(52), U64((1 << 52) - 1), U64(0x433 << 52), U64(ONE)
BIAS, LN2 = 2.0**52 + 1023.0, float(np.log(2.0))

#: atanh(s) / s by s^2 for |s| up to 1/3. Derived: the lowest degree that is off by less than 1e-9 (1.1e-10).
_atanh_ratio = horner(polynomial(atanh_ratio, 0.0, 1 / 9, 5))

#: The log of numbers from 1 to 2. Derived: the lowest degree that is off by less than 1e-9 (9.5e-10).
_log_of_mantissa = horner(polynomial(np.log, 1.0, 2.0, 10))


@inner
def parts(a: Any) -> Any:
    """The exponent of a positive normal number, with its bias and 2^52, and its mantissa; in operations of vectors."""
    bits = np.float64(a).view(np.uint64)
    return U64((bits >> _FRACTION) | _TO_FLOAT).view(np.float64), U64((bits & _MANTISSA) | _ONE).view(np.float64)


@contracting
def _log_ratio(a: Any, b: Any) -> Any:
    """log(a / b) of positive normal numbers."""
    power, x = parts(a)
    other, y = parts(b)
    s = (x - y) / (x + y)
    return (power - other) * LN2 + 2.0 * s * _atanh_ratio(s * s)


@contracting
def _log(a: Any) -> Any:
    """The log of a positive normal number, without a division."""
    power, x = parts(a)
    return (power - BIAS) * LN2 + _log_of_mantissa(x)


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

    The columns are those of outcome 0, the lowest p, those of outcome 1, the highest p. Returns the number of rows
    listed.
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

    Columns are rows, u, v, the lowest key, u^2, u v, v^2, the highest key. Returns the rows listed and done: all before
    a block with a key in the first cell, in the last, or in none.
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
