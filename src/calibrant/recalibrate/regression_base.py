"""What maps of predicted distributions share: validation, outputs, groups, and distributions made of others.

A recalibrated distribution is the predicted one stretched about its centre, or with its probabilities mapped.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data import validation
from calibrant.data.forecasts import Distribution, Forecast, Gaussian, Quantiles, Samples
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import importance_weights, weighted_rows
from calibrant.recalibrate.persistence import Stored

AnyForecast = TypeVar("AnyForecast", bound=Forecast)


class ForecastRecalibrator(Stored, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the maps from predicted to recalibrated distributions: a scikit-learn transformer.

    It is fitted to a forecast with its outcomes (`Gaussian`, `Distribution`, `Samples`), or to an array with the
    columns mean and std and to `y`. Forecasts come back as forecasts, arrays as arrays. Several outputs are a forecast
    of shape (n, d) or an array with d columns of means and d of standard deviations.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of the array form.

    Examples
    --------
    >>> import calibrant as cal
    >>> class Unbiased(ForecastRecalibrator):
    ...     def _fit(self, task):
    ...         self.bias_ = np.mean(task.y_true - task.mean)
    ...
    ...     def _transform(self, task):
    ...         return cal.Gaussian(task.y_true, task.mean + self.bias_, task.std)
    >>> Unbiased().fit([[0.0, 1.0], [1.0, 1.0]], [0.5, 1.5]).transform([[3.0, 1.0]])
    array([[3.5, 1. ]])
    """

    def fit(
        self, forecast: Forecast | ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the map to predicted distributions and observed values.

        Parameters
        ----------
        forecast : Forecast, or array-like of shape (n, 2 d)
            A forecast holds its outcomes and weights; an array holds d columns of means, then d of stds.
        y : array-like of shape (n,) or (n, d)
            The observed values, with the array form.
        sample_weight : array-like of shape (n,), optional
            Importance weights, in any unit, with the array form.
        """
        if not isinstance(forecast, Forecast):
            if y is None:
                fail(f"{type(self).__name__}.fit needs y: requires y to be passed, but the target y is None.")
            validation.require_aligned(y=y, forecast=forecast, sample_weight=sample_weight)
            task: Forecast = Gaussian(y, *self._columns(forecast), weight=sample_weight)
        else:
            task = forecast
            if y is not None or sample_weight is not None:
                fail("A forecast holds its outcomes and weights; fit it without y and sample_weight.", TypeError)
        self._require_kind(task)
        self.n_features_in_ = 2 * len(task.outputs)
        self._fit(_unit_free(task))
        return self

    def transform(self, forecast: Any) -> Any:
        """Recalibrated forecasts; an array of means and stds gives an array of the same columns."""
        check_is_fitted(self)
        if isinstance(forecast, Forecast):
            self._require_outputs(len(forecast.outputs))
            return self._transform(forecast)
        mean, std = self._columns(forecast)
        self._require_outputs(mean.shape[1] if mean.ndim == 2 else 1)
        fixed: Any = self._transform(Gaussian(mean, mean, std))
        return fixed.values if isinstance(fixed, Quantiles) else np.column_stack([fixed.mean, fixed.std])

    def predict(self, forecast: Any) -> Any:
        """The same as `transform`."""
        return self.transform(forecast)

    def _check_restored(self) -> None:
        """Raise unless the number of columns is one of means and standard deviations, and all else is finite."""
        super()._check_restored()
        if type(self.n_features_in_) is not int or self.n_features_in_ < 2 or self.n_features_in_ % 2:
            fail(f"n_features_in_ must be twice the number of outputs, got {self.n_features_in_!r}", ValueError)

    def _try(self) -> None:
        """Raise unless forecasts of narrow and wide spread are mapped to forecasts, which check themselves."""
        std = np.geomspace(1e-3, 1e3, 7)
        if self.n_features_in_ > 2:
            std = np.tile(std[:, None], self.n_features_in_ // 2)
        self._transform(Gaussian(np.zeros_like(std), np.zeros_like(std), std, group=np.arange(len(std))))

    @abstractmethod
    def _fit(self, task: Forecast) -> None:
        """Set the fitted attributes from rows whose weights, if any, add up to their effective number."""

    @abstractmethod
    def _transform(self, task: Forecast) -> Forecast:
        """The forecast, recalibrated."""

    def _columns(self, values: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        matrix = validation.matrix("forecast", values)
        if matrix.shape[1] % 2:
            fail(f"forecast needs as many columns of standard deviations as of means, got shape {matrix.shape}.")
        half = matrix.shape[1] // 2
        mean, std = matrix[:, :half], matrix[:, half:]
        return (mean[:, 0], std[:, 0]) if half == 1 else (mean, std)

    def _require_kind(self, task: Forecast) -> None:
        """Refuse forecasts this map cannot change; `Quantiles` have no spread, so most maps cannot."""

    def _require_outputs(self, number: int) -> None:
        if number != (fitted := self.n_features_in_ // 2):
            fail(f"The forecast has {number} outputs, but {type(self).__name__} was fitted with {fitted}.")


class OutputRecalibrator(ForecastRecalibrator):
    """Base of the maps that learn from each output by itself; `outputs_` lists what was learnt from each."""

    def _check_restored(self) -> None:
        super()._check_restored()
        if len(self.outputs_) != self.n_features_in_ // 2:
            number = self.n_features_in_ // 2
            fail(f"outputs_ must describe {number} outputs, but describes {len(self.outputs_)}", ValueError)

    def _fit(self, task: Forecast) -> None:
        self.outputs_ = [self._fit_output(output) for output in task.outputs]

    @abstractmethod
    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        """What is learnt from the rows of one output."""


class SpreadRecalibrator(OutputRecalibrator):
    """Base of the maps that multiply the spread of each row by a factor that depends on the spread alone."""

    def _require_kind(self, task: Forecast) -> None:
        spread_of(task)

    def _transform(self, task: Forecast) -> Forecast:
        pairs = zip(self.outputs_, task.outputs, strict=True)
        factors = [self._factor(learnt, spread_of(output)) for learnt, output in pairs]
        return stretched(task, factors[0] if task.y_true.ndim == 1 else np.column_stack(factors))

    @abstractmethod
    def _factor(self, learnt: dict[str, Any], std: Floats) -> Floats:
        """What to multiply each standard deviation by."""


@dataclass(kw_only=True, eq=False, repr=False)
class PerGroup(ForecastRecalibrator):
    """A separate map for each group of rows (Mondrian), and one of all rows for groups that are new or too small.

    Parameters
    ----------
    map : ForecastRecalibrator
        The map to fit to each group.
    min_rows : int
        Smaller groups are left to the common map.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.Gaussian([1.0, -1.0, 3.0, -3.0], [0.0] * 4, [1.0] * 4, group=["a", "a", "b", "b"])
    >>> PerGroup(cal.recalibrate.StdScaling(), min_rows=2).fit(data).transform(data).std
    array([1., 1., 3., 3.])
    """

    map: ForecastRecalibrator = field(kw_only=False)
    min_rows: int = 30

    def _fit(self, task: Forecast) -> None:
        task, group = _grouped(task)
        self.common_ = clone(self.map).fit(task)
        names, member, count = np.unique(group, return_inverse=True, return_counts=True)
        large = np.flatnonzero(count >= self.min_rows)
        self.groups_ = names[large]
        self.maps_ = [clone(self.map).fit(task.take(np.flatnonzero(member == k))) for k in large]

    def _transform(self, task: Forecast) -> Forecast:
        task, group = _grouped(task)
        parts = [(np.arange(len(task)), self.common_)]
        parts += [(np.flatnonzero(group == name), map) for name, map in zip(self.groups_, self.maps_, strict=True)]
        factor = np.ones(task.y_true.shape)
        for rows, map in parts:
            if len(rows):
                part = task.take(rows)
                fixed = map._transform(part)
                if not isinstance(fixed, Gaussian | Samples):
                    fail(f"PerGroup works with maps of the spread, which {type(map).__name__} is not.", TypeError)
                factor[rows] = fixed.std / part.std
        return stretched(task, factor)


def _unit_free(task: AnyForecast) -> AnyForecast:
    """The rows that have weight, with weights that add up to their effective number; equal weights are no weights."""
    if task.weight is None:
        return task
    rows = weighted_rows(task.weight)
    some = copy.copy(task) if len(rows) == len(task) else task.take(rows)
    some.weight = importance_weights(task.weight[rows])
    return some


def _grouped(task: Forecast) -> tuple[Gaussian | Samples, NDArray[Any]]:
    """The forecast and the groups of its rows, if it has groups and its rows can be taken apart."""
    if not isinstance(task, Gaussian | Samples) or task.group is None:
        fail("PerGroup needs a Gaussian or Samples forecast made with group=....", TypeError)
    return task, task.group


def spread_of(task: Forecast) -> Floats:
    """Predicted standard deviations of one output."""
    if not isinstance(task, Gaussian | Distribution | Samples):
        fail(f"{type(task).__name__} have no standard deviation; recalibrate them with Conformal.", TypeError)
    return np.asarray(task.std, dtype=np.float64)


class Normal:
    """Normal distributions with the methods a `Distribution` needs; cheaper to make than those of `scipy.stats`."""

    def __init__(self, mean: Floats, std: Floats) -> None:
        self._mean, self._std = np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)

    def cdf(self, y: ArrayLike) -> Floats:
        """Distribution function."""
        return ndtr((np.asarray(y) - self._mean) / self._std)

    def ppf(self, level: ArrayLike) -> Floats:
        """Quantile function."""
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
    """The distribution of center + factor (X - center) for X of another one."""

    def __init__(self, dist: Any, center: ArrayLike, factor: ArrayLike) -> None:
        self._dist, self._center, self._factor = dist, np.asarray(center), np.asarray(factor)

    def cdf(self, y: ArrayLike) -> Floats:
        """Distribution function."""
        return np.asarray(self._dist.cdf(self._back(y)))

    def ppf(self, level: ArrayLike) -> Floats:
        """Quantile function."""
        return self._moved(_quantiles(self._dist, level))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density."""
        return np.asarray(self._dist.logpdf(self._back(y))) - np.log(self._factor)

    def mean(self) -> Floats:
        """Means."""
        return self._moved(self._dist.mean())

    def std(self) -> Floats:
        """Standard deviations."""
        name = "std" if hasattr(self._dist, "std") else "standard_deviation"
        return self._factor * np.asarray(getattr(self._dist, name)())

    def _moved(self, values: ArrayLike) -> Floats:
        return self._center + self._factor * (np.asarray(values) - self._center)

    def _back(self, y: ArrayLike) -> Floats:
        return self._center + (np.asarray(y) - self._center) / self._factor


class Remapped:
    """The distribution R(F(y)) for rising, piecewise linear R through points (u, p), one R per output (last axis)."""

    def __init__(self, dist: Any, maps: Sequence[tuple[Floats, Floats]]) -> None:
        self._dist, self._maps = dist, maps

    def cdf(self, y: ArrayLike) -> Floats:
        """Distribution function."""
        return self._by_output(np.interp, self._dist.cdf(y))

    def ppf(self, level: ArrayLike) -> Floats:
        """Quantile function."""
        return _quantiles(self._dist, self._by_output(lambda values, u, p: np.interp(values, p, u), level))

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
        columns = np.broadcast_to(np.atleast_1d(values), (*values.shape[:-1], len(self._maps)))
        return np.stack([function(columns[..., j], u, p) for j, (u, p) in enumerate(self._maps)], axis=-1)

    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and variance. Normal distributions share those of the standardised variable."""
        if isinstance(self._dist, Normal):
            unit = np.array([_normal_moments(u, p) for u, p in self._maps])
            center, spread = unit[0] if len(unit) == 1 else unit.T
            return self._dist.mean() + self._dist.std() * center, self._dist.std() ** 2 * spread
        total = square = np.zeros(())
        for level in (np.arange(256) + 0.5) / 256:
            value = self.ppf(level)
            total, square = total + value, square + value**2
        return total / 256, square / 256 - (total / 256) ** 2


def _quantiles(dist: Any, level: ArrayLike) -> Floats:
    return np.asarray((getattr(dist, "ppf", None) or dist.icdf)(level))


def _log_slope(values: Floats, u: Floats, p: Floats) -> Floats:
    cell = np.clip(np.searchsorted(u, values, side="left") - 1, 0, len(u) - 2)
    with np.errstate(divide="ignore"):
        return np.log(np.diff(p) / np.diff(u))[cell]


def _normal_moments(u: Floats, p: Floats) -> tuple[float, float]:
    """Mean and variance of a standard normal variable whose probabilities are mapped by R."""
    levels = np.unique(np.concatenate([p, np.linspace(0, 1, 513)]))
    middle, share = (levels[1:] + levels[:-1]) / 2, np.diff(levels)
    values = ndtri(np.interp(middle, p, u))
    center = float(share @ values)
    return center, float(share @ (values - center) ** 2)


def as_distribution(task: Forecast) -> Distribution:
    """A Gaussian or other forecast as a `Distribution`."""
    if isinstance(task, Gaussian):
        return Distribution(task.y_true, Normal(task.mean, task.std), weight=task.weight, group=task.group)
    if not isinstance(task, Distribution):
        fail(f"This map needs predicted distributions (Gaussian, Distribution), got {type(task).__name__}.", TypeError)
    return task


def center_of(task: Distribution) -> Floats:
    """The mean where it exists, else the median."""
    mean = task.mean
    return mean if np.isfinite(mean).all() else task.quantile(0.5).reshape(task.y_true.shape)


def stretched(task: AnyForecast, factor: Floats | float, shift: Floats | float = 0.0) -> AnyForecast:
    """The same forecasts with each spread multiplied by its factor, a number or an array of the shape of `y_true`.

    Draws are also moved by `shift` times their standard deviation.
    """
    kept = {"weight": task.weight, "group": task.group}
    made: Forecast
    if isinstance(task, Gaussian):
        made = Gaussian(task.y_true, task.mean, task.std * factor, **kept)
    elif isinstance(task, Samples):
        center, within = task.mean, task.draws.astype(np.float64, copy=False).std(axis=1, ddof=1)
        away = np.broadcast_to(np.asarray(factor), (len(task),))[:, None] * (task.draws - center[:, None])
        made = Samples(task.y_true, (center + shift * within)[:, None] + away, **kept)
    elif isinstance(task, Distribution):
        made = Distribution(task.y_true, Stretched(task.dist, center_of(task), factor), **kept)
    else:
        fail(f"{type(task).__name__} have no spread to multiply; recalibrate them with Conformal.", TypeError)
    return made  # type: ignore[return-value]  # of the same kind
