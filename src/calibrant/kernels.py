"""The few loops that touch every row, chunked to fit the cache. Everything else works on tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

#: Rows per chunk: a few arrays of this length stay in the second-level cache.
CHUNK = 1 << 16

#: Rows per chunk of loops with many temporary arrays: below 128 kB each, malloc reuses their memory instead of
#: returning it to the system and faulting it in again, which would cost more than the arithmetic.
SMALL_CHUNK = 12_288

#: Rows per chunk where each chunk also touches every node of a fine grid: long enough to make that cheap.
NODE_CHUNK = 1 << 18

#: The sums every table keeps per cell, in this order. Squares and product are weighted by w, not by w squared.
SUMS = (
    "count",
    "weight",
    "weight_squares",
    "predicted",
    "observed",
    "predicted_squares",
    "product",
    "observed_squares",
)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The rows of a task as the table sees them: is the mean of `predicted` that of `observed` at each `key`?

    `weight` multiplies both (None: one each). Rows that show only one of the two say so in `only`: an unlabeled row
    is weighed and predicted but never observed; a labelled positive is observed but is no part of the population
    that is weighed.
    """

    key: NDArray[Any]
    predicted: NDArray[Any]
    observed: NDArray[Any]
    weight: Floats | None = None
    only: Literal["predicted", "observed"] | None = None

    @property
    def plain(self) -> bool:
        """Unweighted probabilities: the case that is worth a faster loop."""
        return self.weight is None and self.predicted is self.key

    @property
    def plain_binary(self) -> bool:
        """Unweighted probabilities with 0/1 outcomes."""
        return self.plain and self.only is None and self.observed.dtype == np.int8

    def take(self, rows: Any) -> Pairs:
        """The given rows (a slice or an index array)."""
        key = self.key[rows]
        return Pairs(
            key,
            key if self.predicted is self.key else self.predicted[rows],
            self.observed[rows],
            None if self.weight is None else self.weight[rows],
            self.only,
        )

    def sums(self) -> Floats:
        """The columns of `SUMS` for each row, one row of the result per column."""
        predicted, observed = self.predicted.astype(np.float64), self.observed.astype(np.float64)
        weight = np.ones(len(predicted)) if self.weight is None else self.weight
        first, second = weight * predicted, weight * observed
        count, none = np.ones(len(predicted)), np.zeros(len(predicted))
        if self.only == "predicted":
            return np.stack([count, weight, weight * weight, first, none, first * predicted, none, none])
        if self.only == "observed":
            return np.stack([count, none, none, none, second, none, first * observed, second * second])
        return np.stack(
            [count, weight, weight * weight, first, second, first * predicted, first * observed, second * observed]
        )


def equal_width_index(
    key: NDArray[Any], edges: Floats, scratch: tuple[Singles, Singles, NDArray[np.intp]] | None = None
) -> NDArray[np.intp]:
    """`searchsorted(edges[1:-1], key, side="left")` for keys between equally spaced edges, by a multiplication.

    Single precision finds the bin of all keys but the few that lie close to an edge, for half the traffic; only those
    are searched. With `scratch` the result lies in its last array: fresh memory costs as much as the arithmetic.
    """
    n, low, width = len(edges) - 1, edges[0], edges[-1] - edges[0]
    tolerance = np.float32(n * 2.5e-7)  # twice what the roundings of the key and of the product can add up to
    if tolerance > 0.1 or (low and abs(low) > width):
        return np.searchsorted(edges[1:-1], key, side="left")
    if scratch is None:
        scratch = np.empty(len(key), np.float32), np.empty(len(key), np.float32), np.empty(len(key), np.intp)
    place, whole, index = scratch[0][: len(key)], scratch[1][: len(key)], scratch[2][: len(key)]
    np.copyto(place, key - low if low else key, casting="same_kind")
    place *= np.float32(n / width)
    np.floor(place, out=whole)
    np.copyto(index, whole, casting="unsafe")
    place -= whole
    if place.min() < tolerance or place.max() > 1 - tolerance:
        near = np.flatnonzero((place < tolerance) | (place > 1 - tolerance))
        index[near] = np.searchsorted(edges[1:-1], key[near], side="left")
    return index


def equal_width_indexer(edges: Floats) -> Callable[[NDArray[Any]], NDArray[np.intp]]:
    """`equal_width_index` for chunk after chunk: each call overwrites the result of the one before."""
    scratch = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32), np.empty(CHUNK, np.intp)
    return lambda key: equal_width_index(key, edges, scratch)


