"""Simulated noise of the residual sums of a sample, cell by cell: what norms of the gap are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.table.binning import EqualMass
from calibrant.table.bintable import BinTable

#: Cells in which fewer events, or fewer non-events, are expected get binomial draws, the others normal ones.
FEW_EVENTS = 20

#: Fewer clusters tell nothing about the spread between them.
LEAST_CLUSTERS = 8

#: Wrong rows that a sample may hide: n rows without one exclude, at 95 %, only an expected number above three.
UNSEEN = 3.0


@dataclass(frozen=True, eq=False)
class ResidualNoise:
    """Draws of the noise of the residual sums, by one or two laws that a norm of the noise must respect both.

    Attributes
    ----------
    position : array of cells
        Mean score.
    laws : tuple of arrays of (draws, cells)
        Each draw is the weighted sum of prediction minus outcome, less its expectation, as a share of the total weight.
    largest : float
        The mean of the largest possible residuals, max(p, 1 - p).
    """

    position: Floats
    laws: tuple[Floats, ...]
    largest: float

    @classmethod
    def of(cls, data: Predictions | BinTable, *, draws: int, seed: int, size: int, needed_by: str) -> ResidualNoise:
        """The noise of binary rows or of their fine table, on at most `size` cells of neighbouring scores.

        Independent rows have two laws. One draws outcomes from the predictions, and is exact if they are calibrated.
        The other has the observed squares of the residuals for variances, which contain those of the outcomes and of
        the scores whatever the gap, and three rows more that were not seen to be wrong. With clusters, residuals
        change their sign cluster by cluster.
        """
        rng = np.random.default_rng(seed)
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(Sample.of_rows(data), draws, rng, size, needed_by)
        table = pooled(Sample.of(data, needed_by=needed_by).table, size)
        null = _outcomes(table.predicted_mean, table.effective_count, draws, rng) * table.share
        n = _effective_n(table)
        spread = np.sqrt(_mean_squared_residual(table) * (n / max(n - 1, 1.0)) + UNSEEN / n)
        observed = rng.standard_normal((draws, len(table))) * (spread * table.share / np.sqrt(table.effective_count))
        return cls(table.predicted_mean, (null, observed), _largest(table))

    @classmethod
    def _of_clusters(
        cls, sample: Sample, draws: int, rng: np.random.Generator, size: int, needed_by: str
    ) -> ResidualNoise:
        from scipy.sparse import coo_array

        table = pooled(sample.table, size)
        cluster = np.zeros(0, np.intp) if sample.cluster is None else sample.cluster
        require_clusters(sample.clusters, needed_by=needed_by)
        cell = np.minimum(np.searchsorted(table.high, sample.rows.key.astype(np.float64)), len(table) - 1)
        values = sample.row_share * sample.residual
        sums = coo_array((values, (cluster, cell)), shape=(sample.clusters, len(table))).tocsr()
        signs = rng.choice([-1.0, 1.0], (draws, sample.clusters))
        share = np.bincount(cluster, sample.row_share)
        groups = 1 / float(share @ share)
        drawn = np.asarray((sums.T @ signs.T).T) * np.sqrt(groups / max(groups - 1, 1.0))
        unseen = table.share * np.sqrt(UNSEEN / _effective_n(table) / table.effective_count)
        drawn += rng.standard_normal(drawn.shape) * unseen
        return cls(table.predicted_mean, (drawn,), _largest(table))

    def sizes(self, norm: Callable[[Floats], Floats]) -> tuple[Floats, ...]:
        """The norm of every draw, law by law."""
        return tuple(norm(law) for law in self.laws)


def largest_quantile(sizes: tuple[Floats, ...], probability: float) -> float:
    """The largest quantile among the laws."""
    return max(float(np.quantile(size, probability, method="weibull")) for size in sizes)


def pooled(table: BinTable, size: int) -> BinTable:
    """The table itself, or at most `size` cells of neighbouring scores of about equal mass."""
    return table if len(table) <= size else table.coarsen(EqualMass(size)).filled()


def require_clusters(number: int, *, needed_by: str) -> None:
    """Refuse so few clusters that the spread between them is not known."""
    if number < LEAST_CLUSTERS:
        message = (
            f"{needed_by} needs at least {LEAST_CLUSTERS} groups of rows to know the spread between them, got {number}."
        )
        raise InvalidPredictions(message)


def _outcomes(chance: Floats, count: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Chance minus mean outcome of so many rows: binomial where few events are expected, else normal.

    A fractional effective count is rounded down and its draws rescaled to the right variance.
    """
    chance = np.clip(chance, 0.0, 1.0)
    spread = np.sqrt(chance * (1 - chance) / count)
    drawn = rng.standard_normal((draws, len(count))) * spread
    few = np.flatnonzero(count * np.minimum(chance, 1 - chance) < FEW_EVENTS)
    whole = np.maximum(np.floor(count[few] + 1e-9), 1.0)
    hits: NDArray[np.int64] = rng.binomial(whole.astype(np.int64)[:, None], chance[few, None], (len(few), draws))
    drawn[:, few] = (chance[few] - hits.T / whole) * np.sqrt(whole / count[few])
    return drawn


def _mean_squared_residual(table: BinTable) -> Floats:
    """Mean of (p - y)² in each cell, from its mean score and mean outcome."""
    predicted, observed = table.predicted_mean, table.observed_mean
    return observed * (1 - predicted) ** 2 + (1 - observed) * predicted**2


def _effective_n(table: BinTable) -> float:
    return float(table.total**2 / table.weight_squares.sum())


def _largest(table: BinTable) -> float:
    return float(table.share @ np.maximum(table.predicted_mean, 1 - table.predicted_mean))
