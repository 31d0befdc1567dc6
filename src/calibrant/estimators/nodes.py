"""Scores as masses on equally spaced nodes of [0, 1], and smoothing that reflects at both ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bintable import BinTable
from calibrant.estimators.common import Data, require_fine
from calibrant.kernels import Floats, Pairs, linear_binning
from calibrant.predictions import binary

#: Cells between nodes. A power of two, so that the place of a score among the nodes is exact.
SIZE = 2**16


@dataclass(frozen=True, eq=False)
class Nodes:
    """Shares of the total weight at the nodes: of all rows, and of the positive ones.

    `n` counts rows; `worth` is how many rows of equal weight the data are worth. Weights that are whole numbers
    count as repeated rows, others by Kish's (sum w)^2 / sum w^2.
    """

    population: Floats
    positives: Floats
    n: int
    worth: float

    @property
    def at(self) -> Floats:
        """Where the nodes are."""
        return np.linspace(0.0, 1.0, len(self.population))

    @property
    def residual(self) -> Floats:
        """Share-weighted outcome less prediction at each node; its total and, to 1/SIZE^2, its mean are kept."""
        return self.positives - self.at * self.population


def on_nodes(data: Data, y_prob: ArrayLike | None, *, needed_by: str) -> Nodes:
    """The nodes of predictions or of a fine table: one pass over the rows, no sort."""
    if isinstance(data, BinTable):
        require_fine(data, needed_by=needed_by)
        pairs, prior, n, squares = _cell_pairs(data), data.prior, data.n, float(data.weight_squares.sum())
    else:
        task = binary(data, y_prob)
        pairs, prior, n, squares = task.pairs(), task.prior, len(task), None
        if prior is None and pairs.predicted is not pairs.key:
            message = f"{needed_by} needs probabilities, got {type(task).__name__} predictions."
            raise ValueError(message)
    population, positives = linear_binning(pairs, SIZE)
    total = float(population.sum())
    scale = 1.0 if prior is None else prior * total / float(positives.sum())
    return Nodes(population / total, positives * (scale / total), n, _worth(pairs, total, squares))


def _worth(pairs: Pairs, total: float, squares: float | None) -> float:
    mass = pairs.weight if pairs.mass is None else pairs.mass
    if mass is None or bool(np.all(mass == np.floor(mass))):
        return total
    return total**2 / (float(mass @ mass) if squares is None else squares)


def _cell_pairs(cells: BinTable) -> Pairs:
    """A fine table as rows: the negatives and the positives of each cell, each at their own mean score."""
    if cells.low.min() < 0 or cells.high.max() > 1:
        message = "The cells must lie in [0, 1]: smoothing with reflection is for probabilities."
        raise ValueError(message)
    if cells.prior is None:
        mass = np.concatenate([cells.weight - cells.observed, cells.observed])
        moment = np.concatenate([cells.predicted - cells.product, cells.product])
        observed = np.repeat([0.0, 1.0], len(cells))
        weight, counted = mass, None
    else:  # the positives of a positive-unlabeled table are no part of its weight, nor of its sums of predictions
        weight = np.concatenate([cells.weight, cells.observed])
        moment = np.concatenate([cells.predicted, cells.observed * (cells.low + cells.high) / 2])
        observed = np.repeat([0.0, 1.0], len(cells))
        counted = np.concatenate([cells.weight, np.zeros(len(cells))])
    some = weight > 0
    low, high = np.tile(cells.low, 2)[some], np.tile(cells.high, 2)[some]
    key = np.clip(moment[some] / weight[some], low, high)
    return Pairs(key, key, observed[some], weight[some], None if counted is None else counted[some])


def cosines(masses: Floats) -> Floats:
    r"""Coefficients of masses on nodes in the cosines of [0, 1] (a DCT-I).

    The masses are continued evenly to a period of 2; the ends are their own mirror images and so count twice, which
    gives an atom at 0 or 1 the same mass as one anywhere else. Multiplying by the transform of a kernel smooths
    with every reflection at both ends taken into account.
    """
    doubled = masses.copy()
    doubled[[0, -1]] *= 2
    return np.fft.rfft(np.concatenate([doubled, doubled[-2:0:-1]])).real


def at_nodes(coefficients: Floats) -> Floats:
    """Back from cosines: density times node spacing, to be summed with weights 1/2 at the ends and 1 between."""
    size = len(coefficients) - 1
    return np.fft.irfft(coefficients, 2 * size)[: size + 1]