def hybrid_index(key: NDArray[Any], cells: int, limit: float) -> NDArray[np.intp]:
    """Cells of `HybridGrid`. Single precision finds all but those near an edge, several times faster.

    The places it finds are off by less than 2e-7 of the grid (a few roundings of numbers up to 1 and of logits up
    to 74); only cells closer than twice that to an edge are computed again in double precision.
    """
    tolerance = np.float32(4e-7 * cells)
    if tolerance > 0.1 or limit > 80 or key.dtype not in (np.float32, np.float64):
        return _exact_hybrid_index(key, cells, limit)
    index = np.empty(len(key), np.intp)
    for start in range(0, len(key), SMALL_CHUNK):
        p = key[start : start + SMALL_CHUNK]
        place = _hybrid_place(p, cells, limit)
        part, whole = index[start : start + SMALL_CHUNK], np.floor(place)
        part[:] = whole
        place -= whole
        place -= np.float32(0.5)
        near = np.flatnonzero(np.abs(place, out=place) > np.float32(0.5) - tolerance)
        part[near] = _exact_hybrid_index(p[near], cells, limit)
    return index


def _hybrid_place(p: NDArray[Any], cells: int, limit: float) -> NDArray[np.float32]:
    single, tiny = np.float32, np.float32(np.exp(-limit - 1))
    rest = np.subtract(1, p).astype(single, copy=False)  # in the precision of p, which keeps it right near 1
    p = p.astype(single, copy=False)
    place = np.maximum(p, tiny)
    place /= np.maximum(rest, tiny, out=rest)
    np.log(place, out=place)
    np.clip(place, single(-limit), single(limit), out=place)
    place += single(limit)
    place *= single(cells / (4 * limit))
    place += np.multiply(p, single(cells / 2), out=rest)
    return place


def _exact_hybrid_index(key: NDArray[Any], cells: int, limit: float) -> NDArray[np.intp]:
    p = key.astype(np.float64)
    with np.errstate(divide="ignore"):
        logit = np.log(p / (1 - p))
    place = p / 2 + (np.clip(logit, -limit, limit) + limit) / (4 * limit)
    return np.minimum((place * cells).astype(np.intp), cells - 1)


def sums_by_index(
    pairs: Pairs, index: Callable[[NDArray[Any]], NDArray[np.intp]], size: int, *, squares: bool = True
) -> Floats:
    """Sums per bin for a binning that knows the bin of each row without seeing the others: one pass, no sort.

    Without `squares`, the sum of squared predictions may be left NaN: no estimator needs it of bins, and it would
    cost the fast case a fifth of its time.
    """
    totals = np.zeros((len(SUMS), size))
    for start in range(0, len(pairs.key), CHUNK):
        chunk = pairs.take(slice(start, start + CHUNK))
        where = index(chunk.key)
        if pairs.plain_binary:
            _add_plain_binary(totals, chunk, where, squares=squares)
        elif pairs.plain and pairs.only is not None:
            _add_plain_half(totals, chunk, where, squares=squares)
        elif pairs.weight is not None or pairs.only is not None:
            for total, values in zip(totals, chunk.sums(), strict=True):
                total += np.bincount(where, values, size)
        else:
            _add_unweighted(totals, chunk, where)
    return totals


def _add_unweighted(totals: Floats, chunk: Pairs, index: NDArray[np.intp]) -> None:
    """Count, weight and squared weight are one; six passes instead of eight, and no copies."""
    size = totals.shape[1]
    p, y = chunk.predicted.astype(np.float64, copy=False), chunk.observed.astype(np.float64, copy=False)
    totals[:3] += np.bincount(index, minlength=size)
    for total, values in zip(totals[3:], (p, y, p * p, p * y, y * y), strict=True):
        total += np.bincount(index, values, size)


def _add_plain_binary(totals: Floats, chunk: Pairs, index: NDArray[np.intp], *, squares: bool) -> None:
    """Counts and sums of p split by outcome: two passes give all sums but that of p squared."""
    size = totals.shape[1]
    p = chunk.key.astype(np.float64, copy=False)
    squared = np.bincount(index, p * p, size) if squares else np.full(size, np.nan)
    index += index
    index += chunk.observed
    counts = np.bincount(index, minlength=2 * size).reshape(size, 2)
    p_sums = np.bincount(index, p, 2 * size).reshape(size, 2)
    count, positives = counts.sum(axis=1), counts[:, 1]
    totals += np.stack([count, count, count, p_sums.sum(axis=1), positives, squared, p_sums[:, 1], positives])


