"""A sample pooled into a few dozen cells of its scores: enough to simulate under a hypothesis, at any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.sizes import NORMAL_ROWS


@dataclass(frozen=True, eq=False)
class PooledCells:
    """Neighbouring scores pooled into cells of equal steps in *place*, the mean of rank and score, both in [0, 1].

    Steps of rank alone are too coarse where few rows spread over many scores, steps of score alone where most rows
    crowd next to 0 or 1. In place, a piecewise linear gap with a dozen knots follows every published calibration
    curve to a thousandth of its squared size, where a dozen equal-mass bins lose up to a seventh of it.

    Attributes
    ----------
    n : int
        Number of rows.
    effective_n : float
        Kish's effective number of rows in all; the number of rows without weights.
    count, share : array
        Effective number of rows, and share of the weight, per cell.
    predicted, observed : array
        Mean score and mean outcome.
    place : array in [0, 1]
    """

    n: int
    effective_n: float
    count: Floats
    share: Floats
    predicted: Floats
    observed: Floats
    place: Floats

    @classmethod
    def of(cls, columns: Floats, n: int, size: int) -> PooledCells:
        """From weight, squared weight, predicted and observed sums of many cells in the order of their scores."""
        place, total = _place(columns), columns[0].sum()
        starts = np.flatnonzero(np.diff(_step(place, size), prepend=-1))
        weight, squares, predicted, observed = np.add.reduceat(columns, starts, axis=1)
        return cls(
            n=n,
            effective_n=float(total**2 / columns[1].sum()),
            count=weight**2 / squares,
            share=weight / total,
            predicted=predicted / weight,
            observed=observed / weight,
            place=np.add.reduceat(columns[0] * place, starts) / weight,
        )

    def outcomes(self, chance: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Mean outcomes of simulated samples in which each cell has this chance, one sample per row.

        Binomial; where weights make the effective count fractional, scaled to the right variance.
        """
        whole = np.maximum(np.floor(self.count + 1e-9), 1.0)
        rows, odds = whole.astype(np.int64)[:, None], chance[:, None]
        drawn = rng.binomial(rows, odds, (len(whole), draws)).T / whole  # by cell: NumPy prepares each law once
        scale = np.sqrt(whole / self.count)
        return drawn if np.all(scale == 1) else chance + (drawn - chance) * scale

    def share_errors(self, draws: int, rng: np.random.Generator) -> Floats:
        """Sampling errors of the shares of the cells in other samples of scores, one sample per row."""
        rows = max(round(self.effective_n), 1)
        if rows >= NORMAL_ROWS:
            noise = rng.standard_normal((draws, len(self.share))) * np.sqrt(self.share / rows)
            return np.asarray(noise - noise.sum(axis=1, keepdims=True) * self.share)
        return rng.multinomial(rows, self.share / self.share.sum(), draws) / rows - self.share


def pooled_number(columns: Floats, size: int) -> NDArray[np.intp]:
    """The number of the pooled cell that each of the cells behind `columns` belongs to."""
    return np.cumsum(np.diff(_step(_place(columns), size), prepend=-1) > 0) - 1


def _place(columns: Floats) -> Floats:
    """Mean of rank and score, both between 0 and 1, from weight, squared weight and predicted sums."""
    share = columns[0] / columns[0].sum()
    return (_unit(np.cumsum(share) - share / 2) + _unit(columns[2] / columns[0])) / 2


def _step(place: Floats, size: int) -> NDArray[np.intp]:
    return np.minimum((place * size).astype(np.intp), size - 1)


def _unit(values: Floats) -> Floats:
    width = values[-1] - values[0]
    return (values - values[0]) / width if width > 0 else np.zeros_like(values)
