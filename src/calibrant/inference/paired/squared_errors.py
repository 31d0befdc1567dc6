"""Squared errors of two models on the same rows: their difference and sum, and the interval of either scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.inference.binary_error.cell_noise import effective_clusters
from calibrant.inference.paired.squared_gap import ScoredRows, SquaredGap
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats

#: Cells are this many times the root of n. The usual √n lose so much of a stair to cells that are cut by its steps that
#: equal models were called different in .12 of samples, 2√n half as much.
FINENESS = 2.0

#: Resolutions at most, each twice as fine as the one before; rows per cell at least, in the mean; cells at least.
RUNGS, LEAST_ROWS, LEAST_CELLS = 3, 6.0, 4

#: A finer resolution is preferred as long as it makes the variance of the difference no larger than this.
PRICE = 1.25

#: Standard deviations of the sum, given the difference, that are allowed for; and differences that are tried.
REACH, STEPS = 3.0, 33

#: From the squared errors of both models to their difference and sum.
_TURN = np.array([[1.0, -1.0], [1.0, 1.0]])


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Difference and sum of the squared L2 errors of two models, and their covariance.

    Attributes
    ----------
    value : array of 2
    covariance : array of (2, 2)
    """

    value: Floats
    covariance: Floats

    @classmethod
    def of(cls, a: SquaredGap, b: SquaredGap) -> SquaredErrors:
        r"""From products of residuals: the variance of a U-statistic, linear and degenerate part.

        The linear part is that of the contributions, less what the noise of the gaps adds to it. Neither part is
        negative.
        """
        both = np.stack([a.contributions, b.contributions])
        contributed = both @ both.T
        cross = a.shared_noise(b)
        noise = np.array([[a.shared_noise(a), cross], [cross, b.shared_noise(b)]])
        degenerate, linear = (_TURN @ part @ _TURN.T for part in (noise, contributed - 2 * noise))
        variance = np.maximum(np.diag(degenerate), 0.0) + np.maximum(np.diag(linear), 0.0)
        most = np.sqrt(variance[0] * variance[1])
        shared = float(np.clip(degenerate[0, 1] + linear[0, 1], -most, most))
        covariance = np.array([[variance[0], shared], [shared, variance[1]]])
        return cls(_TURN @ np.array([a.square, b.square]), covariance)

    def with_total_of(self, coarser: SquaredErrors) -> SquaredErrors:
        """The same difference, with the sum of a coarser resolution, where its noise is smaller."""
        variance, total = self.covariance[0, 0], coarser.covariance[1, 1]
        most = np.sqrt(variance * total)
        shared = float(np.clip(coarser.covariance[0, 1], -most, most))
        return SquaredErrors(
            np.array([self.value[0], coarser.value[1]]), np.array([[variance, shared], [shared, total]])
        )

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        return float(np.sqrt(self.covariance[0, 0]))

    def interval(self, reach: float, *, squared: bool) -> tuple[float, float]:
        """The difference of errors, or of their squares, up to so many standard errors of the difference of squares."""
        difference = self.value[0] + reach * self.error * np.linspace(-1, 1, STEPS)
        if squared:
            return float(difference[0]), float(difference[-1])
        slope = self.covariance[0, 1] / max(self.covariance[0, 0], 1e-300)
        left = np.sqrt(max(self.covariance[1, 1] - slope * self.covariance[0, 1], 0.0))
        middle = self.value[1] + slope * (difference - self.value[0])
        found = np.stack([of_errors(difference, middle + side * REACH * left) for side in (-1, 1)])
        return float(found.min()), float(found.max())


def of_errors(difference: Floats, total: Floats) -> Floats:
    r"""√A - √B from A - B and A + B.

    It is (A - B) / (√A + √B). An estimate B below zero counts as none, and the difference is kept: √(A - B).
    """
    roots = sum(np.sqrt(np.maximum(square, 0.0)) for square in (total + difference, total - difference)) / np.sqrt(2)
    return np.asarray(difference / np.maximum(np.maximum(roots, np.sqrt(np.abs(difference))), 1e-150))


@dataclass(frozen=True, eq=False)
class Resolutions:
    """Squared errors at rising resolution.

    Where both models rank the rows alike, noise of fine cells cancels, and the finest resolution costs nothing.

    Attributes
    ----------
    found : list of SquaredErrors
    freedom : float
        Degrees of freedom of the standard errors: the effective number of clusters (rows) less one.
    """

    found: list[SquaredErrors]
    freedom: float

    @classmethod
    def of(cls, a: Sample, b: Sample, *, effective_n: float) -> Resolutions:
        """Of two models on the same rows, the effective number of which says how fine cells can be."""
        predicted = (a.rows.predicted.astype(np.float64) + b.rows.predicted) / 2
        models = [ScoredRows.of(sample, predicted) for sample in (a, b)]
        most = max(LEAST_CELLS, effective_n / LEAST_ROWS)
        first = min(most, max(LEAST_CELLS, FINENESS * np.sqrt(effective_n)))
        sizes = [round(first * 2**k) for k in range(RUNGS) if k == 0 or first * 2**k <= most]
        found = [SquaredErrors.of(*(model.squared_gap(size) for model in models)) for size in sizes]
        return cls(
            [one.with_total_of(found[0]) for one in found],
            effective_clusters(a.by_cluster(a.row_share[:, None])[:, 0]) - 1,
        )

    @cached_property
    def _number(self) -> int:
        limit = PRICE * self.found[0].covariance[0, 0]
        return int(np.cumprod([one.covariance[0, 0] <= limit for one in self.found]).sum()) - 1

    @property
    def chosen(self) -> SquaredErrors:
        """The finest resolution before the price in noise is too high."""
        return self.found[self._number]

    def interval(self, reach: float, *, squared: bool) -> tuple[float, float]:
        """That of the chosen resolution, extended away from zero by that of the next finer one.

        What hides in cells makes an error too small. An interval that excludes zero still does.
        """
        nearby = self.found[self._number : self._number + 2]
        ends = np.array([one.interval(reach, squared=squared) for one in nearby])
        low, high = ends[0]
        return float(min(ends[:, 0]) if low <= 0 else low), float(max(ends[:, 1]) if high >= 0 else high)
