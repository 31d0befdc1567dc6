"""Radix buckets of scores: sums per bucket, and exact equal-mass bins, in one pass over the rows without a sort.

The bucket of a score is read off the bits of its distance from 0 or 1 (exponent and five bits of the fraction). So
buckets are three per cent of that distance wide, and narrow where the scores of confident models are dense. The buckets
alone are enough to resample from; equal-mass bins also need the few rows of the buckets that an edge falls into.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.rows import SUMS, Rows
from calibrant.numerics.sizes import SELECTION_ROWS
from calibrant.numerics.sorting import sorted_rows
from calibrant.numerics.switch import compiled

#: Bits of the fraction that distinguish buckets.
FRACTION = 5

#: Powers of two that distinguish buckets; all smaller distances share the outermost bucket.
POWERS = 64

#: Buckets from 0 to 0.5. The scores 0.5 and 1 have their own buckets: no other float is as near 1 as the last power.
HALF = (POWERS << FRACTION) + 1

BUCKETS = 2 * HALF

#: Selection sorts the rows of the buckets that edges fall into. Beyond this share of all rows, sorting is faster.
OPENED_SHARE = 0.5

#: Number of sampled rows that estimate that share.
SAMPLE = 1 << 12


def radix_bucket_sums(rows: Rows, *, squares: bool = False, codes: NDArray[np.int16] | None = None) -> Floats:
    """The columns of `SUMS` of plain binary rows in each of the `BUCKETS`, in the order of the scores.

    Without `squares`, the sum of squared predictions is NaN. `codes`, if given, is filled with the bucket and outcome
    of each row (see `rows_in`).
    """
    contiguous = rows.key.flags.c_contiguous and rows.observed.flags.c_contiguous
    fast = compiled(len(rows.key), saves=6.0) if contiguous else None
    if fast is None:
        count, predicted, squared = _by_code(rows, squares=squares, codes=codes)
    else:
        count, predicted, squared = _compiled_by_code(fast, rows, squares=squares, codes=codes)
    sums = np.empty((len(SUMS), BUCKETS))
    sums[:3], sums[3] = _in_order(count), _in_order(predicted)
    sums[4] = sums[7] = _in_order(count, positive=True)
    sums[5] = _in_order(squared) if squares else np.nan
    sums[6] = _in_order(predicted, positive=True)
    return sums


def _by_code(rows: Rows, *, squares: bool, codes: NDArray[np.int16] | None) -> tuple[Floats, Floats, Floats]:
    """Rows, sums of p and of p^2 (zero without `squares`) per code."""
    count, predicted, squared = np.zeros(2 * BUCKETS), np.zeros(2 * BUCKETS), np.zeros(2 * BUCKETS)
    coder = _Coder(rows.key.dtype)
    for start in range(0, len(rows.key), CHUNK):
        chunk = slice(start, start + CHUNK)
        code, p = coder.codes(rows.key[chunk], rows.observed[chunk])
        count += np.bincount(code, minlength=2 * BUCKETS)
        predicted += np.bincount(code, p, 2 * BUCKETS)
        if squares:
            squared += np.bincount(code, p * p, 2 * BUCKETS)
        if codes is not None:
            codes[chunk] = code
    return count, predicted, squared


def _compiled_by_code(
    fast: ModuleType, rows: Rows, *, squares: bool, codes: NDArray[np.int16] | None
) -> tuple[Floats, Floats, Floats]:
    """The same by a compiled loop."""
    codes = np.empty(len(rows.key), np.int16) if codes is None else codes
    shift, lowest = 52 - FRACTION, (1022 - POWERS) << FRACTION
    columns = 3 if squares else 2
    table, totals = np.zeros(2 * BUCKETS * 2 * columns), np.zeros(2 * BUCKETS * 2 * columns)
    fast.radix_cells(rows.key, rows.observed, shift, lowest, HALF, columns, table, totals, codes)
    table += totals
    count, predicted, *rest = table.reshape(2 * BUCKETS, 2, columns).sum(axis=1).T
    return count, predicted, rest[0] if squares else np.zeros(2 * BUCKETS)


def rows_with(marked: NDArray[np.bool_], codes: NDArray[np.int16]) -> NDArray[np.intp]:
    """The rows whose code is marked."""
    fast = compiled(len(codes), saves=2.0)
    if fast is not None:
        found = np.empty(len(codes) + 1, np.intp)
        return found[: int(fast.marked_rows(codes, marked, 0, found))].copy()
    chosen, index = np.empty(len(codes), np.bool_), np.empty(CHUNK, np.intp)
    for start in range(0, len(codes), CHUNK):
        some = codes[start : start + CHUNK]
        index[: len(some)] = some
        marked.take(index[: len(some)], out=chosen[start : start + CHUNK], mode="clip")
    return np.flatnonzero(chosen)


def rows_in(buckets: NDArray[np.bool_], codes: NDArray[np.int16]) -> NDArray[np.intp]:
    """The rows in the marked buckets, given the codes that `radix_bucket_sums` filled in."""
    return rows_with(np.repeat(np.concatenate([buckets[:HALF], buckets[: HALF - 1 : -1]]), 2), codes)


def selection_is_faster(rows: Rows, n: int) -> bool:
    """Whether `equal_mass_sums` applies and is likely to beat a sort: half the time for a million rows and 15 bins.

    It is not for few rows, nor where edges fall into the buckets of most rows: many bins, or scores in few buckets.
    """
    size = len(rows.key)
    if not rows.plain_binary:
        return False
    least = SELECTION_ROWS[rows.key.dtype]
    if size < least and (size < min(SELECTION_ROWS.values()) or compiled(size, saves=6.0) is None):
        return False
    count = radix_bucket_sums(rows.take(slice(None, None, size // SAMPLE)))[0].astype(np.intp)
    opened = np.unique(_inner_ranks(count, n)[1])
    return bool(count[opened].sum() <= OPENED_SHARE * count.sum())


def equal_mass_sums(rows: Rows, n: int, *, squares: bool) -> tuple[Floats, Floats]:
    """Edges and sums of `n` bins of equal mass of plain binary rows; only rows near an edge are sorted."""
    codes = np.empty(len(rows.key), np.int16)
    sums = radix_bucket_sums(rows, squares=squares, codes=codes)
    count = sums[0].astype(np.intp)
    ranks, bucket = _inner_ranks(count, n)
    opened = np.zeros(BUCKETS, np.bool_)
    opened[bucket] = True
    around = sorted_rows(rows.take(rows_in(opened, codes)))
    ahead = np.cumsum(np.where(opened, 0, count))[bucket]
    low, high = rows.key.min(), rows.key.max()
    at = around.rows.key[ranks - ahead - 1]
    at, first = np.unique(at[at < high], return_index=True)
    edges = np.concatenate([[low], at, [high]]).astype(np.float64) + 0.0  # no edge is -0.0

    sums[:, opened] *= 0
    sums = np.add.reduceat(sums, np.concatenate([[0], bucket[first]]), axis=1)
    cuts = np.searchsorted(around.rows.key, at, side="right")
    cuts = np.unique(np.concatenate([[0], cuts, [len(around)]]))  # the last bin may have no row around an edge
    sums[:, : len(cuts) - 1] += around.between(cuts)
    return edges, sums


def _inner_ranks(count: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The ranks of the inner edges and the buckets they fall into; the last bucket holds only 1, so it is never cut."""
    running = np.cumsum(count)
    ranks = running[-1] * np.arange(1, n) // n
    ranks = ranks[(ranks > 0) & (ranks <= running[-2])]
    return ranks, np.searchsorted(running, ranks, side="left")


class _Coder:
    """Codes of rows: twice the bucket, plus the outcome. Buckets above 0.5 come last, from 1 down to 0.5.

    The arrays are reused from chunk to chunk: allocating memory costs as much as the arithmetic.
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


def _in_order(by_code: NDArray[Any], *, positive: bool = False) -> NDArray[Any]:
    """Sums per code as sums per bucket in the order of the scores, of the positive rows or of all."""
    outcomes = by_code.reshape(BUCKETS, 2)
    buckets = outcomes[:, 1] if positive else outcomes.sum(axis=1)
    return np.concatenate([buckets[:HALF], buckets[: HALF - 1 : -1]])
