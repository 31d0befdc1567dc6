"""Many samples at once: the binned estimators on a matrix of repeats, sorted once and cut as often as needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.estimators.debiased import debiased_power
from calibrant.numerics.arrays import Floats
from calibrant.table.binning import Edges, EqualMass, EqualWidth

Places = NDArray[np.intp]
Fixed = EqualMass | EqualWidth | Edges
"""Binnings that know their number of bins beforehand."""

#: The sweep looks for rows in perfect order, which would run to the end, after this many bins.
_PATIENCE = 32


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples of equal size, one to a row, in the order of their scores.

    `predicted` and `observed` are running sums that begin with 0, so that a bin is a difference; those of outcomes are
    whole numbers, which a processor adds up four times as fast.
    """

    key: Floats
    predicted: Floats
    observed: Places

    @classmethod
    def of(cls, scores: Floats, outcomes: NDArray[np.int8]) -> Batch:
        """Sort each row as one integer per score, its bits followed by the outcome."""
        code = (scores + 0.0).view(np.int64)
        code <<= 1
        code |= outcomes
        code.sort(axis=1)
        observed = _running(code & 1)
        code >>= 1
        key = code.view(np.float64)
        return cls(key, _running(key), observed)

    @property
    def size(self) -> int:
        """Rows of each sample."""
        return self.key.shape[1]

    def cuts(self, binning: Fixed, rows: Places) -> Places:
        """Where each bin of these samples begins and ends, one line of places each; equal scores stay together."""
        if isinstance(binning, EqualMass):
            inner = self._ranks(self.size * np.arange(1, binning.n_bins) // binning.n_bins, rows)
        else:
            edges = binning.edges[1:-1]
            inner = self._end_of_run(np.repeat(rows, len(edges)), np.tile(edges, len(rows)))
            inner = inner.reshape(len(rows), len(edges))
        ends = np.zeros((len(rows), 1), dtype=np.intp)
        return np.concatenate([ends, inner, ends + self.size], axis=1)

    def _ranks(self, ranks: Places, rows: Places) -> Places:
        """The ranks, each moved up to the end of its run of equal scores."""
        places = np.broadcast_to(ranks, (len(rows), len(ranks))).copy()
        last = self.key[rows[:, None], np.maximum(ranks - 1, 0)]
        tied = (last == self.key[rows[:, None], ranks]) & (ranks > 0)
        if tied.any():
            places[tied] = self._end_of_run(rows[np.nonzero(tied)[0]], last[tied])
        return places

    def _end_of_run(self, rows: Places, values: Floats) -> Places:
        """How many scores of each row are at most the value: all bisections at once."""
        flat, start = self.key.ravel(), rows * self.size
        low, high = np.zeros(len(rows), dtype=np.intp), np.full(len(rows), self.size, dtype=np.intp)
        for _ in range(self.size.bit_length()):
            middle = (low + high) >> 1
            inside = flat[start + np.minimum(middle, self.size - 1)] <= values
            inside &= middle < high
            low, high = np.where(inside, middle + 1, low), np.where(inside, high, middle)
        return low


@dataclass(frozen=True, eq=False)
class Bins:
    """Count, mean prediction and mean outcome per bin and sample; empty bins have a count of 0 and gaps of 0."""

    count: Floats
    predicted: Floats
    observed: Floats

    @classmethod
    def of(cls, batch: Batch, binning: Fixed, rows: Places | None = None) -> Bins:
        """The bins of all samples, or of these rows."""
        rows = np.arange(len(batch.key)) if rows is None else rows
        cuts, line = batch.cuts(binning, rows), rows[:, None]
        count = np.diff(cuts, axis=1).astype(np.float64)
        whole = np.maximum(count, 1.0)
        predicted = np.diff(batch.predicted[line, cuts], axis=1) / whole
        return cls(count, predicted, np.diff(batch.observed[line, cuts], axis=1) / whole)

    @property
    def gap(self) -> Floats:
        """Mean prediction less mean outcome."""
        return self.predicted - self.observed


def ece(batch: Batch, *, bins: Fixed, norm: float) -> Floats:
    """`calibrant.ece` of each sample."""
    return _norm(Bins.of(batch, bins), batch.size, norm)


def debiased_ece(batch: Batch, *, bins: Fixed, norm: float) -> Floats:
    """`calibrant.debiased_ece` of each sample."""
    table = Bins.of(batch, bins)
    rate = table.observed
    variance = np.maximum(rate - rate**2, 0.0) / np.maximum(table.count - 1, 1.0)
    powers = np.where(table.count > 1, debiased_power(table.gap, variance, norm), 0.0)
    total = (table.count * powers).sum(axis=1) / batch.size
    return np.asarray(np.sign(total) * np.abs(total) ** (1 / norm))


def sweep_ece(batch: Batch, *, bins: type[EqualMass] | type[EqualWidth], norm: float) -> Floats:
    """`calibrant.sweep_ece` of each sample."""
    chosen = largest_rising(batch, bins)
    values = np.empty(len(chosen))
    for n in np.unique(chosen):
        rows = np.flatnonzero(chosen == n)
        values[rows] = _norm(Bins.of(batch, bins(int(n)), rows), batch.size, norm)
    return values


def largest_rising(batch: Batch, bins: type[EqualMass] | type[EqualWidth]) -> Places:
    """b* of each sample: the last number of bins before the first whose mean outcomes fall somewhere."""
    size = batch.size
    chosen = np.full(len(batch.key), max(size - 1, 1), dtype=np.intp)
    active = np.arange(len(chosen))
    for n in range(2, size):
        if n == _PATIENCE:
            active = _without_perfect_order(batch, active, chosen)
        falls = _falls(batch, bins(n), active)
        chosen[active[falls]] = n - 1
        active = active[~falls]
        if not len(active):
            break
    if size <= _PATIENCE:
        _without_perfect_order(batch, active, chosen)
    return chosen


def _without_perfect_order(batch: Batch, active: Places, chosen: Places) -> Places:
    """The active rows but those in perfect order, to which every score is a bin of its own."""
    perfect = np.array([_in_order(batch, row) for row in active], dtype=bool)
    chosen[active[perfect]] = batch.size
    return active[~perfect]


def _falls(batch: Batch, binning: Fixed, rows: Places) -> NDArray[np.bool_]:
    """Whether a bin's mean outcome is below that of the last filled bin before it."""
    cuts = batch.cuts(binning, rows)
    count, observed = np.diff(cuts, axis=1), np.diff(batch.observed[rows[:, None], cuts], axis=1)
    rate = np.divide(observed, count, out=np.full(count.shape, -np.inf), where=count > 0)
    highest = np.maximum.accumulate(rate, axis=1)  # before the first fall, the last filled is the highest
    return np.asarray(((count[:, 1:] > 0) & (rate[:, 1:] < highest[:, :-1])).any(axis=1))


def _in_order(batch: Batch, row: int) -> bool:
    """Whether the mean outcomes of the distinct scores never fall: then no binning of them does."""
    ends = np.append(np.flatnonzero(np.diff(batch.key[row])) + 1, batch.size)
    rate = np.diff(batch.observed[row, ends], prepend=0.0) / np.diff(ends, prepend=0)
    return not bool(np.any(np.diff(rate) < 0))


def _norm(table: Bins, size: int, norm: float) -> Floats:
    gap = np.abs(table.gap)
    if np.isinf(norm):
        return np.asarray(np.where(table.count > 0, gap, 0.0).max(axis=1))
    return np.asarray(((table.count * gap**norm).sum(axis=1) / size) ** (1 / norm))


def _running(values: NDArray[Any]) -> NDArray[Any]:
    running = np.zeros((values.shape[0], values.shape[1] + 1), values.dtype)
    np.cumsum(values, axis=1, out=running[:, 1:])
    return running
