"""Weights of rows: their total, and the effective sample size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats


class Mass(NamedTuple):
    """Sum of weights and of squared weights of one sample."""

    total: float
    squares: float

    @property
    def effective_n(self) -> float:
        """Kish's effective number of rows, (sum w)² / sum w²; zero if all weights are zero."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    @classmethod
    def of(cls, weight: Floats | None, n: int) -> Mass:
        """The mass of `n` rows; without weights each row weighs one."""
        return cls(float(n), float(n)) if weight is None else cls(float(weight.sum()), float(weight @ weight))


def all_alike(weight: Floats | None) -> bool:
    """Whether all rows have the same weight, which is equivalent to no weights."""
    return weight is None or bool((weight == weight[0]).all())


def effective_n(weight: Floats | None, n: int) -> float:
    """Kish's effective number of rows, (sum w)² / sum w²; `n` itself without weights."""
    return Mass.of(weight, n).effective_n


def weighted_rows(weight: Floats) -> NDArray[np.intp]:
    """The rows that have weight: more than 0, and more than rounds to 0 next to the largest."""
    return np.flatnonzero(weight / weight.max())


def importance_weights(weight: Floats | None, total: float | None = None) -> Floats | None:
    """Weights without their unit: scaled to add up to Kish's effective number of rows.

    So scaled, a weight is a number of rows, as penalties, prior counts and likelihoods need it. None where all weights
    are the same, up to rounding: each row counts as one. All weights are positive: see `weighted_rows`.

    Parameters
    ----------
    weight : array or None
        None stays None.
    total : float, optional
        What the scaled weights add up to, where entries stand for several rows each; then None means no weights only.
    """
    if weight is None:
        return None
    if total is not None and abs(float(weight.sum()) - total) <= 1e-12 * total:
        return weight
    relative: Floats = weight / weight.max()
    if total is None:
        if relative.min() > 1 - 1e-12:
            return None
        total = effective_n(relative, len(relative))
    return relative * (total / float(relative.sum()))


def variance_of_mean(mean: Floats, mean_square: Floats, effective_n: Floats) -> Floats:
    """Estimated variance of means of (effectively) this many rows each; NaN for one row or none."""
    several = np.where(effective_n > 1, effective_n, np.nan)
    return np.maximum(mean_square - mean**2, 0.0) / (several - 1)


def mean_and_error(values: Floats, weight: Floats, cluster: NDArray[Any] | None = None) -> tuple[float, float]:
    """The weighted mean and its standard error, with clusters (if there are any) as units.

    >>> mean_and_error(np.array([1.0, 3.0]), np.ones(2))[0]
    2.0
    """
    total = float(weight.sum())
    mean = float(weight @ values) / total
    parts = weight * (values - mean)
    if cluster is not None:
        unit = np.unique(cluster, return_inverse=True)[1].reshape(-1)
        parts = np.bincount(unit, parts).astype(np.float64)
    return mean, float(np.sqrt(parts @ parts)) / total
