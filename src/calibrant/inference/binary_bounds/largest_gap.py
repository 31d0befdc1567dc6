"""A lower bound on the largest gap between score and chance that assumes nothing about the curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.binary_bounds.isotonic_bands import MOST_CELLS, blocks, clopper_pearson
from calibrant.inference.binary_bounds.residual_noise import pooled
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable

#: Blocks of fewer rows cannot show a gap at the risk that is left for each of them.
LEAST_ROWS = 8


@dataclass(frozen=True)
class LargestGapBound:
    r"""Lower confidence bound on the largest gap, :math:`\sup_s |s - P(Y = 1 \mid s)|`, valid for every n and curve.

    In any block of scores the mean gap is at most the largest one. Clopper-Pearson limits L, U bound the mean chance of
    a block (they hold for unequal chances too, Hoeffding 1956), so with p̄ the mean score of block b

    .. math:: \max_b \max\{L_b - \bar p_b,\; \bar p_b - U_b,\; 0\}

    is a lower bound, with the error probability shared by all blocks: those of 1, 2, 4, ... distinct scores,
    overlapping by half, with at least eight rows.

    There is no upper bound without an assumption: a gap may be arbitrarily large on arbitrarily few scores. If the
    curve rises, `IsotonicBand` gives one.

    References
    ----------
    Hoeffding (1956), On the distribution of the number of successes in independent trials.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.interval(cal.mce, [0, 1] * 100, [0.2, 0.9] * 100)
    >>> found.interval.side, str(found.interval)
    ('lower', '[0.1505, inf]')
    """

    def interval(self, data: Predictions | BinTable, *, norm: float = float("inf"), level: float = 0.95) -> Interval:
        """The one-sided interval above the bound."""
        level = validation.fraction("level", level)
        if norm != float("inf"):
            message = f"LargestGapBound is for the infinite norm, got norm={norm!r}; use Inversion()."
            raise ValueError(message)
        if getattr(data, "group", None) is not None:
            message = "LargestGapBound needs independent rows, but these have a group; use ece (L1 or L2)."
            raise InvalidPredictions(message)
        table = Sample.of(data, needed_by="LargestGapBound").table
        if not np.array_equal(table.weight, table.count):
            message = "LargestGapBound counts outcomes, so it does not support weighted rows; use ece (L1 or L2)."
            raise InvalidPredictions(message)
        return Interval(
            _largest_lower_limit(pooled(table, MOST_CELLS), 1 - level),
            float("inf"),
            level=level,
            method=repr(self),
            side="lower",
            assumption="independent rows, nothing else; an upper bound needs a rising curve: IsotonicBand()",
            target=Target("true error", float("inf")),
        )


def _largest_lower_limit(table: BinTable, risk: float) -> float:
    start, end = blocks(len(table))
    rows, hits, predicted = (_running(column) for column in (table.count, table.observed, table.predicted))
    count = rows[end] - rows[start]
    enough = count >= min(LEAST_ROWS, table.n)
    start, end, count = start[enough], end[enough], count[enough]
    low, high = clopper_pearson(hits[end] - hits[start], count, risk / (2 * len(count)))
    score = (predicted[end] - predicted[start]) / count
    return max(0.0, float(np.maximum(low - score, score - high).max()))


def _running(column: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(column)])
