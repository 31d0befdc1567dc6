"""Many samples of equal size at once: sorted together, then cut into bins as often as needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.equal_mass import Rank, mass_ranks
from calibrant.numerics.sorting import SortedRows, sort_with_outcomes
from calibrant.numerics.switch import compiled

Ranks = NDArray[np.intp]

#: Rows in perfect order, which would be swept to the end, are looked for at this number of bins.
_ORDER_CHECK = 32


@dataclass(frozen=True, eq=False)
class SortedSamples:
    """Probabilities and 0/1 outcomes of several samples, one sample per row, each in the order of its scores.

    `tied` says whether any sample has equal scores. A cut is a number of leading rows. Cuts have the shape
    (samples, bins + 1), or (bins + 1,) where they are the same in every sample; sums per bin have the shape
    (samples, bins).

    >>> samples = SortedSamples.of(np.array([[0.7, 0.2, 0.4]]), np.array([[1, 0, 1]], dtype=np.int8))
    >>> samples.key, samples.outcome
    (array([[0.2, 0.4, 0.7]]), array([[0, 1, 1]], dtype=int8))
    >>> samples.observed(samples.cuts_at(np.array([0.0, 0.5, 1.0])))
    array([[1, 1]], dtype=int32)
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
        which = self._all if samples is None else samples
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
        which = self._all if samples is None else samples
        cuts = np.zeros((len(which), len(edges)), dtype=np.intp)
        cuts[:, -1] = self.n
        inner = edges[1:-1]
        cuts[:, 1:-1] = self._at_most(np.repeat(which, len(inner)), np.tile(inner, len(which))).reshape(
            len(which), len(inner)
        )
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
        """Of a single sample, the last number of equal-mass bins before the first whose mean outcomes fall.

        By a compiled loop; None where none is at hand.
        """
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
        """How many scores of each of these samples are at most the value: all bisections at once.

        All of them halve the same length, so none can leave its sample and none needs an upper end.
        """
        flat, start = self.key.ravel(), samples * self.n
        at, length = start.copy(), self.n
        while length > 1:
            half = length >> 1
            at += half * (flat.take(at + (half - 1)) <= values)
            length -= half
        return at - start + (flat.take(at) <= values)

    @cached_property
    def _all(self) -> Ranks:
        return np.arange(len(self))

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
