"""The fitted gap between score and outcome, and its noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.inference.pooled_cells import PooledCells
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.numerics.draws import normal_draws
from calibrant.numerics.sizes import NORMAL_ROWS, UNIFORM_ROWS

#: Number of knots of the shape along which errors are tested, as a fraction of the number in the statistic.
SHAPE = 0.6


@dataclass(frozen=True, eq=False)
class GapFit:
    """Least squares on hat functions of the position: gap = (residual means x weights) @ half @ half.T."""

    cells: PooledCells
    half: Floats
    gap: Floats
    shape: Floats
    noise: float

    @classmethod
    def of(cls, cells: PooledCells) -> GapFit:
        """The fit with about 2.5 + 1.1 log n knots, and its smoother shape."""
        knots = 2.5 + 1.1 * np.log(cells.effective_n)
        half = hats(cells, max(2, round(knots)))
        residual = cells.share * (cells.predicted - cells.observed)
        gap = half @ (half.T @ residual)
        rough = hats(cells, max(2, round(SHAPE * knots)))
        shape = rough @ (rough.T @ residual)
        probability = np.clip(cells.predicted - shape, 0.0, 1.0)
        spread = np.maximum(probability * (1 - probability), cells.predicted * (1 - cells.predicted))
        leverage = cells.share * (half**2).sum(axis=1)
        noise = float(leverage @ (cells.share * spread / cells.count))
        power, kept = float(cells.share @ gap**2), float(cells.share @ shape**2)
        if kept < 0.7 * (power - noise):
            shape = gap
        return cls(cells, half, gap, shape, float(np.sqrt(noise)))

    @property
    def straight(self) -> Floats:
        """The fitted gap that is linear in the position.

        Noise inflates the norm of a straight gap less than that of the fitted one, which oscillates by chance.
        """
        cells, plain = self.cells, hats(self.cells, 2)
        return np.asarray(plain @ (plain.T @ (cells.share * (cells.predicted - cells.observed))))

    def gaps(self, probability: Floats, noise: Floats) -> Floats:
        """Fitted gaps of samples with this probability per cell, given their noise in the coordinates of the fit."""
        mean = (self.cells.share * (self.cells.predicted - probability)) @ self.half
        return (mean + noise) @ self.half.T


@dataclass(frozen=True, eq=False)
class CommonDraws:
    """The noise of simulated samples of scores and outcomes, drawn once and common to all hypotheses.

    Attributes
    ----------
    share_errors : array of (draws, cells)
        Sampling errors of the shares of the cells.
    uniform : array of (draws, rows), optional
        For few rows: an event is simulated where this is below its probability.
    per_row : array of (rows, coordinates), optional
        Contribution of an event to each coordinate of the fit.
    """

    fit: GapFit
    rng: np.random.Generator
    share_errors: Floats
    uniform: Floats | None = None
    per_row: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, fit: GapFit, draws: int, rng: np.random.Generator) -> CommonDraws:
        """The noise of this many simulated samples."""
        cells = fit.cells
        errors, rows = cells.share_errors(draws, rng), cells.count.round().astype(np.intp)
        if cells.effective_n > UNIFORM_ROWS or np.abs(rows - cells.count).max() > 1e-9:
            return cls(fit, rng, errors)
        per_row = np.repeat(fit.half * (cells.share / cells.count)[:, None], rows, axis=0)
        return cls(fit, rng, errors, rng.random((draws, len(per_row))), per_row.astype(np.float32))

    def noise(self, probability: Floats) -> Floats:
        """Probability minus outcome in the coordinates of the fit, one simulated sample per row."""
        fit, cells, draws = self.fit, self.fit.cells, len(self.share_errors)
        if self.uniform is not None and self.per_row is not None:
            events = self.uniform < np.repeat(probability, cells.count.round().astype(np.intp))
            return np.asarray((cells.share * probability) @ fit.half - events.astype(np.float32) @ self.per_row)
        if cells.effective_n < NORMAL_ROWS:
            return np.asarray(((probability - cells.outcomes(probability, draws, self.rng)) * cells.share) @ fit.half)
        weighted = fit.half * cells.share[:, None]
        covariance = weighted.T @ (weighted * (probability * (1 - probability) / cells.count)[:, None])
        return normal_draws(covariance, draws, self.rng)


def hats(cells: PooledCells, knots: int) -> Floats:
    """Orthonormal combinations of hat functions of the position: fitted values are half @ half.T @ (share x values)."""
    basis = np.maximum(0.0, 1 - np.abs(cells.position[:, None] * (knots - 1) - np.arange(knots)))
    root = np.sqrt(cells.share)
    left, sizes, _ = np.linalg.svd(root[:, None] * basis, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-6 * sizes[0]] / root[:, None])


def influence(fit: GapFit, sample: Sample, *, clustered: bool = True) -> Floats:
    """Influence of each cluster (or row) on the coordinates of the fit: its weighted residuals about the fitted gap."""
    index = sample.pooled_cell
    noise = sample.row_share * (sample.residual - fit.gap[index])
    by_row = noise[:, None] * fit.half[index]
    return sample.by_cluster(by_row) if clustered else by_row


def thinned(sample: Sample) -> PooledCells:
    """The pooled cells with counts divided by the design effect (Kish) of the clusters.

    Outcomes and scores are correlated differently within a cluster, so each has its own design effect.
    """
    cells, labels = sample.pooled(), sample.cluster
    if labels is None or sample.clusters == len(labels):
        return cells
    fit, share = GapFit.of(cells), sample.row_share
    independent = float((influence(fit, sample, clustered=False) ** 2).sum())
    of_outcomes = float((influence(fit, sample) ** 2).sum()) / max(independent, 1e-300)
    pair = np.unique(labels * len(cells.share) + sample.pooled_cell, return_inverse=True)[1].reshape(-1)
    of_scores = float((np.bincount(pair, share) ** 2).sum() / (share**2).sum())
    effective_n, count = cells.effective_n / max(of_scores, 1.0), cells.count / max(of_outcomes, 1.0)
    return replace(cells, effective_n=effective_n, count=count)
