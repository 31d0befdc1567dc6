"""Simulated noise of the cells of a sample: of independent rows by their counts, of clusters by random signs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_draws import BinomialDraws

#: Where fewer events or non-events are expected in a cell, their number is drawn from its binomial distribution.
FEW_EVENTS = 20.0

#: Where fewer rows are expected in a cell, their number is drawn from the Poisson distribution.
FEW_ROWS = 30.0


class CellNoise(Protocol):
    """Noise of simulated samples, one column per sample, with random numbers common to all calls."""

    @property
    def draws(self) -> int:
        """The number of samples."""

    def outcomes(self, probability: Floats) -> Floats:
        """Probability less simulated mean outcome, per cell and sample."""

    @property
    def shares(self) -> Floats:
        """Sampling errors of the shares of the cells, per cell and sample."""


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of independent rows.

    Decided cell by cell, the number of events is binomial where few events or non-events are expected, and normal
    elsewhere. A fractional effective count is rounded down and the noise rescaled.
    """

    cells: PooledCells
    draws: int
    seed: int

    def outcomes(self, probability: Floats) -> Floats:
        """Probability less simulated mean outcome, per cell and sample."""
        count = self.cells.count
        noise = self._normal * np.sqrt(probability * (1 - probability) / count)[:, None]
        few = count * np.minimum(probability, 1 - probability) < FEW_EVENTS
        if few.any():
            whole = np.maximum(np.floor(count[few] + 1e-9), 1.0)
            scale = np.sqrt(whole / count[few])
            drawn = self._binomial.counts(whole.astype(np.int64), probability[few], few)
            drawn *= (-scale / whole)[:, None]
            drawn += (scale * probability[few])[:, None]
            noise[few] = drawn
        return noise

    @cached_property
    def shares(self) -> Floats:
        """Sampling errors of the shares: Poisson counts, or normal ones where many rows are expected."""
        rng, n = np.random.default_rng([self.seed, 2]), self.cells.effective_n
        expected = (self.cells.share * n)[:, None]
        size = (len(expected), self.draws)
        few = expected[:, 0] < FEW_ROWS
        noise = rng.standard_normal(size) * np.sqrt(expected)
        noise[few] = rng.poisson(expected[few], (int(few.sum()), self.draws)) - expected[few]
        return np.asarray((noise - noise.sum(axis=0) * self.cells.share[:, None]) / n)

    @cached_property
    def _normal(self) -> Floats:
        return np.random.default_rng([self.seed, 0]).standard_normal((len(self.cells.share), self.draws))

    @cached_property
    def _binomial(self) -> BinomialDraws:
        return BinomialDraws.of(len(self.cells.share), self.draws, np.random.default_rng([self.seed, 1]))


@dataclass(frozen=True, eq=False)
class ClusterNoise:
    """Noise of whole clusters: their sums of residuals with random signs.

    Under calibration this is exact for clusters whose sums are symmetric, whatever their sizes, and correlation between
    regions of the scores is kept. The signs are scaled by √(G / (G - 1)), G being the effective number of clusters.

    Attributes
    ----------
    weight, events : array of (clusters, cells)
        Shares of the total weight, and of the total weight of events.
    """

    cells: PooledCells
    draws: int
    seed: int
    weight: Floats
    events: Floats

    def outcomes(self, probability: Floats) -> Floats:
        """Probability less simulated mean outcome, per cell and sample."""
        return np.asarray(((self.weight * probability - self.events) / self.cells.share).T @ self.signs)

    @cached_property
    def shares(self) -> Floats:
        """Sampling errors of the shares of the cells, per cell and sample."""
        return np.asarray((self.weight - self.weight.sum(axis=1, keepdims=True) * self.cells.share).T @ self.signs)

    @cached_property
    def signs(self) -> Floats:
        """Random signs, scaled, per cluster and sample."""
        rng = np.random.default_rng([self.seed, 3])
        signs = np.where(rng.random((len(self.weight), self.draws)) < 0.5, -1.0, 1.0)
        return signs * np.sqrt(self.effective_clusters / max(self.effective_clusters - 1, 1.0))

    @cached_property
    def effective_clusters(self) -> float:
        """Kish's effective number of clusters."""
        return effective_clusters(self.weight.sum(axis=1))


def effective_clusters(weight: Floats) -> float:
    """Kish's effective number of clusters of these weights."""
    return float(weight.sum() ** 2 / (weight**2).sum())
