"""Scores in at most a few dozen cells: all that resampling under a hypothesis needs, whatever the number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.common import require_fine
from calibrant.numerics.arrays import Floats
from calibrant.numerics.radix_buckets import relative_sums
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable
from calibrant.table.unlabeled import Unlabeled

#: Up to this many rows the table of distinct scores is cheaper than the grid, and exact.
EXACT_ROWS = 1 << 15

#: From this effective number of rows on, sums of a cell are drawn as normal, not row by row.
NORMAL_ROWS = 1 << 14


def fine_table(data: Predictions | BinTable, *, needed_by: str) -> BinTable:
    """The cells of binary data: one per distinct score, or those of the grid where rows are many."""
    if isinstance(data, BinTable):
        require_fine(data, needed_by=needed_by)
        table = data
    elif isinstance(data, Binary):
        table = BinTable.of(data, Distinct() if len(data) <= EXACT_ROWS else HybridGrid())
    else:
        message = f"{needed_by} needs binary predictions (Binary(y_true, y_prob), data.top_label()), not {data!r}."
        raise InvalidPredictions(message)
    if isinstance(table.task, Unlabeled):
        message = f"{needed_by} has no version for positive-unlabeled data."
        raise InvalidPredictions(message)
    return table.filled()


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Neighbouring scores pooled into cells of equal steps in *place*, the mean of rank and score, both in [0, 1].

    Steps of rank alone are too coarse where few rows spread over many scores, steps of score alone where most rows
    crowd next to 0 or 1. In place, a piecewise linear gap with a dozen knots follows every published calibration
    curve to a thousandth of its squared size, where a dozen equal-mass bins lose up to a seventh of it.

    Attributes
    ----------
    n : float
        Kish's effective number of rows in all; the number of rows without weights.
    count, share : array
        Effective number of rows, and share of the weight, per cell.
    predicted, observed : array
        Mean score and mean outcome.
    place : array in [0, 1]
    """

    n: float
    rows: int
    count: Floats
    share: Floats
    predicted: Floats
    observed: Floats
    place: Floats

    @classmethod
    def of(cls, data: Predictions | BinTable, *, size: int = 96, needed_by: str) -> ScoreCells:
        """The cells of predictions or of a fine table."""
        if isinstance(data, Binary) and data.weight is None and len(data) > EXACT_ROWS:
            cells = relative_sums(data.pairs())
            return cls._pooled(cells[1:5, cells[0] > 0], len(data), size)
        return cls.of_table(fine_table(data, needed_by=needed_by), size=size)[0]

    @classmethod
    def of_table(cls, table: BinTable, *, size: int = 96) -> tuple[ScoreCells, NDArray[np.intp]]:
        """The cells of a fine table, and the number of the cell that each cell of the table went into."""
        columns = np.stack([table.weight, table.weight_squares, table.predicted, table.observed])
        steps = np.diff(_step(_place(columns), size), prepend=-1) > 0
        return cls._pooled(columns, table.n, size), np.cumsum(steps) - 1

    @classmethod
    def _pooled(cls, columns: Floats, rows: int, size: int) -> ScoreCells:
        """From weight, squared weight, predicted and observed of many cells in the order of their scores."""
        place, total = _place(columns), columns[0].sum()
        starts = np.flatnonzero(np.diff(_step(place, size), prepend=-1))
        weight, squares, predicted, observed = np.add.reduceat(columns, starts, axis=1)
        return cls(
            n=float(total**2 / columns[1].sum()),
            rows=rows,
            count=weight**2 / squares,
            share=weight / total,
            predicted=predicted / weight,
            observed=observed / weight,
            place=np.add.reduceat(columns[0] * place, starts) / weight,
        )

    def outcomes(self, chance: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Mean outcomes of `size` samples in which each cell has this chance, one sample to a line.

        Binomial; where weights make the effective count fractional, scaled to the right variance.
        """
        whole = np.maximum(np.floor(self.count + 1e-9), 1.0)
        rows, odds = whole.astype(np.int64)[:, None], chance[:, None]
        drawn = rng.binomial(rows, odds, (len(whole), size)).T / whole  # by cell: NumPy prepares each law once
        scale = np.sqrt(whole / self.count)
        return drawn if np.all(scale == 1) else chance + (drawn - chance) * scale

    def shares(self, size: int, rng: np.random.Generator) -> Floats:
        """How far the shares of the cells would be off in other samples of scores, one sample to a line."""
        rows = max(round(self.n), 1)
        if rows >= NORMAL_ROWS:
            noise = rng.standard_normal((size, len(self.share))) * np.sqrt(self.share / rows)
            return np.asarray(noise - noise.sum(axis=1, keepdims=True) * self.share)
        return rng.multinomial(rows, self.share / self.share.sum(), size) / rows - self.share


def _place(columns: Floats) -> Floats:
    """Mean of rank and score, both between 0 and 1, from weight, squared weight and predicted sums."""
    share = columns[0] / columns[0].sum()
    return (_unit(np.cumsum(share) - share / 2) + _unit(columns[2] / columns[0])) / 2


def _step(place: Floats, size: int) -> NDArray[np.intp]:
    return np.minimum((place * size).astype(np.intp), size - 1)


def _unit(values: Floats) -> Floats:
    width = values[-1] - values[0]
    return (values - values[0]) / width if width > 0 else np.zeros_like(values)
