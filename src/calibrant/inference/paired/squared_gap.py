"""The squared error of one model in cells of scores, without the bias of noise, and what each cluster adds to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inference.binary_error.pooled_cells import Numbers, PooledCells
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats

#: Ranges of scores in which the variance of the residuals is compared with the predicted one: in single cells, of a few
#: rows, the larger of the two is too large by chance.
RANGES = 10


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows in the order of one model's scores, to be divided into cells.

    Attributes
    ----------
    sums : array
        Count, weight, squared weight, predicted and observed sums of each distinct score, as `PooledCells` takes them;
        but predicted by both models in the mean. Cells are even in rank and in spread of the predicted outcomes: with a
        common spread, models that rank the rows alike get the same cells, in which their noise cancels.
    spread : array
        Variance of the outcome of each row as both models predict it in the mean.
    """

    sample: Sample
    sums: Floats
    spread: Floats

    @classmethod
    def of(cls, sample: Sample, predicted: Floats) -> ScoredRows:
        """Rows with what both models predict for them in the mean."""
        sums = np.array(sample.table.sums[:5], dtype=np.float64)
        sums[3] = np.bincount(sample.cell, sample.row_share * predicted, sums.shape[1]) * float(sums[1].sum())
        return cls(sample, sums, predicted * (1 - predicted))

    def squared_gap(self, size: int) -> SquaredGap:
        """In about `size` cells; few distinct scores are cells of their own, as for the interval of one model."""
        pooled = PooledCells.of(self.sums, size, distinct=min(4.0 * size, float(self.sums[0].sum()) / 3))
        return SquaredGap.of(self.sample, self.spread, pooled.number[self.sample.cell])


@dataclass(frozen=True, eq=False)
class SquaredGap:
    r"""The squared L2 error in cells, from products of residuals of different clusters (rows, without a group).

    With shares W_j of the weight, sums R_gj of weighted residuals of cluster g and weights W_gj,

    .. math:: Q = \sum_j W_j \frac{(\sum_g R_{gj})^2 - \sum_g R_{gj}^2}{W_j^2 - \sum_g W_{gj}^2}

    has the expectation :math:`\sum_j W_j \bar g_j^2`, \bar g_j being the mean gap of the cell, for every n.

    Attributes
    ----------
    square : float
        Q.
    factor : array
        What products of residuals of a cell are multiplied by; 0 if it holds a single cluster.
    noise : sparse array of (clusters and rows, cells)
        Sums of weighted residuals about the mean gap. Where predictions have more variance than the residuals show, as
        they do without any event, the rest follows, row by row.
    contributions : array
        What each of these adds to Q, to first order, given the residuals of all others. The mean gap of a cell would
        not do: it contains the residual of the row itself, which an event among few dominates.
    """

    square: float
    factor: Floats
    noise: Any
    contributions: Floats

    @classmethod
    def of(cls, sample: Sample, spread: Floats, cell: Numbers) -> SquaredGap:
        """From the cell of each row."""
        weight, residual = sample.row_share, sample.residual
        shares, sums = (_by_cluster(sample, cell, values) for values in (weight, weight * residual))
        share, total = _column_sums(shares), _column_sums(sums)
        pairs = share**2 - _column_sums(shares * shares)
        several = pairs > 1e-9 * share**2
        factor = np.where(several, share / np.where(several, pairs, 1.0), 0.0)
        gap = total / share
        apart = residual - gap[cell]
        scale = np.where(several, share * factor, 1.0)
        seen, predicted = (_cell_sums(cell, weight * values) for values in (apart**2 * scale[cell], spread))
        unseen = weight * np.sqrt(spread * _unseen(share, seen, predicted)[cell])
        noise = _stacked(_by_cluster(sample, cell, weight * apart * np.sqrt(scale)[cell]), unseen, cell)
        own = _stacked(sums, weight * residual, cell)
        contributions = 2 * (noise @ (factor * total) - (noise * own) @ factor)
        contributions[: sample.clusters] += shares @ (gap**2 - float(share @ gap**2))
        return cls(
            float(factor @ (total**2 - _column_sums(sums * sums))),
            factor,
            noise,
            contributions * np.sqrt(sample.clusters / max(sample.clusters - 1, 1)),
        )

    def shared_noise(self, other: SquaredGap) -> float:
        """The covariance of both squares if gaps are zero; noise of the gaps adds twice it to that of contributions."""
        products = (self.noise.T @ other.noise).tocoo()
        squares, (i, j) = products.data**2, products.coords
        own = ((one.noise * one.noise) @ one.factor for one in (self, other))
        return 2 * (float(np.sum(self.factor[i] * other.factor[j] * squares)) - float(np.prod([*own], axis=0).sum()))


def _unseen(share: Floats, seen: Floats, predicted: Floats) -> Floats:
    """The part of the predicted variance that residuals do not show, in ranges of scores; 0 where they show it all."""
    position = (np.cumsum(share) - share / 2) / share.sum()
    part = np.minimum((position * RANGES).astype(np.intp), RANGES - 1)
    residual, outcome = (np.bincount(part, values, RANGES) for values in (seen, predicted))
    return np.asarray(np.maximum(0.0, 1 - residual / np.maximum(outcome, 1e-300))[part])


def _stacked(sums: Any, values: Floats, cell: Numbers) -> Any:
    """Sums over clusters and cells, and below them a value of each row in its cell."""
    from scipy.sparse import csr_array, vstack

    rows = csr_array((values, cell, np.arange(len(cell) + 1)), shape=(len(cell), sums.shape[1]))
    return vstack([sums, rows], format="csr")


def _by_cluster(sample: Sample, cell: Numbers, values: Floats) -> Any:
    """Sums of a value per row over clusters and cells."""
    from scipy.sparse import csr_array

    shape = (sample.clusters, int(cell.max()) + 1)
    if sample.clusters == len(cell):  # one row each, in their order
        return csr_array((values, cell, np.arange(len(cell) + 1)), shape=shape)
    return csr_array((values, (sample.cluster, cell)), shape=shape)


def _cell_sums(cell: Numbers, values: Floats) -> Floats:
    return np.bincount(cell, values).astype(np.float64)


def _column_sums(matrix: Any) -> Floats:
    return np.asarray(matrix.sum(axis=0), dtype=np.float64)
