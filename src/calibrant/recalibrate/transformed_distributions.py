"""Distributions made of others: stretched about their centre, or with their probabilities mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.numerics.arrays import Floats


class Normal:
    """Normal distributions with the methods a `Distribution` needs; cheaper to make than those of `scipy.stats`."""

    def __init__(self, mean: Floats, std: Floats) -> None:
        self._mean, self._std = np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)

    def cdf(self, y: ArrayLike) -> Floats:
        """Distribution function."""
        from scipy.special import ndtr

        return ndtr((np.asarray(y) - self._mean) / self._std)

    def ppf(self, level: ArrayLike) -> Floats:
        """Quantile function."""
        from scipy.special import ndtri

        return self._mean + self._std * ndtri(level)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density."""
        z = (np.asarray(y) - self._mean) / self._std
        return -(z**2) / 2 - np.log(self._std) - np.log(2 * np.pi) / 2

    def mean(self) -> Floats:
        """Means."""
        return self._mean

    def std(self) -> Floats:
        """Standard deviations."""
        return self._std


class Stretched:
    """The distribution of center + factor (X - center) for X of another one.

    >>> from scipy import stats
    >>> Stretched(stats.t(5, loc=1.0), 1.0, 2.0).ppf(0.9) == stats.t(5, loc=1.0, scale=2.0).ppf(0.9)
    np.True_
    """

    def __init__(self, dist: Any, center: ArrayLike, factor: ArrayLike) -> None:
        self._dist, self._center, self._factor = dist, np.asarray(center), np.asarray(factor)

    def cdf(self, y: ArrayLike) -> Floats:
        """Distribution function."""
        return np.asarray(self._dist.cdf(self._back(y)))

    def ppf(self, level: ArrayLike) -> Floats:
        """Quantile function."""
        ppf = getattr(self._dist, "ppf", None) or self._dist.icdf
        return self._center + self._factor * (np.asarray(ppf(level)) - self._center)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density."""
        return np.asarray(self._dist.logpdf(self._back(y))) - np.log(self._factor)

    def mean(self) -> Floats:
        """Means."""
        return self._center + self._factor * (np.asarray(self._dist.mean()) - self._center)

    def std(self) -> Floats:
        """Standard deviations."""
        name = "std" if hasattr(self._dist, "std") else "standard_deviation"
        return self._factor * np.asarray(getattr(self._dist, name)())

    def _back(self, y: ArrayLike) -> Floats:
        return self._center + (np.asarray(y) - self._center) / self._factor


class Remapped:
    """The distribution R(F(y)) for a rising, piecewise linear R through points (u, p), from (0, 0) to (1, 1).

    `maps` holds the points of one R per output, the last axis of `y`.
    """

    def __init__(self, dist: Any, maps: Sequence[tuple[Floats, Floats]]) -> None:
        self._dist, self._maps = dist, maps

    def cdf(self, y: ArrayLike) -> Floats:
        """Distribution function."""
        return self._by_output(lambda values, u, p: np.interp(values, u, p), self._dist.cdf(y))

    def ppf(self, level: ArrayLike) -> Floats:
        """Quantile function."""
        ppf = getattr(self._dist, "ppf", None) or self._dist.icdf
        return np.asarray(ppf(self._by_output(lambda values, u, p: np.interp(values, p, u), level)))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density; minus infinity where no recalibration row fell."""
        return self._by_output(_log_slope, self._dist.cdf(y)) + np.asarray(self._dist.logpdf(y))

    def mean(self) -> Floats:
        """Means, by quadrature over the levels."""
        return self._moments()[0]

    def std(self) -> Floats:
        """Standard deviations, by quadrature over the levels."""
        return np.sqrt(np.maximum(self._moments()[1], 0.0))

    def _by_output(self, function: Callable[[Floats, Floats, Floats], Floats], values: ArrayLike) -> Floats:
        values = np.asarray(values)
        if len(self._maps) == 1:
            return np.asarray(function(values, *self._maps[0]))
        columns = np.broadcast_to(
            values[..., None] if values.ndim == 0 else values, (*values.shape[:-1], len(self._maps))
        )
        return np.stack([function(columns[..., j], u, p) for j, (u, p) in enumerate(self._maps)], axis=-1)

    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and variance. Normal distributions share those of the standardised variable."""
        if isinstance(self._dist, Normal):
            unit = np.array([_normal_moments(u, p) for u, p in self._maps])
            center, spread = (unit[0, 0], unit[0, 1]) if len(unit) == 1 else (unit[:, 0], unit[:, 1])
            return self._dist.mean() + self._dist.std() * center, self._dist.std() ** 2 * spread
        total = square = np.zeros(())
        for level in (np.arange(256) + 0.5) / 256:
            value = self.ppf(level)
            total, square = total + value, square + value**2
        return total / 256, square / 256 - (total / 256) ** 2


def _log_slope(values: Floats, u: Floats, p: Floats) -> Floats:
    cell = np.clip(np.searchsorted(u, values, side="left") - 1, 0, len(u) - 2)
    with np.errstate(divide="ignore"):
        return np.log(np.diff(p) / np.diff(u))[cell]


def _normal_moments(u: Floats, p: Floats) -> tuple[float, float]:
    """Mean and variance of a standard normal variable whose probabilities are mapped by R."""
    from scipy.special import ndtri

    levels = np.unique(np.concatenate([p, np.linspace(0, 1, 513)]))
    middle, share = (levels[1:] + levels[:-1]) / 2, np.diff(levels)
    values = ndtri(np.interp(middle, p, u))
    center = float(share @ values)
    return center, float(share @ (values - center) ** 2)


def as_distribution(task: Forecast) -> Distribution:
    """A Gaussian or other forecast as a `Distribution`."""
    if isinstance(task, Gaussian):
        return Distribution(task.y_true, Normal(task.mean, task.std), weight=task.weight, group=task.group)
    if isinstance(task, Distribution):
        return task
    message = f"This map needs predicted distributions (Gaussian, Distribution), got {type(task).__name__}."
    raise TypeError(message)


def center_of(task: Distribution) -> Floats:
    """The mean where it exists, else the median."""
    mean = task.mean
    if np.isfinite(mean).all():
        return mean
    return task.quantile(0.5).reshape(task.y_true.shape)


def stretched(task: Forecast, factor: Floats) -> Forecast:
    """The same forecasts with each spread multiplied by its factor, an array of the shape of `y_true`."""
    kept = {"weight": task.weight, "group": task.group}
    if isinstance(task, Gaussian):
        return Gaussian(task.y_true, task.mean, task.std * factor, **kept)
    if isinstance(task, Samples):
        center = task.mean[:, None]
        return Samples(task.y_true, center + factor[:, None] * (task.draws - center), **kept)
    if isinstance(task, Distribution):
        return Distribution(task.y_true, Stretched(task.dist, center_of(task), factor), **kept)
    kind = "Quantiles" if isinstance(task, Quantiles) else type(task).__name__
    message = f"{kind} have no spread to multiply; recalibrate them with Conformal."
    raise TypeError(message)
