r"""Sums of rows by block of periods, and the evidence that a model has been off since the start of any of them.

The evidence against calibration is a weighted sum over the periods j since which the model may have been off,

.. math:: M = \sum_j w_j E_j, \qquad \sum_j w_j \le 1,

where :math:`E_j` is the evidence of the rows dated in period j or later. Each row multiplies each :math:`E_j` by a
factor of mean at most 1 whatever its date, so that M is dominated by a nonnegative martingale in the order in which
rows arrive: rows may be late, in any order, and in deliveries of any size.

Period j is a start as long as :math:`16 \cdot 2^v` periods have not passed, with :math:`2^v` the largest power of 2
that divides j: recent starts are kept one by one, early ones more and more sparsely, about :math:`8 \log_2 T` in all.
Rows of periods that are no longer starts are added to the block of the latest start before them. Which start that is
depends on the period and on the last period alone, so that the same rows give the same blocks in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.monitor.bets import Bets, Gains, log_evidence, log_sum
from calibrant.numerics.arrays import Floats, row_blocks

#: A start at an odd period is kept for this many periods, one at a multiple of 2^v for 2^v times as many; of groups a
#: quarter of it. Test: tests/monitor/test_blocks.py::test_recent_starts_are_kept_one_by_one_and_early_ones_sparsely.
LIFE = 16
#: The weight of the first period: that the model was off from the beginning. Derived: half for that, half for later.
FIRST = 0.5
#: Shift of the period in the weights of later ones. Derived: the sum of 1 / ((j + 10) log(j + 10)^2) over j >= 1 is at
#: most its integral from 0, 1 / log(10).
_OFFSET = 10


def start_weight(period: int, *, arl: bool = False) -> float:
    r"""The weight of a start, fixed in advance; the sum over all periods is at most 1.

    .. math:: w_0 = \tfrac12, \qquad w_j = \tfrac12 u_j \sum_{v: 2^v | j} \frac{2^v}{(v+1)(v+2)}, \qquad
              u_j = \frac{\log 10}{(j + 10) \log^2(j + 10)}

    Since u falls, its sum over multiples of :math:`2^v`, times :math:`2^v`, is at most that over all periods. For a
    mean time between false alarms (`arl`) u is 1 and w_0 too: the sum up to period t is at most t + 1.

    >>> sum(start_weight(j) for j in range(100_000)) <= 1
    True
    """
    if period == 0:
        return 1.0 if arl else FIRST
    powers = range((period & -period).bit_length())
    level = sum(2.0**v / ((v + 1) * (v + 2)) for v in powers)
    if arl:
        return level
    return (1 - FIRST) * math.log(_OFFSET) / ((period + _OFFSET) * math.log(period + _OFFSET) ** 2) * level


class Evidence(NamedTuple):
    """Starts, the logarithm of each one's own evidence and of its weighted one, and the logarithm of the whole."""

    starts: list[int]
    own: Floats
    weighted: Floats
    total: float


class Since(NamedTuple):
    """Sums of the rows since a period: by cell (weights, predictions, outcomes), and of squared residuals."""

    sums: Floats
    squares: float