def _add_plain_half(totals: Floats, chunk: Pairs, index: NDArray[np.intp], *, squares: bool) -> None:
    """Counts and sums of p of rows that are only predicted or only observed."""
    size = totals.shape[1]
    p = chunk.key.astype(np.float64, copy=False)
    count, sums = np.bincount(index, minlength=size), np.bincount(index, p, size)
    totals[0] += count
    if chunk.only == "predicted":
        totals[1:4] += np.stack([count, count, sums])
        totals[5] += np.bincount(index, p * p, size) if squares else np.nan
    else:
        totals[4] += count
        totals[6:8] += np.stack([sums, count])


def linear_binning(parts: tuple[Pairs, ...], size: int) -> tuple[Floats, Floats]:
    """Mass and observed mass at the nodes 0, 1/size, ..., 1 of rows whose key lies in [0, 1].

    Each row is shared by the two nodes around it, in proportion to nearness, so that the total and the mean key
    are kept; a row on a node, an end among them, goes there whole. One pass, no sort.
    """
    sums = np.zeros((4, size + 1))
    for pairs in parts:
        sums += _plain_node_sums(pairs, size) if pairs.plain_binary else _general_node_sums(pairs, size)
    nodes, moved = sums[:2], sums[2:]
    nodes -= moved
    nodes[:, 1:] += moved[:, :-1]
    return nodes[0], nodes[1]


def _plain_node_sums(pairs: Pairs, size: int) -> Floats:
    """Mass, observed mass, and both times the part of a cell beyond the node; apart by outcome, two passes give all."""
    apart = np.zeros((2, 2 * (size + 1)))
    for chunk, node, beyond in _between_nodes(pairs, size):
        node += node
        node += chunk.observed
        apart[0] += np.bincount(node, minlength=apart.shape[1])
        apart[1] += np.bincount(node, beyond, apart.shape[1])
    negative, positive = apart[:, 0::2], apart[:, 1::2]
    every = negative + positive
    return np.stack([every[0], positive[0], every[1], positive[1]])


def _general_node_sums(pairs: Pairs, size: int) -> Floats:
    sums = np.zeros((4, size + 1))
    for chunk, node, beyond in _between_nodes(pairs, size):
        weight = np.ones(len(node)) if chunk.weight is None else chunk.weight
        mass = 0 * weight if chunk.only == "observed" else weight
        observed = 0 * weight if chunk.only == "predicted" else weight * chunk.observed
        for total, values in zip(sums, (mass, observed, mass * beyond, observed * beyond), strict=True):
            total += np.bincount(node, values, size + 1)
    return sums


def _between_nodes(pairs: Pairs, size: int) -> Iterator[tuple[Pairs, NDArray[np.intp], Floats]]:
    """Chunks of rows, with the node at or below each row and the part of a cell that it lies beyond."""
    for start in range(0, len(pairs.key), NODE_CHUNK):
        chunk = pairs.take(slice(start, start + NODE_CHUNK))
        beyond = chunk.key * np.float64(size)
        node = beyond.astype(np.intp)
        beyond -= node
        yield chunk, node, beyond


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows in the order of their key; `ends` is where each run of equal keys ends, None where no keys are equal."""

    pairs: Pairs
    ends: NDArray[np.intp] | None

    def __len__(self) -> int:
        return len(self.pairs.key)

    @property
    def run_ends(self) -> NDArray[np.intp]:
        """End (exclusive) of each run of equal keys."""
        return np.arange(1, len(self) + 1) if self.ends is None else self.ends

    def after_ties(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The given numbers of leading rows, raised where needed so that no run of equal keys is parted."""
        return rows if self.ends is None else self.ends[np.searchsorted(self.ends, rows, side="left")]

    def distinct(self) -> tuple[Floats, Floats]:
        """The distinct keys and the sums of their rows."""
        rows, ends = self.pairs, self.run_ends
        starts = ends - np.diff(ends, prepend=0)
        key = rows.key[starts].astype(np.float64)
        if not rows.plain_binary and not (rows.plain and rows.only):
            return key, np.add.reduceat(rows.sums(), starts, axis=1)
        sums = np.zeros((len(SUMS), len(key)))
        count, positives = ends - starts, sums[4]
        if rows.only == "observed":
            sums[0], sums[4], sums[6], sums[7] = count, count, count * key, count
            return key, sums
        if rows.only == "predicted":
            sums[:4], sums[3], sums[5] = count, count * key, count * key * key
            return key, sums
        positives[:] = rows.observed if self.ends is None else np.add.reduceat(rows.observed, starts, dtype=np.int64)
        sums[:3], sums[7] = count, positives
        np.multiply(count, key, out=sums[3])
        np.multiply(sums[3], key, out=sums[5])
        np.multiply(positives, key, out=sums[6])
        return key, sums

    def between(self, cuts: NDArray[np.intp]) -> Floats:
        """Sums of the rows between neighbouring cuts (row numbers that begin at 0 and end at the last)."""
        rows, unlabeled = self.pairs, self.pairs.plain and self.pairs.only == "predicted"
        if not rows.plain_binary and not unlabeled:
            return np.add.reduceat(rows.sums(), cuts[:-1], axis=1)
        sums = np.zeros((len(SUMS), len(cuts) - 1))
        sums[:3] = np.diff(cuts)
        if not unlabeled:
            sums[4] = sums[7] = np.add.reduceat(rows.observed, cuts[:-1], dtype=np.int64)
        sums[3] = np.add.reduceat(rows.key, cuts[:-1], dtype=np.float64)
        for k, (start, end) in enumerate(pairwise(cuts)):
            for left in range(start, end, CHUNK):  # in the cache, so that the products need no memory of their own
                p = rows.key[left : min(left + CHUNK, end)].astype(np.float64, copy=False)
                sums[5, k] += (p * p).sum()
                if not unlabeled:
                    sums[6, k] += (p * rows.observed[left : min(left + CHUNK, end)]).sum()
        return sums


