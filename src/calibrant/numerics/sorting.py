"""Rows in the order of their score: sorts, and sums in narrow cells of the score that mostly replace one.

Radix buckets are read off the bits of a score's distance from 0 or 1 (exponent and five bits of the fraction). So they
are three per cent of that distance wide, and narrow where the scores of confident models are dense. The buckets alone
are enough to resample from; equal-mass bins also need the few rows of the buckets that an edge falls into.

The extremes of the running sum of prediction minus outcome need even fewer rows. Within a cell, the sum can rise by no
more than the predictions of its negative rows, and fall by no more than one minus the predictions of its positive rows.
So only the cells that could hold an extreme have their rows sorted: a few in ten thousand.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import CHUNK, GAP_CELL_ROWS, SELECTION_ROWS, Floats
from calibrant.numerics.rows import SUMS, Rows, half_columns

Rank = Literal["floor", "ceil"]
"""How the rank of an edge that falls between two rows is rounded."""


def mass_ranks(rows: int, at: NDArray[np.intp], n: int, rank: Rank = "floor") -> NDArray[np.intp]:
    """Ranks of the edges `at` of `n` bins of equal mass: rows * at / n, rounded in whole numbers."""
    return rows * at // n if rank == "floor" else -(-rows * at // n)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows in the order of their key, and the number of runs of equal keys."""

    rows: Rows
    runs: int

    def __len__(self) -> int:
        return len(self.rows.key)

    @property
    def tied(self) -> bool:
        """Whether any keys are equal."""
        return self.runs < len(self)

    @cached_property
    def ends(self) -> NDArray[np.intp] | None:
        """Where each run of equal keys ends (exclusive), None where no keys are equal."""
        if not self.tied:
            return None
        key = self.rows.key
        return np.append(np.flatnonzero(key[1:] != key[:-1]) + 1, len(key))

    @property
    def run_ends(self) -> NDArray[np.intp]:
        """End (exclusive) of each run of equal keys."""
        return np.arange(1, len(self) + 1) if self.ends is None else self.ends

    def after_ties(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The given numbers (1 or more) of leading rows, raised where needed so that no run of equal keys is split."""
        return np.searchsorted(self.rows.key, self.rows.key[rows - 1], side="right") if self.tied else rows

    def between(self, cuts: NDArray[np.intp]) -> Floats:
        """Sums of the rows between consecutive cuts (row numbers from 0 to the number of rows)."""
        rows, unlabeled = self.rows, self.rows.plain and self.rows.role == "population"
        if not rows.plain_binary and not unlabeled:
            return np.add.reduceat(rows.sums(), cuts[:-1], axis=1)
        sums = np.zeros((len(SUMS), len(cuts) - 1))
        sums[:3] = np.diff(cuts)
        if not unlabeled and _contiguous(rows) and (fast := compiled(len(rows.key), saves=2.0)) is not None:
            found = np.zeros((4, len(cuts) - 1))
            fast.sums_between(rows.key, rows.observed, cuts, found)
            sums[3], sums[5], sums[6], sums[4] = found
            sums[7] = sums[4]
            return sums
        if not unlabeled:
            sums[4] = sums[7] = positives_between(rows.observed, cuts[1:])
        sums[3] = np.add.reduceat(rows.key, cuts[:-1], dtype=np.float64)
        for k, (start, end) in enumerate(pairwise(cuts)):
            for left in range(start, end, CHUNK):  # small enough for the cache, and no array of all products
                p = rows.key[left : min(left + CHUNK, end)].astype(np.float64, copy=False)
                sums[5, k] += (p * p).sum()
                if not unlabeled:
                    sums[6, k] += (p * rows.observed[left : min(left + CHUNK, end)]).sum()
        return sums


def _contiguous(rows: Rows) -> bool:
    return rows.key.flags.c_contiguous and rows.observed.flags.c_contiguous


def positives_between(observed: NDArray[np.int8], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sums of 0/1 outcomes up to each end, from the one before; a running sum is far faster than many short sums."""
    if len(ends) < 1024:
        return np.add.reduceat(observed, np.concatenate([[0], ends])[:-1].astype(np.intp), dtype=np.intp)
    running = np.cumsum(observed, dtype=np.int32 if len(observed) < 2**31 else np.int64)
    return np.diff(running[ends - 1], prepend=running.dtype.type(0)).astype(np.intp)


def sorted_rows(rows: Rows) -> SortedRows:
    """The rows in the order of their key, sorted only once; with 0/1 outcomes, ties are ordered by outcome."""
    found: SortedRows | None = vars(rows).get("_sorted")
    if found is None:
        found = vars(rows)["_sorted"] = _sorted(rows)
    return found


def distinct_sums(unordered: Rows) -> tuple[Floats, Floats]:
    """The distinct keys and the sums of their rows."""
    found = sorted_rows(unordered)
    rows, ends = found.rows, found.run_ends
    starts = ends - np.diff(ends, prepend=0)
    key = rows.key[starts].astype(np.float64)
    if not rows.plain_binary and not (rows.plain and rows.role != "both"):
        return key, np.add.reduceat(rows.sums(), starts, axis=1)
    count = ends - starts
    if rows.role != "both":
        return key, half_columns(rows, count, count * key, count * key * key)
    sums = np.empty((len(SUMS), len(key)))
    positives = sums[4]
    positives[:] = rows.observed if found.ends is None else positives_between(rows.observed, ends)
    sums[:3], sums[7] = count, positives
    np.multiply(count, key, out=sums[3])
    np.multiply(sums[3], key, out=sums[5])
    np.multiply(positives, key, out=sums[6])
    return key, sums


def equal_mass_rows(rows: SortedRows, n: int, rank: Rank = "floor") -> NDArray[np.intp]:
    """Cuts of unweighted rows into `n` bins: rank rows * b / n, rounded, past any ties, without duplicates."""
    ranks = mass_ranks(len(rows), np.arange(n + 1), n, rank)
    if not rows.tied and n <= len(rows):
        return ranks
    return np.unique(np.concatenate([[0], rows.after_ties(ranks[ranks > 0])]))


def _sorted(rows: Rows) -> SortedRows:
    if rows.plain_binary:
        fast = compiled(len(rows.key), saves=4.0) if _contiguous(rows) else None
        if fast is not None:  # a pass before the sort and one after it, which also counts the runs
            code = np.empty(len(rows.key), np.int32 if rows.key.dtype == np.float32 else np.int64)
            fast.encode(rows.key.view(code.dtype), rows.observed, code)
            code.sort()
            observed = np.empty(len(code), np.int8)
            runs, key = int(fast.decode(code, observed)), code.view(rows.key.dtype)
            return SortedRows(Rows(key, key, observed), runs)
        key, observed = sort_with_outcomes(rows.key, rows.observed)
        ordered = Rows(key, key, observed)
    elif rows.plain and rows.role != "both":
        key = np.sort(rows.key)
        ordered = Rows(key, key, rows.observed, role=rows.role, counted=rows.counted)
    else:
        ordered = rows.take(np.argsort(rows.key, kind="stable"))
    return SortedRows(ordered, 1 + int(np.count_nonzero(ordered.key[1:] != ordered.key[:-1])))


def sort_with_outcomes(
    score: NDArray[Any], outcome: NDArray[np.int8], out: tuple[NDArray[Any], NDArray[np.int8]] | None = None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Scores in [0, 1] and their 0/1 outcomes, sorted along the last axis by score and then outcome.

    Each row is sorted as one integer, the bits of the score followed by the outcome: several times faster than an
    argsort and a gather. `out`, if given, is filled.
    """
    key, sorted_outcome = (np.empty(score.shape, score.dtype), np.empty(score.shape, np.int8)) if out is None else out
    np.add(score, score.dtype.type(0), out=key)  # -0.0 becomes 0.0
    code: NDArray[Any] = key.view(np.int32 if score.dtype == np.float32 else np.int64)
    code <<= 1
    code |= outcome
    code.sort(axis=-1)
    low_byte = 0 if sys.byteorder == "little" else code.itemsize - 1
    np.bitwise_and(code.view(np.int8)[..., low_byte :: code.itemsize], np.int8(1), out=sorted_outcome)
    code >>= 1
    return key, sorted_outcome


#: Bits of the fraction that distinguish buckets. Speed: benchmarks/fast.py; no result depends on it.
FRACTION = 5

#: Powers of two that distinguish buckets; all smaller distances share the outermost bucket. Speed: benchmarks/fast.py;
#: no result depends on it.
POWERS = 64

#: Buckets from 0 to 0.5, and in all. Derived: the scores 0.5 and 1 have their own buckets, since no other float is as
#: near 1 as the last power.
HALF = (POWERS << FRACTION) + 1
BUCKETS = 2 * HALF

#: Selection sorts the rows of the buckets that edges fall into. Beyond this share of all rows, sorting is faster.
#: Speed: benchmarks/binned.py; no result depends on it.
OPENED_BUCKETS = 0.5

#: Number of sampled rows that estimate that share. Speed: benchmarks/binned.py; no result depends on it.
SAMPLE = 1 << 12


def radix_bucket_sums(rows: Rows, *, squares: bool = False, codes: NDArray[np.int16] | None = None) -> Floats:
    """The columns of `SUMS` of plain binary rows in each of the `BUCKETS`, in the order of the scores.

    Without `squares`, the sum of squared predictions is NaN. `codes`, if given, is filled with the bucket and outcome
    of each row (see `rows_in`).
    """
    fast = compiled(len(rows.key), saves=6.0) if _contiguous(rows) else None
    by_code = _by_code if fast is None else partial(_compiled_by_code, fast)
    count, predicted, squared = by_code(rows, squares=squares, codes=codes)
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
    """Compiled version of `_by_code`."""
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
    """Whether `equal_mass_sums` applies and is likely to beat a sort: not for few rows, many bins, or few scores."""
    size = len(rows.key)
    if not rows.plain_binary:
        return False
    least = SELECTION_ROWS[rows.key.dtype]
    if size < least and (size < min(SELECTION_ROWS.values()) or compiled(size, saves=6.0) is None):
        return False
    count = radix_bucket_sums(rows.take(slice(None, None, size // SAMPLE)))[0].astype(np.intp)
    opened = np.unique(_inner_ranks(count, n)[1])
    return bool(count[opened].sum() <= OPENED_BUCKETS * count.sum())


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
    """Codes of rows, twice the bucket plus the outcome; buckets above 0.5 come last, from 1 down. Arrays are reused."""

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


#: Cells per unit of the score. Derived: with the outcome, their number still fits in two bytes.
CELLS = 1 << 13

#: Beyond this share of all rows in cells to be opened, sorting all rows is faster. Speed: benchmarks/fast.py; no
#: result depends on it.
OPENED_GAP_CELLS = 0.5


class GapCells(NamedTuple):
    """Rows and sums of the predictions by cell and outcome, of shape (cells, 2), and twice the cell of each row."""

    rows: Floats
    predicted: Floats
    codes: NDArray[np.int16]


def running_gap_extremes(rows: Rows) -> tuple[float, float]:
    """Lowest and highest sum of p - y over all rows up to a score, of plain binary rows; 0 if none is beyond."""
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
    if sizes.sum() > OPENED_GAP_CELLS * len(rows.key):
        return _extremes_of_sorted(sorted_rows(rows))
    if not len(sizes):
        return lowest, highest
    within = sorted_rows(rows.take(rows_with(np.repeat(opened, 2), cells.codes)))
    gap = within.rows.key.astype(np.float64)
    gap -= within.rows.observed
    running = np.cumsum(gap)
    before = np.concatenate([[0.0], running[np.cumsum(sizes)[:-1] - 1]])
    running += np.repeat(start[opened] - before, sizes)
    running = running[within.run_ends - 1]
    return min(lowest, float(running.min())), max(highest, float(running.max()))


def gap_cells(rows: Rows) -> GapCells:
    """The sums of plain binary rows in cells of the score, the same for equal scores and rising with the score."""
    size, codes = 2 * (CELLS + 1), np.empty(len(rows.key), np.int16)
    fast = compiled(len(codes), saves=4.0) if _contiguous(rows) else None
    if fast is not None:
        table, totals = np.zeros((CELLS + 1, 2, 2)), np.zeros((CELLS + 1, 2, 2))
        fast.gap_cells(rows.key, rows.observed, CELLS, table.reshape(-1), totals.reshape(-1), codes)
        table += totals
        return GapCells(table[..., 0], table[..., 1], codes)
    count, predicted = np.zeros(size, np.intp), np.zeros(size)
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


def _extremes_of_sorted(ordered: SortedRows) -> tuple[float, float]:
    gap = ordered.rows.key.astype(np.float64)
    gap -= ordered.rows.observed
    running = np.cumsum(gap, out=gap)
    if ordered.ends is not None:
        running = running[ordered.ends - 1]
    return min(float(running.min()), 0.0), max(float(running.max()), 0.0)
