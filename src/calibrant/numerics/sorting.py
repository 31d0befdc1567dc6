"""Rows in the order of their score: sums between cuts, and runs of tied scores."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.rows import SUMS, Rows
from calibrant.numerics.switch import compiled


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
        fast = compiled(len(key), saves=2.0) if key.flags.c_contiguous else None
        if fast is None:
            return np.append(np.flatnonzero(key[1:] != key[:-1]) + 1, len(key))
        ends = np.empty(self.runs, np.intp)
        fast.run_ends(key, ends)
        return ends

    @property
    def run_ends(self) -> NDArray[np.intp]:
        """End (exclusive) of each run of equal keys."""
        return np.arange(1, len(self) + 1) if self.ends is None else self.ends

    def after_ties(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The given numbers (1 or more) of leading rows, raised where needed so that no run of equal keys is split."""
        return np.searchsorted(self.rows.key, self.rows.key[rows - 1], side="right") if self.tied else rows

    def distinct(self) -> tuple[Floats, Floats]:
        """The distinct keys and the sums of their rows."""
        rows, ends = self.rows, self.run_ends
        starts = ends - np.diff(ends, prepend=0)
        key = rows.key[starts].astype(np.float64)
        if not rows.plain_binary and not (rows.plain and rows.role != "both"):
            return key, np.add.reduceat(rows.sums(), starts, axis=1)
        sums = np.zeros((len(SUMS), len(key)))
        count, positives = ends - starts, sums[4]
        if rows.role == "positives":
            sums[0], sums[4], sums[6], sums[7] = count * rows.counted, count, count * key, count
            return key, sums
        if rows.role == "population":
            sums[:4], sums[3], sums[5] = count, count * key, count * key * key
            return key, sums
        positives[:] = rows.observed if self.ends is None else positives_between(rows.observed, ends)
        sums[:3], sums[7] = count, positives
        np.multiply(count, key, out=sums[3])
        np.multiply(sums[3], key, out=sums[5])
        np.multiply(positives, key, out=sums[6])
        return key, sums

    def between(self, cuts: NDArray[np.intp]) -> Floats:
        """Sums of the rows between consecutive cuts (row numbers from 0 to the number of rows)."""
        rows, unlabeled = self.rows, self.rows.plain and self.rows.role == "population"
        if not rows.plain_binary and not unlabeled:
            return np.add.reduceat(rows.sums(), cuts[:-1], axis=1)
        sums = np.zeros((len(SUMS), len(cuts) - 1))
        sums[:3] = np.diff(cuts)
        plain = not unlabeled and rows.key.flags.c_contiguous and rows.observed.flags.c_contiguous
        if plain and (fast := compiled(len(rows.key), saves=2.0)) is not None:
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


def positives_between(observed: NDArray[np.int8], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sums of 0/1 outcomes up to each end, from the one before; a running sum is far faster than so many short ones."""
    if len(ends) < 1024:
        return np.add.reduceat(observed, np.concatenate([[0], ends])[:-1].astype(np.intp), dtype=np.intp)
    running = np.cumsum(observed, dtype=np.int32 if len(observed) < 2**31 else np.int64)
    return np.diff(running[ends - 1], prepend=running.dtype.type(0)).astype(np.intp)


def sorted_rows(rows: Rows) -> SortedRows:
    """The rows in the order of their key; with 0/1 outcomes, ties are ordered by outcome.

    The result is cached on the rows, which are never sorted twice.
    """
    found: SortedRows | None = vars(rows).get("_sorted")
    if found is None:
        found = vars(rows)["_sorted"] = _sorted(rows)
    return found


def _sorted(rows: Rows) -> SortedRows:
    if rows.plain_binary:
        contiguous = rows.key.flags.c_contiguous and rows.observed.flags.c_contiguous
        fast = compiled(len(rows.key), saves=4.0) if contiguous else None
        if fast is not None:
            return _sorted_by_code(fast, rows)
        key, observed = sort_with_outcomes(rows.key, rows.observed)
        ordered = Rows(key, key, observed)
    elif rows.plain and rows.role != "both":
        key = np.sort(rows.key)
        ordered = Rows(key, key, rows.observed, role=rows.role, counted=rows.counted)
    else:
        ordered = rows.take(np.argsort(rows.key, kind="stable"))
    return SortedRows(ordered, 1 + int(np.count_nonzero(ordered.key[1:] != ordered.key[:-1])))


def _sorted_by_code(fast: ModuleType, rows: Rows) -> SortedRows:
    """`sort_with_outcomes` and the number of its runs, with a compiled pass before the sort and one after it."""
    code = np.empty(len(rows.key), np.int32 if rows.key.dtype == np.float32 else np.int64)
    fast.encode(rows.key.view(code.dtype), rows.observed, code)
    code.sort()
    observed = np.empty(len(code), np.int8)
    runs = int(fast.decode(code, observed))
    key = code.view(rows.key.dtype)
    return SortedRows(Rows(key, key, observed), runs)


def sort_with_outcomes(
    score: NDArray[Any], outcome: NDArray[np.int8], out: tuple[NDArray[Any], NDArray[np.int8]] | None = None
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Scores in [0, 1] and their 0/1 outcomes, sorted along the last axis by score and then outcome.

    Each row is sorted as one integer, the bits of the score followed by the outcome (the bits of such floats are
    ordered as the floats are): several times faster than an argsort and a gather. `out`, if given, is filled.
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