def sorted_rows(pairs: Pairs) -> SortedRows:
    """Sort rows by key.

    Plain binary rows are sorted as one integer each, the bits of the score followed by the outcome (the bits of
    floats in [0, 1] are ordered as the floats are): several times faster than an argsort and a gather.
    """
    if pairs.plain_binary:
        whole = np.int32 if pairs.key.dtype == np.float32 else np.int64
        code = (pairs.key + pairs.key.dtype.type(0)).view(whole)  # adding zero turns -0.0 into 0.0
        code <<= 1
        code |= pairs.observed
        code.sort()
        low_byte = 0 if sys.byteorder == "little" else code.itemsize - 1
        observed = code.view(np.int8)[low_byte :: code.itemsize] & np.int8(1)
        code >>= 1
        key = code.view(pairs.key.dtype)
        ordered = Pairs(key, key, observed)
    elif pairs.plain and pairs.only is not None:
        key = np.sort(pairs.key)
        ordered = Pairs(key, key, pairs.observed, only=pairs.only)
    else:
        ordered = pairs.take(np.argsort(pairs.key, kind="stable"))
    differs = ordered.key[1:] != ordered.key[:-1]
    if differs.all():
        return SortedRows(ordered, None)
    return SortedRows(ordered, np.append(np.flatnonzero(differs) + 1, len(ordered.key)))


def isotonic_blocks(rows: SortedRows) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Isotonic regression of plain binary rows: first row, rows and positives of each block of equal fit."""
    ends = rows.ends
    if ends is None:
        observed = rows.pairs.observed
        rises = observed[1:] > observed[:-1]  # every run of ones followed by zeros ends in one block
        starts = np.concatenate([[0], np.flatnonzero(rises) + 1])
        weight = np.diff(starts, append=len(rows)).astype(np.float64)
    else:
        starts = np.concatenate([[0], ends[:-1]])
        weight = np.diff(ends, prepend=0).astype(np.float64)
    positives = np.add.reduceat(rows.pairs.observed, starts, dtype=np.int64).astype(np.float64)
    blocks, weight, positives = pool_adjacent_violators(weight, positives)
    return starts[blocks], weight, positives


def pool_adjacent_violators(weight: Floats, observed: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Isotonic regression of observed / weight: starts, weight and observed sum of its blocks.

    Every maximal run of block means that do not rise ends up in one block, so whole runs are pooled at once; a few
    such rounds leave little for the sequential algorithm. Neighbouring blocks of equal mean come out as one.
    """
    starts = np.arange(len(weight))
    for _ in range(12):
        mean = observed / weight
        rises = mean[1:] > mean[:-1]
        if rises.all():
            return starts, weight, observed
        keep = np.concatenate([[0], np.flatnonzero(rises) + 1])
        starts = starts[keep]
        weight, observed = np.add.reduceat(weight, keep), np.add.reduceat(observed, keep)
    from scipy.optimize import isotonic_regression

    blocks = isotonic_regression(observed / weight, weights=weight).blocks[:-1]
    return starts[blocks], np.add.reduceat(weight, blocks), np.add.reduceat(observed, blocks)
