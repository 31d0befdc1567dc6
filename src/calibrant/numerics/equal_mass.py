"""Equal-mass bins: where to cut sorted cells, of one sample or of many samples of equal size at once.

Many samples are sorted together, and can then be cut into bins as often as needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.sorting import Rank, SortedRows, mass_ranks, sort_with_outcomes


@dataclass(frozen=True, eq=False)
class RunningWeight:
    """The cumulative weight of sorted cells, and where to cut it into bins of equal mass.

    Edge b of n follows the cell at which the cumulative weight first reaches b / n of the total; if all rows have the
    same weight, the row of rank floor(rows * b / n) and its ties. `running` includes each cell, and holds `counts` of
    rows if all have the same weight; an `atom` is a single score, which is never split.
    """

    running: Floats
    counts: bool
    atom: NDArray[np.bool_]

    @classmethod
    def of(
        cls, weight: Floats, squares: Floats | None = None, *, atom: NDArray[np.bool_] | None = None
    ) -> RunningWeight:
        """From weights of cells and their sums of squares; without squares, integer weights are counts of rows."""
        row = 1.0 if squares is None else float(squares.sum()) / float(weight.sum())
        count = np.rint(weight / row)
        counts = np.allclose(count * row, weight, rtol=1e-9, atol=0)
        if squares is not None:
            counts = counts and np.allclose(row * weight, squares, rtol=1e-9, atol=0)
        atom = np.ones(len(weight), np.bool_) if atom is None else atom
        return cls(np.cumsum(count if counts else weight), counts, atom)

    def cuts(self, n: int, rank: Rank = "floor") -> Floats:
        """Positions that divide the weight into `n` bins of equal mass, without duplicates; no atom is cut inside."""
        running, total = self.running, self.running[-1]
        target = total * np.arange(1, n) / n * (1 - 1e-12)  # running sums of real weights carry rounding
        if self.counts and total < 2**53 / n:
            target = mass_ranks(int(total), np.arange(1, n), n, rank).astype(np.float64)
        target = target[target > 0]
        cell = np.searchsorted(running, target, side="left")
        position = cell + 1.0
        if not self.atom.all():
            before = np.where(cell > 0, running[cell - 1], 0.0)
            position = np.where(self.atom[cell], position, cell + (target - before) / (running[cell] - before))
        return np.unique(np.concatenate([[0.0], position, [float(len(running))]]))


def equal_mass_places(
    weight: Floats, squares: Floats, low: Floats, high: Floats, numbers: Iterable[int], rank: Rank = "floor"
) -> list[Floats]:
    """Positions that divide cells with these bounds into bins of equal mass, for each of these numbers of bins."""
    running = RunningWeight.of(weight, squares, atom=low == high)
    return [running.cuts(n, rank) for n in numbers]


def positions_of(edges: Floats, low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """Edges as positions among the cells with these bounds: 3.25 is a quarter of the way into the fourth cell."""
    require_inside(np.array([low[0], high[-1]]), edges)
    inner, size = edges[1:-1], len(high)
    whole = np.searchsorted(high, inner, side="right")
    cell = np.minimum(whole, size - 1)
    inside = (whole < size) & (inner > low[cell])
    width = np.where(inside, high[cell] - low[cell], 1.0)
    part = np.where(inside, (inner - low[cell]) / width, 0.0)
    return np.concatenate([[0.0], whole + part, [float(size)]])


def scores_at(positions: Floats, low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """The highest score to the left of each position."""
    cell = np.ceil(positions).astype(np.intp) - 1
    part = positions - cell
    return np.where(part == 1.0, high[cell], low[cell] + part * (high[cell] - low[cell]))


def sums_between(sums: Floats, positions: Floats) -> Floats:
    """Sums between consecutive positions; a cut cell is divided in proportion."""
    whole = np.floor(positions).astype(np.intp)
    padded = np.concatenate([sums, np.zeros((len(sums), 1))], axis=1)
    part = padded[:, whole] * (positions - whole)
    totals = np.diff(part, axis=1)
    some = np.flatnonzero(whole[:-1] < whole[1:])
    bounds = np.stack([whole[some], whole[some + 1]], axis=1).ravel()
    totals[:, some] += np.add.reduceat(padded, bounds, axis=1)[:, ::2]
    return totals


def equal_count_edges(key: NDArray[Any], n: int, rank: Rank = "floor") -> Floats:
    """Edges of `n` bins of sorted keys: order statistics of rank rows * b / n, rounded, without duplicates."""
    ranks = mass_ranks(len(key), np.arange(1, n), n, rank)
    inner = key[ranks[ranks > 0] - 1]
    inner = np.unique(inner[inner < key[-1]])
    return np.concatenate([key[:1], inner, key[-1:]]).astype(np.float64)


def require_inside(key: NDArray[Any], edges: Floats) -> None:
    """Raise unless every key lies between the first and the last edge."""
    low, high = key.min(), key.max()
    if low < edges[0] or high > edges[-1]:
        message = f"The scores lie in [{low:g}, {high:g}], outside the edges [{edges[0]:g}, {edges[-1]:g}]."
        raise ValueError(message)


Ranks = NDArray[np.intp]

#: Rows in perfect order, which would be swept to the end, are looked for after this many bins. Speed:
#: benchmarks/binned.py; no result depends on it.
_ORDER_CHECK = 32


@dataclass(frozen=True, eq=False)
class SortedSamples:
    """Probabilities and 0/1 outcomes of several samples, one sample per row, each in the order of its scores.

    A cut is a number of leading rows. Cuts are (samples, bins + 1), or (bins + 1,) where they are the same in every
    sample; sums per bin are (samples, bins).
    """

    key: NDArray[Any]
    outcome: NDArray[np.int8]
    tied: bool

    @classmethod
    def of(cls, scores: Floats, outcomes: NDArray[np.int8]) -> SortedSamples:
        """Sort each sample; as many at a time as the cache holds."""
        key, outcome, tied = np.empty(scores.shape, scores.dtype), np.empty(scores.shape, np.int8), False
        step = max(CHUNK // max(scores.shape[1], 1), 1)
        for start in range(0, len(scores), step):
            some = slice(start, start + step)
            part, _ = sort_with_outcomes(scores[some], outcomes[some], (key[some], outcome[some]))
            tied = tied or bool((part[:, 1:] == part[:, :-1]).any())
        return cls(key, outcome, tied)

    @classmethod
    def of_rows(cls, rows: SortedRows) -> SortedSamples:
        """A single sample that is sorted already."""
        return cls(rows.rows.key[None], rows.rows.observed[None], rows.tied)

    def __len__(self) -> int:
        return len(self.key)

    @property
    def n(self) -> int:
        """Rows of each sample."""
        return self.key.shape[1]

    def equal_mass_cuts(self, n_bins: int, samples: Ranks | None = None, rank: Rank = "floor") -> Ranks:
        """Cuts at rank n b / n_bins, rounded, past any ties, of all samples or of those with these numbers."""
        ranks = mass_ranks(self.n, np.arange(n_bins + 1), n_bins, rank)
        if not self.tied:
            return ranks
        if len(self) == 1:
            key = self.key[0]
            ranks[1:] = np.searchsorted(key, key[np.maximum(ranks[1:], 1) - 1], side="right")
            return ranks
        which = np.arange(len(self)) if samples is None else samples
        rows, inner = which[:, None], np.minimum(ranks, self.n - 1)
        last = self.key[rows, np.maximum(ranks - 1, 0)]
        split = (last == self.key[rows, inner]) & (ranks > 0) & (ranks < self.n)
        cuts = np.broadcast_to(ranks, (len(which), n_bins + 1)).copy()
        if split.any():
            cuts[split] = self._at_most(which[np.nonzero(split)[0]], last[split])
        return cuts

    def cuts_at(self, edges: Floats, samples: Ranks | None = None) -> Ranks:
        """Cuts of all samples, or of some, at edges that no score lies outside of; bins are (low, high]."""
        if len(self) == 1:
            return np.concatenate([[0], np.searchsorted(self.key[0], edges[1:-1], side="right"), [self.n]])
        which, inner = np.arange(len(self)) if samples is None else samples, edges[1:-1]
        cuts = np.full((len(which), len(edges)), self.n)
        cuts[:, 0] = 0
        below = self._at_most(np.repeat(which, len(inner)), np.tile(inner, len(which)))
        cuts[:, 1:-1] = below.reshape(len(which), len(inner))
        return cuts

    def predicted(self, cuts: Ranks, samples: Ranks | None = None) -> Floats:
        """Sums of the scores between neighbouring cuts."""
        return _between(self._running_scores, cuts, samples)

    def observed(self, cuts: Ranks, samples: Ranks | None = None) -> Ranks:
        """Numbers of positives between neighbouring cuts."""
        return _between(self._running_positives, cuts, samples)

    def run_ends(self, sample: int) -> Ranks:
        """The cuts of one sample that make each distinct score a bin."""
        if not self.tied:
            return np.arange(self.n + 1)
        key = self.key[sample]
        return np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1, [self.n]])

    def largest_rising(self) -> int | None:
        """The last number of equal-mass bins before the first whose mean outcomes fall; None if not compiled."""
        fast = compiled(self.n, saves=4.0)
        if fast is None:
            return None
        rows, running = (self.key[0], self.outcome[0]), np.empty(self.n // fast.STEP + 1, np.int64)
        fast.running_positives(rows[1], running)
        found = int(fast.largest_rising(*rows, running, 2, min(_ORDER_CHECK, self.n)))
        if found or self.n <= _ORDER_CHECK:
            return found or self.n
        if fast.rises_everywhere(*rows):  # then no bins fall, and trying all would take forever
            return self.n
        return int(fast.largest_rising(*rows, running, _ORDER_CHECK, self.n)) or self.n

    def _at_most(self, samples: Ranks, values: Floats) -> Ranks:
        """How many scores of each of these samples are at most the value: all bisections at once, of one length."""
        flat, start = self.key.ravel(), samples * self.n
        at, length = start.copy(), self.n
        while length > 1:
            half = length >> 1
            at += half * (flat.take(at + (half - 1)) <= values)
            length -= half
        return at - start + (flat.take(at) <= values)

    @cached_property
    def _running_scores(self) -> Floats:
        return _running(self.key, np.float64)

    @cached_property
    def _running_positives(self) -> NDArray[Any]:
        return _running(self.outcome, np.int32 if self.n < 2**31 else np.int64)


def _running(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Running sums of each row that begin with 0, so that a bin is a difference."""
    running = np.zeros((values.shape[0], values.shape[1] + 1), dtype)
    np.cumsum(values, axis=1, out=running[:, 1:])
    return running


def _between(running: NDArray[Any], cuts: Ranks, samples: Ranks | None) -> NDArray[Any]:
    if samples is None and cuts.ndim == 1:
        at_cuts = running.take(cuts, axis=1)
    else:
        rows = np.arange(len(running)) if samples is None else samples
        at_cuts = running[rows[:, None], cuts]
    return at_cuts[:, 1:] - at_cuts[:, :-1]
