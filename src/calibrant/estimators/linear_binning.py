"""Linear binning of predictions and tables: masses at equally spaced nodes of [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.predictions import binary
from calibrant.numerics.arrays import Floats
from calibrant.numerics.linear_binning import linear_binning
from calibrant.numerics.rows import Role, Rows
from calibrant.numerics.weights import effective_n
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data, require_fine
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled

#: Number of intervals between nodes. A power of two, so that the position of a score among the nodes is exact.
SIZE = 2**16


@dataclass(frozen=True, eq=False)
class LinearBinning:
    """Shares of the total weight at the nodes, of all rows and of the positive rows.

    `n` counts rows; `effective_n` is Kish's effective number, (sum w)² / sum w².
    """

    population: Floats
    positives: Floats
    n: int
    effective_n: float

    @property
    def position(self) -> Floats:
        """Position of each node."""
        return np.linspace(0.0, 1.0, len(self.population))

    @property
    def residual(self) -> Floats:
        """Share-weighted outcome minus prediction at each node; keeps its total exactly, its mean to 1/SIZE^2."""
        return self.positives - self.position * self.population


def linearly_binned(data: Data, y_prob: ArrayLike | None, *, needed_by: str) -> LinearBinning:
    """Predictions or a fine table, linearly binned: one pass over the rows, no sort."""
    if isinstance(data, BinTable):
        require_fine(data, needed_by=needed_by)
        task = data.task
        parts, n, size = _cell_parts(data), data.n, data.population.effective_n
    else:
        predictions = binary(data, y_prob)
        task = task_of(predictions)
        parts, n = predictions.parts(), len(predictions)
        size = effective_n(parts[0].weight, len(parts[0].key))
        if parts[0].predicted is not parts[0].key:
            message = f"{needed_by} needs probabilities, got {type(predictions).__name__} predictions."
            raise ValueError(message)
    population, positives = linear_binning(parts, SIZE)
    total = float(population.sum())
    scale = task.observed_scale(float(positives.sum()), total)
    return LinearBinning(population / total, positives * (scale / total), n, size)


def _cell_parts(cells: BinTable) -> tuple[Rows, ...]:
    """A fine table as rows: the negatives and the positives of each cell, each at their own mean score.

    A positive-unlabeled table has two parts, the unlabeled rows and the labelled positives.
    """
    if cells.low.min() < 0 or cells.high.max() > 1:
        message = "The cells must lie in [0, 1]: smoothing with reflection is for probabilities."
        raise ValueError(message)
    if isinstance(cells.task, Unlabeled):
        population = _cell_rows(cells, cells.weight, cells.predicted, np.zeros(len(cells)), "population")
        return population, _cell_rows(cells, cells.observed, cells.product, np.ones(len(cells)), "positives")
    mass = np.concatenate([cells.weight - cells.observed, cells.observed])
    moment = np.concatenate([cells.predicted - cells.product, cells.product])
    return (_cell_rows(cells, mass, moment, np.repeat([0.0, 1.0], len(cells)), "both"),)


def _cell_rows(cells: BinTable, weight: Floats, moment: Floats, observed: Floats, role: Role) -> Rows:
    some, copies = weight > 0, len(weight) // len(cells)
    low, high = np.tile(cells.low, copies)[some], np.tile(cells.high, copies)[some]
    key = np.clip(moment[some] / weight[some], low, high)
    return Rows(key, key, observed[some], weight[some], role)
