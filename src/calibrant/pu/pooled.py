"""Positive-unlabeled data pooled into a few dozen cells of the score, and the noise of a fit to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.numerics.arrays import Floats
from calibrant.numerics.hat_functions import mid_ranks, pool_starts, unit_scaled
from calibrant.numerics.sizes import EXACT_ROWS
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import require_fine
from calibrant.table.unlabeled import Gaps

#: Most cells into which neighbouring scores are pooled.
CELLS = 96


def fine_cells(data: PositiveUnlabeled | BinTable, *, needed_by: str) -> BinTable:
    """The fine table of `data`, on a grid where there are many rows."""
    if isinstance(data, BinTable):
        require_fine(data, needed_by=needed_by)
        return data
    return BinTable.of(data, Distinct() if len(data) <= EXACT_ROWS else HybridGrid())


@dataclass(frozen=True, eq=False)
class PooledScores:
    r"""Unlabeled rows pooled in the mean of rank and score, with the positives that fall into each pool.

    The error mass of a pool is :math:`\pi q - F`, where q is its share of the positives and F the mean of its scores
    over all unlabeled rows.

    Attributes
    ----------
    gaps : Gaps
        Prior, shares u and q, means of 1_c f and 1_c f², and effective numbers of rows.
    position : array in [0, 1]
    score : array
        Mean score of the unlabeled rows of each pool.
    pool : array
        The pool of each cell of the fine table.
    """

    gaps: Gaps
    position: Floats
    score: Floats
    pool: NDArray[np.intp]

    @classmethod
    def of(cls, table: BinTable, design_effect: float = 1.0) -> PooledScores:
        """From a fine table; clusters divide the numbers of rows by their design effect."""
        whole = Gaps.of(table)
        some = whole.share > 0
        share, mass = whole.share[some], whole.predicted[some]
        position = (unit_scaled(mid_ranks(share)) + unit_scaled(mass / share)) / 2
        starts = pool_starts(position, CELLS)
        pool_of_filled = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(position))))
        pool = pool_of_filled[np.maximum(np.cumsum(some) - 1, 0)]  # positives between two pools belong to the lower
        size = len(starts)
        pooled = replace(
            whole.joined(pool, size),
            n_positive=whole.n_positive / design_effect,
            n_unlabeled=whole.n_unlabeled / design_effect,
        )
        middle = np.bincount(pool_of_filled, share * position, size) / pooled.share
        return cls(pooled, middle, pooled.predicted / pooled.share, pool)

    @property
    def information(self) -> float:
        """1 / (π²/n_P + 1/n_U), or c² n for a single sample: the rows that the number of knots follows."""
        gaps = self.gaps
        if gaps.frequency is not None:
            return gaps.frequency**2 * gaps.n_unlabeled
        return 1 / (gaps.prior**2 / gaps.n_positive + 1 / gaps.n_unlabeled)

    def positives(self, rate: Floats) -> Floats:
        """The share of the positives in each pool if this is the chance of a positive."""
        mass = self.gaps.share * np.clip(rate, 0.0, 1.0)
        total = float(mass.sum())
        return mass / total if total > 0 else self.gaps.share
