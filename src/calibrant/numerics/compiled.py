"""The loops over rows, compiled by Numba: the only module that imports it. `numerics.switch` says when it is used.

Every kernel finds the bins and cells of NumPy's way, bit for bit, and sums that agree to 1e-12. Kernels release the
interpreter's lock, never allocate per row, and index with unsigned numbers (the test for negative ones would double
the time). Scores are read in blocks that stay in the first-level cache: a vectorised loop finds bins and checks rows,
then a scalar one adds them up. A kernel that meets a bad row says so and its sums are dropped: NumPy's way then finds
the row and words the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: Rows of a block; copies of a small table, so that neighbouring rows never wait for the same number; blocks between
#: two additions to the totals, so that no running sum has many terms.
BLOCK, LANES, FLUSH = 1024, 16, 16

#: Rows of grids that are closer to an edge than this are not added but listed.
NEAR_EDGE = 1e-6

#: Columns of a cell of a grid: one line of the cache.
GRID_COLUMNS = 8

_U, _I = np.uint64, np.int64
_LN2 = float(np.log(2.0))
_MANTISSA, _ONE = np.int64((1 << 52) - 1), np.int64(1023 << 52)


def _kernel(function: Kernel, *, reorder: bool = False) -> Kernel:
    """Compile without the interpreter's lock, keeping the machine code on disk where a folder for it can be written."""
    options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
    if reorder:
        options["fastmath"] = {"reassoc", "contract", "nsz"}  # never nnan: checks rely on NaN
    try:
        return cast(Kernel, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(Kernel, numba.njit(**options)(function))


def _reordering(function: Kernel) -> Kernel:
    return _kernel(function, reorder=True)


# ---------------------------------------------------------------- few bins of equal width


@_kernel
def _flush(lanes: Any, size: Any, totals: Any) -> None:
    for lane in range(LANES):
        for k in range(size):
            totals[0, k] += lanes[(lane * size + k) * 2 + 1]
            totals[1, k] += lanes[(lane * size + k) * 2]
    lanes[:] = 0.0


@_kernel
def _equal_width(p: Any, y: Any, labelled: Any, edges: Any, totals: Any, lanes: Any, values: Any, index: Any) -> Any:
    """Add rows and sums of p per bin and outcome to `totals`; whether a score is bad, and the union of all label bits.

    floor(bins p + 1/2) is the bin or one more, whatever the rounding, and one comparison with the true edge settles it:
    bin = r - (p <= edges[r]) with edges[0] = -1 and edges[bins] = infinity. No branch depends on the data.
    """
    bins = edges.shape[0] - 1
    scale, bad, union, blocks = np.float64(bins), _I(0), _I(0), 0
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, wrong = p[start : start + m], np.int32(0)
        for i in range(m):
            v: Any = np.float64(score[i])
            ok = (v >= 0.0) & (v <= 1.0)
            wrong |= np.int32(not ok)
            v = v if ok else 0.5
            r = np.int32(v * scale + 0.5)
            where = r - np.int32(v <= edges[np.uint32(r)])
            index[i] = np.uint32(2 * (where + (np.int32(i) & np.int32(LANES - 1)) * np.int32(bins)))
            values[i] = v
        bad |= _I(wrong)
        if labelled:
            label, bits = y[start : start + m], _I(0)
            for i in range(m):
                outcome = _I(label[i])
                bits |= outcome
                index[i] += np.uint32(outcome & 1)
            union |= bits
        for i in range(m):  # one load, addition and store of 16 bytes
            at = _U(index[i]) * _U(2)
            lanes[at] += values[_U(i)]
            lanes[at + _U(1)] += 1.0
        blocks += 1
        if blocks == FLUSH:
            blocks = 0
            _flush(lanes, 2 * bins, totals)
    if blocks:
        _flush(lanes, 2 * bins, totals)
    return bad, union


def equal_width(p: Any, y: Any | None, edges: Any) -> Any | None:
    """Rows and sums of p per bin and outcome, of shape (2, bins, 2), of any rows; None if a row is bad."""
    bins = len(edges) - 1
    ends = np.concatenate([[-1.0], edges[1:-1], [np.inf]])
    totals = np.zeros((2, 2 * bins))
    labelled = y is not None
    work = np.zeros(LANES * 2 * bins * 2), np.empty(BLOCK), np.empty(BLOCK, np.uint32)
    label = y if y is not None else _NO_LABELS
    bad, union = _equal_width(p, label, labelled, ends, totals, *work)
    return None if bad or union & ~1 else totals.reshape(2, bins, 2)


_NO_LABELS = np.zeros(1, np.int8)


# ---------------------------------------------------------------- grids of many cells


@_kernel
def _log_ratio(a: Any, b: Any) -> Any:
    """log(a / b) but for 1e-11, made of arithmetic alone, so that loops of it are vectorised."""
    bits_a, bits_b = np.float64(a).view(np.int64), np.float64(b).view(np.int64)
    exponent = np.float64((bits_a >> _I(52)) - (bits_b >> _I(52)))
    a = _I((bits_a & _MANTISSA) | _ONE).view(np.float64)
    b = _I((bits_b & _MANTISSA) | _ONE).view(np.float64)
    s = (a - b) / (a + b)
    q = s * s
    r = 1.0 / 19 + q / 21.0
    r = 1.0 / 17 + q * r
    r = 1.0 / 15 + q * r
    r = 1.0 / 13 + q * r
    r = 1.0 / 11 + q * r
    r = 1.0 / 9 + q * r
    r = 1.0 / 7 + q * r
    r = 1.0 / 5 + q * r
    r = 1.0 / 3 + q * r
    r = 1.0 + q * r
    return exponent * _LN2 + 2.0 * s * r


@_kernel
def _to_totals(cell: Any, table: Any, totals: Any, sums: Any) -> None:
    """Move the sums of a cell to its totals, so that no running sum has many terms."""
    for j in range(sums):
        totals[cell + _U(j)] += table[cell + _U(j)]
        table[cell + _U(j)] = 0.0


@_kernel
def hybrid(p: Any, y: Any, cells: Any, offset: Any, slope: Any, table: Any, totals: Any, unsure: Any) -> Any:
    """Add rows, positives, p, p^2, p y per cell, and keep lowest and highest; the number of rows listed in `unsure`.

    Rows within 1e-6 of an edge, where the logarithm decides, are only listed: the formula itself places them.
    """
    listed, size = 0, np.float64(cells)
    index, part = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, near = p[start : start + m], _I(0)
        for i in range(m):
            v = np.float64(score[i])
            x = v * (size / 2.0) + _log_ratio(v + offset, (1.0 - v) + offset) * slope + size / 4.0
            x = 0.5 if x < 0.999 else x  # there is no edge below or above
            x = size - 0.5 if x > size - 0.999 else x
            k = np.int32(x)
            f = x - np.float64(k)
            near |= _I((f < NEAR_EDGE) | (f > 1.0 - NEAR_EDGE))
            index[i], part[i] = np.uint32(k), f
        if near:
            for i in range(m):
                if part[i] < NEAR_EDGE or part[i] > 1.0 - NEAR_EDGE:
                    unsure[listed] = start + i
                    listed += 1
                    index[i] = np.uint32(cells)  # a cell that nobody reads
        for i in range(m):
            a, v, w = _U(index[i]) * _U(GRID_COLUMNS), np.float64(score[i]), np.float64(y[start + i])
            table[a] += 1.0
            table[a + _U(1)] += w
            table[a + _U(2)] += v
            table[a + _U(3)] += v * v
            table[a + _U(4)] += v * w
            table[a + _U(5)] = min(table[a + _U(5)], v)
            table[a + _U(6)] = max(table[a + _U(6)], v)
            if table[a] == 1024.0:
                _to_totals(a, table, totals, 5)
    return listed


@_kernel
def log_grid(
    key: Any, predicted: Any, observed: Any, per_fold: Any, first: Any, table: Any, totals: Any, unsure: Any
) -> Any:
    """Add rows, u, v, u^2, u v, v^2 (predicted u, observed v) per cell of the log of the key, and keep its extremes.

    Returns the number of rows listed. The table must have the cells of all keys.
    """
    listed, spare = 0, table.shape[0] // GRID_COLUMNS - 1
    index, part = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    for start in range(0, key.shape[0], BLOCK):
        m = min(key.shape[0] - start, BLOCK)
        score, near = key[start : start + m], _I(0)
        for i in range(m):
            x = _log_ratio(np.float64(score[i]), 1.0) * per_fold - first
            x = min(max(x, 0.0), np.float64(spare) - 0.5)
            k = np.int32(x)
            f = x - np.float64(k)
            near |= _I((f < NEAR_EDGE) | (f > 1.0 - NEAR_EDGE))
            index[i], part[i] = np.uint32(k), f
        if near:
            for i in range(m):
                if part[i] < NEAR_EDGE or part[i] > 1.0 - NEAR_EDGE:
                    unsure[listed] = start + i
                    listed += 1
                    index[i] = np.uint32(spare)
        for i in range(m):
            a, s = _U(index[i]) * _U(GRID_COLUMNS), np.float64(score[i])
            u, v = np.float64(predicted[start + i]), np.float64(observed[start + i])
            table[a] += 1.0
            table[a + _U(1)] += u
            table[a + _U(2)] += v
            table[a + _U(3)] += u * u
            table[a + _U(4)] += u * v
            table[a + _U(5)] += v * v
            table[a + _U(6)] = min(table[a + _U(6)], s)
            table[a + _U(7)] = max(table[a + _U(7)], s)
            if table[a] == 1024.0:
                _to_totals(a, table, totals, 6)
    return listed


# ---------------------------------------------------------------- cells that save a sort


@_kernel
def gap_cells(p: Any, y: Any, cells: Any, table: Any, totals: Any, codes: Any) -> None:
    """Add rows and sums of p per equally wide cell and outcome; `codes` becomes twice the cell, plus the outcome."""
    scale = np.float64(cells)
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, label, code = p[start : start + m], y[start : start + m], codes[start : start + m]
        for i in range(m):
            code[i] = np.int16(2 * np.int32(np.float32(np.float64(score[i]) * scale)) + np.int32(label[i]))
        for i in range(m):
            a = _U(np.uint16(code[i])) * _U(2)
            table[a] += 1.0
            table[a + _U(1)] += np.float64(score[i])
            if table[a] == 1024.0:
                _to_totals(a, table, totals, 2)


@_kernel
def radix_cells(
    p: Any, y: Any, shift: Any, lowest: Any, half: Any, squares: Any, table: Any, totals: Any, codes: Any
) -> None:
    """Add rows, sums of p and of p^2 per bucket and outcome; the codes are those of `radix_buckets`."""
    columns = _U(3) if squares else _U(2)
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, label, code = p[start : start + m], y[start : start + m], codes[start : start + m]
        for i in range(m):
            v = np.float64(score[i])
            upper = v > 0.5
            distance = np.float64(1.0 - v if upper else v)
            bucket = max((distance.view(np.int64) >> _I(shift)) - _I(lowest), _I(0))
            code[i] = np.int16(2 * bucket + _I(label[i]) + (_I(2 * half) if upper else _I(0)))
        for i in range(m):
            a, v = (_U(np.uint16(code[i])) * _U(2) + _U(i & 1)) * columns, np.float64(score[i])  # in two lanes
            table[a] += 1.0
            table[a + _U(1)] += v
            if squares:
                table[a + _U(2)] += v * v
            if table[a] == 1024.0:
                _to_totals(a, table, totals, columns)


@_kernel
def marked_rows(codes: Any, marked: Any, first: Any, rows: Any) -> Any:
    """List the rows whose code is marked; how many there are. `rows` must have room for one more."""
    found = _U(0)
    for i in range(codes.shape[0]):
        rows[found] = first + i
        found += _U(marked[_U(np.uint16(codes[i]))])
    return found


# ---------------------------------------------------------------- before and after a sort


@_kernel
def encode(bits: Any, y: Any, code: Any) -> None:
    """The bits of scores in [0, 1], and the outcome as a last bit; -0.0 has the bits of 0.0."""
    for i in range(bits.shape[0]):
        code[i] = (bits[i] << 1) | y[i]


@_kernel
def decode(code: Any, y: Any, ends: Any) -> Any:
    """Turn sorted codes into the bits of scores, outcomes, and ends of runs of equal scores; the number of runs."""
    n = code.shape[0]
    runs, before = _U(0), code[0] >> 1
    y[0] = np.int8(code[0] & 1)
    code[0] = before
    for i in range(1, n):
        now = code[i] >> 1
        y[i] = np.int8(code[i] & 1)
        code[i] = now
        ends[runs] = i
        runs += _U(now != before)
        before = now
    ends[runs] = n
    return runs + _U(1)


@_kernel
def isotonic_blocks(observed: Any, ends: Any, tied: Any, weight: Any, positives: Any, starts: Any) -> Any:
    """Rows, positives and first row of the blocks of the isotonic fit of sorted 0/1 outcomes; how many there are.

    A run of ties, or of ones and the zeros after them, is a block from the outset. Whole numbers: no rounding.
    """
    n, blocks, i, run = observed.shape[0], 0, 0, 0
    while i < n:
        first, s = i, _I(0)
        if tied:
            end = ends[_U(run)]
            run += 1
            while i < end:
                s += _I(observed[_U(i)])
                i += 1
        else:
            while i < n and observed[_U(i)]:
                i += 1
            s = _I(i - first)
            while i < n and not observed[_U(i)]:
                i += 1
        w = _I(i - first)
        while blocks > 0 and positives[_U(blocks - 1)] * w >= s * weight[_U(blocks - 1)]:
            blocks -= 1
            w += weight[_U(blocks)]
            s += positives[_U(blocks)]
            first = starts[_U(blocks)]
        weight[_U(blocks)], positives[_U(blocks)], starts[_U(blocks)] = w, s, first
        blocks += 1
    return blocks


@_kernel
def pool_adjacent_violators(weight: Any, observed: Any, starts: Any) -> Any:
    """Pool blocks in place until the means observed / weight rise strictly; the number of blocks."""
    blocks = 0
    for i in range(weight.shape[0]):
        w, s, first = weight[i], observed[i], starts[i]
        while blocks > 0 and observed[_U(blocks - 1)] * w >= s * weight[_U(blocks - 1)]:
            blocks -= 1
            w += weight[_U(blocks)]
            s += observed[_U(blocks)]
            first = starts[_U(blocks)]
        weight[_U(blocks)], observed[_U(blocks)], starts[_U(blocks)] = w, s, first
        blocks += 1
    return blocks


@_kernel
def largest_rising(running: Any, ends: Any, tied: Any, least: Any, most: Any) -> Any:
    """The last number of equal-mass bins before the first from `least` to `most` whose mean outcomes fall; 0 if none.

    `running` counts positives. Whole numbers, so there is no rounding.
    """
    n = running.shape[0] - 1
    for bins in range(least, most + 1):
        low, hits, rows = 0, _I(0), _I(1)  # a mean of zero before the first bin
        for b in range(1, bins + 1):
            high = (n * b) // bins
            if tied:
                first, last = 0, ends.shape[0] - 1
                while first < last:
                    middle = (first + last) >> 1
                    if ends[_U(middle)] < high:
                        first = middle + 1
                    else:
                        last = middle
                high = ends[_U(first)]
            if high == low:
                continue
            more, many = _I(running[_U(high)]) - _I(running[_U(low)]), _I(high - low)
            if more * rows < hits * many:
                return bins - 1
            hits, rows, low = more, many, high
    return 0


# ---------------------------------------------------------------- matrices of class probabilities


@_kernel
def few_classes(p: Any, columns: Any, tolerance: Any, best: Any, top: Any) -> Any:
    """The first largest class of each row and its probability; the number of rows that break a rule."""
    bad: Any = 0
    for i in range(best.shape[0]):
        total, big, small, at, row = 0.0, -1.0, 1.0, _I(0), _U(i) * _U(columns)
        for k in range(columns):
            v = np.float64(p[row + _U(k)])
            total += v
            larger = v > big
            big = v if larger else big
            at = _I(k) if larger else at
            small = v if v < small else small
        # a NaN makes the sum NaN, which is not within any tolerance
        bad += _I(not ((small >= 0.0) & (big <= 1.0) & (abs(total - 1.0) <= tolerance)))
        best[i], top[i] = at, big
    return bad


@_reordering
def _row_sum(row: Any) -> Any:
    total = 0.0
    for k in range(row.shape[0]):
        total += np.float64(row[k])
    return total


@_kernel
def _row_most(bits: Any) -> Any:
    most = bits[0]
    for k in range(bits.shape[0]):
        most = max(most, bits[k])
    return most


@_kernel
def many_classes(p: Any, bits: Any, bits_of_one: Any, tolerance: Any, best: Any, top: Any) -> Any:
    """The same: the largest of the bits as unsigned numbers finds bad scores and the top label in one reduction."""
    bad = 0
    for i in range(best.shape[0]):
        most = _row_most(bits[i])
        if most > bits_of_one or not (abs(_row_sum(p[i]) - 1.0) <= tolerance):
            bad += 1
            continue
        at = _I(0)
        while bits[i, _U(at)] != most:
            at += 1
        best[i], top[i] = at, p[i, _U(at)]
    return bad


# ---------------------------------------------------------------- starting


def try_out() -> None:
    """Compile a small kernel and see that it counts."""
    found = equal_width(np.array([0.2, 0.7]), np.array([0, 1], np.int8), np.array([0.0, 0.5, 1.0]))
    if found is None or found[0].tolist() != [[1.0, 0.0], [0.0, 1.0]]:
        message = "Numba compiled a loop that does not add up."
        raise RuntimeError(message)


def compile_all() -> None:
    """Compile every kernel, or load it from disk, for both precisions and the usual types of labels."""
    edges, squares, tied = np.array([0.0, 0.5, 1.0]), False, True
    codes, marked, rows = np.empty(3, np.int16), np.zeros(8, np.bool_), np.empty(4, np.intp)
    unsure, grid = np.empty(3, np.int64), np.zeros(3 * GRID_COLUMNS)
    for dtype in (np.float32, np.float64):
        p, bits = np.full(3, 0.3, dtype), np.uint32 if dtype is np.float32 else np.uint64
        for label in (np.int8, np.int32, np.int64):
            equal_width(p, np.zeros(3, label), edges)
        y = np.zeros(3, np.int8)
        if dtype is np.float64:
            hybrid(p, y, 2, 1e-3, 0.1, grid.copy(), grid.copy(), unsure)
        gap_cells(p, y, 4, np.zeros(40), np.zeros(40), codes)
        radix_cells(p, y, 50, 1 << 12, 1, squares, np.zeros(64), np.zeros(64), codes)
        code = np.zeros(3, np.int32 if dtype is np.float32 else np.int64)
        encode(p.view(code.dtype), y, code)
        decode(code, y, rows[:3])
        matrix, best, top = np.full((2, 2), 0.5, dtype), np.empty(2, np.intp), np.empty(2, dtype)
        few_classes(matrix.reshape(-1), 2, 1e-3, best, top)
        many_classes(matrix, matrix.view(bits), np.ones(1, dtype).view(bits)[0], 1e-3, best, top)
    key = np.full(3, 1.5)
    log_grid(key, key, key, 1.0, 0.0, grid.copy(), grid.copy(), unsure)
    marked_rows(np.zeros(3, np.int16), marked, 0, rows)
    pool_adjacent_violators(np.ones(3), np.zeros(3), np.arange(3))
    whole = np.zeros(3, np.int64)
    isotonic_blocks(np.zeros(3, np.int8), np.arange(1, 4), tied, whole, whole.copy(), np.zeros(3, np.intp))
    for running in (np.zeros(4, np.int32), np.zeros(4, np.int64)):
        largest_rising(running, np.arange(1, 4), tied, 2, 2)
