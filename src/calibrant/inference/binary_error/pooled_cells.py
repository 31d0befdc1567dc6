"""A sample reduced to cells of neighbouring scores, at any n; frequent scores have cells of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_draws import independent_counts

Numbers = NDArray[np.intp]
Flags = NDArray[np.bool_]

#: Least and largest number of cells of a fine division.
FEWEST, MOST = 4, 1024


@dataclass(frozen=True, eq=False)
class PooledCells:
    r"""Neighbouring scores pooled into cells of equal width in *position*, which lies in [0, 1].

    The position of a score is the mean of its rank and of its rank among the standard deviations
    :math:`\sqrt{p(1-p)}` of the outcomes, both scaled to [0, 1]. Cells of equal rank are too coarse where few rows
    spread over many scores, cells of equal width of score where most rows are close to 0 or 1. A score that holds the
    share of a whole cell is a cell of its own.

    Attributes
    ----------
    n : int
        Number of rows.
    effective_n : float
        Kish's effective sample size, divided by the design effect of clusters; the number of rows if they have no
        weights.
    count, share : array
        Effective number of rows and share of the weight, per cell.
    predicted, observed : array
        Mean score and mean outcome.
    position : array in [0, 1]
    atom : array of bool
        Whether the cell is one score so frequent that every fit gives it a coefficient of its own.
    single : array of bool
        Whether the cell is one score: nothing can hide inside.
    number : array of int
        The cell to which each of the cells belongs that these were made of.
    """

    n: int
    effective_n: float
    count: Floats
    share: Floats
    predicted: Floats
    observed: Floats
    position: Floats
    atom: Flags
    single: Flags
    number: Numbers

    @classmethod
    def of(cls, sums: Floats, size: int, *, distinct: float | None = None, design_effect: float = 1.0) -> PooledCells:
        """From count, weight, squared weight, predicted and observed sums of many cells in the order of their scores.

        Up to `distinct` scores (by default, `size`), each is a cell of its own.
        """
        rows, weight, squares = sums[:3]
        total = float(weight.sum())
        effective_n = total**2 / float(squares.sum()) / design_effect
        share, repeated = weight / total, rows > 1
        atom = repeated & (share >= 1 / (2 * knots_for(effective_n)))
        position = _position(share, sums[3] / weight, ~atom)
        alone = repeated & (share >= 1 / size)
        if len(rows) <= (size if distinct is None else distinct):
            alone[:] = True
        starts = _starts(position, alone, max(2, round(size * float(share[~atom].sum()))))
        pooled = np.add.reduceat(sums[1:5], starts, axis=1)
        return cls(
            n=round(float(rows.sum())),
            effective_n=effective_n,
            count=pooled[0] ** 2 / pooled[1] / design_effect,
            share=pooled[0] / total,
            predicted=pooled[2] / pooled[0],
            observed=pooled[3] / pooled[0],
            position=np.add.reduceat(weight * position, starts) / pooled[0],
            atom=atom[starts],
            single=np.diff(starts, append=len(rows)) == 1,
            number=_numbers(starts, len(rows)),
        )

    @classmethod
    def fine(cls, sums: Floats, *, design_effect: float = 1.0) -> PooledCells:
        """About the square root of n cells, each of as many rows; scores that repeat are cells of their own."""
        effective_n = float(sums[1].sum()) ** 2 / float(sums[2].sum()) / design_effect
        size = int(np.clip(round(np.sqrt(effective_n)), FEWEST, MOST))
        distinct = min(4.0 * size, float(sums[0].sum()) / 3)
        return cls.of(sums, size, distinct=distinct, design_effect=design_effect)

    @property
    def gap(self) -> Floats:
        """Mean score less mean outcome, per cell."""
        return self.predicted - self.observed

    def merged(self, size: int) -> PooledCells:
        """At most about `size` cells, for what varies slowly; atoms stay alone."""
        if len(self.share) <= size:
            return self
        starts = _starts(self.position, self.atom, size)
        share = np.add.reduceat(self.share, starts)

        def mean(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(self.share * values, starts) / share)

        return PooledCells(
            n=self.n,
            effective_n=self.effective_n,
            count=share**2 / np.add.reduceat(self.share**2 / self.count, starts),
            share=share,
            predicted=mean(self.predicted),
            observed=mean(self.observed),
            position=mean(self.position),
            atom=self.atom[starts],
            single=(np.diff(starts, append=len(self.share)) == 1) & self.single[starts],
            number=_numbers(starts, len(self.share)),
        )

    def outcomes(self, probability: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Mean outcomes of simulated samples with this probability per cell, one sample per column.

        Binomial; if weights make the effective count fractional, rescaled to the right variance.
        """
        whole = np.maximum(np.floor(self.count + 1e-9), 1.0)
        drawn = independent_counts(whole.astype(np.int64), probability, draws, rng)
        drawn /= whole[:, None]
        scale = np.sqrt(whole / self.count)[:, None]
        if not np.all(scale == 1):
            drawn = probability[:, None] + (drawn - probability[:, None]) * scale
        return drawn


def knots_for(effective_n: float) -> float:
    """Number of knots that follow every published calibration curve: 2.5 + 1.1 log n."""
    return 2.5 + 1.1 * float(np.log(max(effective_n, 4.0)))


def _position(share: Floats, predicted: Floats, free: Flags) -> Floats:
    """Mean of rank and of rank among standard deviations, both between 0 and 1, of the scores that are no atoms."""
    position = np.zeros_like(share)
    if free.any():
        own, chance = share[free], np.clip(predicted[free], 0.0, 1.0)
        spread = own * np.sqrt(chance * (1 - chance))
        position[free] = (_unit(np.cumsum(own) - own / 2) + _unit(np.cumsum(spread) - spread / 2)) / 2
    return position


def _starts(position: Floats, alone: Flags, size: int) -> Numbers:
    """First member of each pooled cell: equal steps of position, cut before and after what stays alone."""
    step = np.minimum((position * size).astype(np.intp), size - 1)
    new = np.ones(len(position), dtype=np.bool_)
    new[1:] = alone[1:] | alone[:-1] | (step[1:] != step[:-1])
    return np.flatnonzero(new)


def _numbers(starts: Numbers, size: int) -> Numbers:
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=size))


def _unit(values: Floats) -> Floats:
    width = values[-1] - values[0]
    return (values - values[0]) / width if width > 0 else np.zeros_like(values)
