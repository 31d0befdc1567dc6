"""A fitted gap in orthonormal coordinates, with what each row (or cluster) adds to them: for comparisons of models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Predictions
from calibrant.inference.forecasts.spread_cells import SpreadCells
from calibrant.inference.forecasts.spread_fit import SpreadFit
from calibrant.inference.forecasts.spread_inversion import SpreadError
from calibrant.numerics.arrays import Floats
from calibrant.numerics.hat_functions import orthonormal_hats
from calibrant.pu.inversion import knots_of, row_influence, shapes
from calibrant.pu.pooled import PooledScores, fine_cells
from calibrant.results.target import Target

#: Draws that decide on the resolution of the fit of spreads.
SPREAD_DRAWS = 99


@dataclass(frozen=True, eq=False)
class FittedGap:
    """The gap of one model: share @ power(half @ coordinates) is the power of its error.

    Attributes
    ----------
    half : array of (cells, coordinates)
        Functions of the cells that are orthonormal under `share`.
    share : array
    coordinates : array
        Those of the fitted gap.
    influence : array of (clusters, coordinates)
        What each cluster (row) adds to them beyond its expectation.
    sampling : array
        What each cluster adds to the mean power because scores are sampled.
    smooth, straight : array
        Smoother and linear gaps, per cell.
    power : callable
        From gaps to the terms of the power of the error, cell by cell.
    missing : float
        By how much all gaps may be too low because rare large errors are not in the sample; 0 for outcomes.
    """

    half: Floats
    share: Floats
    coordinates: Floats
    influence: Floats
    sampling: Floats
    smooth: Floats
    straight: Floats
    power: Callable[[Floats], Floats]
    missing: float = 0.0

    @classmethod
    def of(cls, data: Predictions, target: Target) -> FittedGap:
        """That of positive-unlabeled predictions, or of predicted spreads."""
        if isinstance(data, PositiveUnlabeled):
            return _of_unlabeled(data, float(target.norm))
        if isinstance(data, Forecast):
            return _of_spread(data, target)
        message = f"PairedFits compares positive-unlabeled predictions and predicted spreads, not {data!r}."
        raise TypeError(message)

    @property
    def noise(self) -> float:
        """What noise adds to the squared length of the coordinates."""
        return float((self.influence**2).sum())

    def raised(self, part: float) -> Floats:
        """The coordinates if this part of what may be missing is."""
        return self.coordinates + part * self.missing * (self.share @ self.half)

    def shapes(self) -> list[Floats]:
        """Coordinates of the smoothed and the straight gap, scaled to the size of the fitted one."""
        size = np.sqrt((self.coordinates**2).sum())
        found = [(self.share * gap) @ self.half for gap in (self.smooth, self.straight)]
        lengths = [max(float(np.sqrt((one**2).sum())), 1e-150) for one in found]
        return [one * (size / length) for one, length in zip(found, lengths, strict=True)]


def _of_spread(data: Forecast, target: Target) -> FittedGap:
    cells = SpreadCells.of(data, needed_by="PairedFits", keep_rows=True)
    fit = SpreadFit.of(cells, SPREAD_DRAWS, np.random.default_rng(0))
    share, second, cluster, cell = cells.row_share, cells.row_second, cells.cluster, cells.cell
    if share is None or second is None or cluster is None or cell is None:  # pragma: no cover - rows were kept
        raise RuntimeError(repr(cells))
    pool = fit.pool[cell]
    residual = share * (second * np.exp(-fit.gap[pool]) - 1)
    power = SpreadError.of(target, fit.variance).power
    return FittedGap(
        fit.half,
        fit.share,
        (fit.share * fit.gap) @ fit.half,
        _freed(_by_cluster(residual[:, None] * fit.half[pool], cluster)),
        _by_cluster((share * _apart(power(fit.gap), fit.share)[pool])[:, None], cluster)[:, 0],
        fit.shape,
        fit.straight,
        power,
        fit.missing,
    )


def _of_unlabeled(data: PositiveUnlabeled, norm: float) -> FittedGap:
    table = fine_cells(data, needed_by="PairedFits")
    scores = PooledScores.of(table)
    gaps = scores.gaps
    half = orthonormal_hats(scores.position, gaps.share, knots_of(scores))
    rows, pool = row_influence(data, scores, table, half)
    smooth, straight = (one @ (one.T @ gaps.gap) for one in shapes(scores))
    coordinates = half.T @ gaps.gap

    def power(gap: Floats) -> Floats:
        return np.abs(gap) ** norm

    weight = np.ones(len(data)) if data.weight is None else data.weight
    weight = np.where(np.arange(len(data)) < len(data) - len(data.unlabeled), 0.0, weight)
    sampling = weight / weight.sum() * _apart(power(half @ coordinates), gaps.share)[pool]
    cluster = np.arange(len(data)) if data.group is None else np.unique(data.group, return_inverse=True)[1].reshape(-1)
    return FittedGap(
        half,
        gaps.share,
        coordinates,
        _freed(_by_cluster(rows, cluster)),
        _by_cluster(sampling[:, None], cluster)[:, 0],
        smooth,
        straight,
        power,
    )


def _apart(power: Floats, share: Floats) -> Floats:
    return power - float(share @ power)


def _by_cluster(values: Floats, cluster: NDArray[np.intp]) -> Floats:
    size = int(cluster.max()) + 1
    return np.stack([np.bincount(cluster, column, size) for column in values.T], axis=1)


def _freed(influence: Floats) -> Floats:
    """Raised for the coordinates that were fitted."""
    clusters, fitted = influence.shape
    return influence * np.sqrt(clusters / max(clusters - fitted, 1))