class Blocks:
    """The rows of one series, all rows or those of a group, as sums per block of periods.

    Attributes
    ----------
    bets : Bets
    life : int
        See `LIFE`.
    sums : dict
        By first period of the block: weights, predictions and outcomes of each cell, shape (cells, 3).
    squares : dict
        By first period of the block: the sum of squared residuals.
    """

    def __init__(self, bets: Bets, life: int = LIFE) -> None:
        self.bets, self.life = bets, life
        self.now = 0
        self.pinned: tuple[int, ...] = ()
        self.sums: dict[int, Floats] = {}
        self.squares: dict[int, float] = {}
        self._gains: dict[int, Gains] = {}
        self._evidence: dict[bool, Evidence] = {}  # of what has not changed since it was asked for

    def advance(self, now: int, pinned: Iterable[int] = ()) -> None:
        """Move on to a period, and join the blocks whose starts are not kept any longer; those `pinned` are."""
        self.now, self.pinned = now, tuple(sorted(pinned))
        for start in sorted(self.sums, reverse=True):
            if self._start_of(start) != start:
                self._gains.pop(start, None)
                self.add(start, self.sums.pop(start), self.squares.pop(start))

    def add(self, period: int, sums: Floats, squares: float) -> None:
        """Add the sums of rows of one period."""
        start = self._start_of(period)
        self.sums[start] = self.sums.get(start, 0.0) + sums
        self.squares[start] = self.squares.get(start, 0.0) + squares
        self._gains.pop(start, None)
        self._evidence = {}

    def evidence(self, *, arl: bool = False) -> Evidence:
        """The evidence since each start, and in all; with the weights of a mean time between false alarms for `arl`."""
        if arl not in self._evidence:
            self._evidence[arl] = self._found(arl=arl)
        return self._evidence[arl]

    def _found(self, *, arl: bool) -> Evidence:
        starts = sorted(self.sums)
        for start in starts:
            if start not in self._gains:
                self._gains[start] = self.bets.gains(self.sums[start])
        since = [
            np.cumsum(np.stack([self._gains[start][kind] for start in starts])[::-1], axis=0)[::-1] for kind in (0, 1)
        ]
        own = log_evidence(Gains(*since))
        weighted = own + np.log([start_weight(start, arl=arl) for start in starts])
        return Evidence(starts, own, weighted, float(log_sum(weighted, axis=0)))

    def since(self, start: int) -> Since:
        """The sums of all blocks from this start on; of the last one if there is none."""
        later = [one for one in self.sums if one >= start] or [max(self.sums)]
        return Since(np.sum([self.sums[one] for one in later], axis=0), sum(self.squares[one] for one in later))

    def faded(self, half_life: float) -> Floats:
        """The sums with older blocks counted less: half for each `half_life` periods between their middle and now."""
        starts = sorted(self.sums)
        ends = [*starts[1:], self.now + 1]
        ages = [self.now - (start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
        return np.sum(
            [self.sums[start] * 0.5 ** (age / half_life) for start, age in zip(starts, ages, strict=True)], axis=0
        )

    def _start_of(self, period: int) -> int:
        """The latest start that is kept and not after a period."""
        last = max((start for start in self.pinned if start <= period), default=-1)
        while period > last and period > 0 and self.now - period >= self.life * (period & -period):
            period &= period - 1  # without its lowest bit: the next earlier start, which lives longer
        return period


def tree_sums(low: Floats, high: Floats, weight: Floats, period: NDArray[np.intp], periods: int, leaves: int) -> Floats:
    """Probability integral transforms as sums of the nodes of a binary tree, root first: periods by nodes by 3.

    Under a calibrated forecast each half of a node has probability 1/2. An interval (of a rank, a count, or between
    quantiles) is spread over it evenly: the logarithm of its wealth is then the mean over a transform drawn at random
    in the interval, whose exponential has mean at most 1 (Jensen), and no random number is needed.

    >>> tree_sums(np.array([0.3]), np.array([0.3]), np.ones(1), np.zeros(1, int), 1, 4)[0].tolist()
    [[1.0, 0.5, 0.0], [1.0, 0.5, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    point = high <= low
    leaf = np.minimum((low[point] * leaves).astype(np.intp), leaves - 1)
    in_leaf = np.zeros((periods, leaves))
    np.add.at(in_leaf, (period[point], leaf), weight[point])
    edges = np.arange(leaves + 1) / leaves
    intervals = np.flatnonzero(~point)
    for block in row_blocks(len(intervals), leaves):
        some = intervals[block]
        below = np.clip((edges - low[some, None]) / (high - low)[some, None], 0.0, 1.0)
        np.add.at(in_leaf, period[some], np.diff(below, axis=1) * weight[some, None])
    found = np.zeros((periods, leaves, 3))
    for depth in range(leaves.bit_length() - 1):
        halves = in_leaf.reshape(periods, 2 ** (depth + 1), -1).sum(axis=2)
        whole = halves[:, ::2] + halves[:, 1::2]
        found[:, 2**depth - 1 : 2 ** (depth + 1) - 1] = np.stack([whole, whole / 2, halves[:, 1::2]], axis=2)
    return found
