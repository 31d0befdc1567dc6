"""What a map changes in a forecast: the logarithm of each spread, or each quantile; and the losses of such changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from calibrant.data.forecasts import Forecast, Gaussian, Quantiles
from calibrant.numerics.arrays import Codes, Floats
from calibrant.recalibrate.regression_base import ForecastRecalibrator, spread_of

#: Rows that the predicted variance counts for.
PRIOR_ROWS = 5.0


class Changes(ABC):
    """Forecasts of one output, and changes of them that can be averaged: arrays (n, c), zero for none.

    Attributes
    ----------
    task : Forecast
        What maps are fitted to.
    loss_name : str
    """

    task: Gaussian | Quantiles
    loss_name: str

    def __len__(self) -> int:
        return len(self.task)

    @property
    def mass(self) -> Floats:
        """How many rows each counts for."""
        return np.ones(len(self)) if self.task.weight is None else self.task.weight

    @property
    @abstractmethod
    def none(self) -> Floats:
        """No change."""

    @abstractmethod
    def take(self, rows: Codes) -> Changes:
        """Some of the rows."""

    @abstractmethod
    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """What a map changes that was fitted to n rows, drawn towards no change if these are few."""

    @abstractmethod
    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""

    @abstractmethod
    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Logarithms of how likely the outcomes are after each of several changes."""

    @abstractmethod
    def bounded(self, change: Floats, n: float) -> Floats:
        """The change, kept from more certainty than n rows can give."""

    @abstractmethod
    def error_if_true(self, change: Floats) -> float:
        """Standard error of the mean gain if the forecasts before or after the change were true, the larger."""


class SpreadChanges(Changes):
    r"""Logarithms of factors of the spread, judged by the Dawid–Sebastiani score :math:`\log s\sigma + z^2/2s^2`.

    It is proper for the mean and the spread of any distribution, and the negative log likelihood of a Gaussian one.
    """

    loss_name = "Dawid-Sebastiani score"

    def __init__(self, task: Forecast) -> None:
        mean = task.mean  # type: ignore[attr-defined]  # spread_of refuses what has none
        self.task: Gaussian = Gaussian(task.y_true, mean, spread_of(task), weight=task.weight)

    @property
    def none(self) -> Floats:
        """No change."""
        return np.zeros((len(self), 1))

    def take(self, rows: Codes) -> SpreadChanges:
        """Some of the rows."""
        return SpreadChanges(self.task.take(rows))

    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """The variance is the mean of that of the map, for n rows, and the predicted one, for five."""
        ratio = (fitted.transform(self.task).std / self.task.std) ** 2
        return 0.5 * np.log((PRIOR_ROWS + n * ratio) / (PRIOR_ROWS + n))[:, None]

    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""
        return np.log(self.task.std) + change[:, 0] + 0.5 * self._squares * np.exp(-2 * change[:, 0])

    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Divided by the dispersion of z² after the best change, which heavy tails raise above that of a normal one."""
        losses = np.array([self.losses(change) @ self.mass for change in changes])
        best = changes[int(np.argmin(losses))]
        squares, share = self._squares * np.exp(-2 * best[:, 0]), self.mass / self.mass.sum()
        mean = float(squares @ share)
        kurtosis = float(squares**2 @ share) / mean**2 if mean > 0 else 3.0
        return -losses / max((kurtosis - 1) / 2, 1.0)

    def bounded(self, change: Floats, n: float) -> Floats:
        """The change, kept from more certainty than n rows can give."""
        return np.maximum(change, -0.5 * np.log(n + 1))

    def error_if_true(self, change: Floats) -> float:
        """Standard error of the mean gain if the forecasts before or after the change were true, the larger."""
        ratio = np.exp(2 * change[:, 0])
        variance = 0.5 * np.maximum((1 - 1 / ratio) ** 2, (ratio - 1) ** 2)
        return float(np.sqrt(variance @ self.mass) / self.mass.sum())

    @property
    def _squares(self) -> Floats:
        return np.asarray((self.task.error() / self.task.std) ** 2, dtype=np.float64)


class QuantileChanges(Changes):
    """Shifts of quantiles, judged by the mean pinball loss of their levels."""

    loss_name = "pinball loss"

    def __init__(self, task: Quantiles) -> None:
        self.task: Quantiles = task

    @property
    def none(self) -> Floats:
        """No change."""
        return np.zeros((len(self), len(self.task.levels)))

    def take(self, rows: Codes) -> QuantileChanges:
        """Some of the rows."""
        return QuantileChanges(self.task.take(rows))

    def of(self, fitted: ForecastRecalibrator, n: float) -> Floats:
        """Shifts as they are: levels that few rows cannot tell are refused by the maps themselves."""
        return np.asarray(fitted.transform(self.task).values - self.task.values, dtype=np.float64)

    def losses(self, change: Floats) -> Floats:
        """Loss of each row after a change."""
        gap = self.task.y_true[:, None] - (self.task.values + change)
        return np.asarray(np.maximum(self.task.levels * gap, (self.task.levels - 1) * gap).mean(axis=1))

    def log_likelihoods(self, changes: Sequence[Floats]) -> Floats:
        """Those of asymmetric Laplace distributions whose common scale is the best one of each change."""
        total = float(self.mass.sum())
        means = np.array([self.losses(change) @ self.mass / total for change in changes])
        return -total * np.log(np.maximum(means, np.finfo(np.float64).tiny))

    def bounded(self, change: Floats, n: float) -> Floats:
        """Distances from the middle quantile do not shrink below 1/sqrt(n + 1) of what was predicted."""
        middle = int(np.argmin(np.abs(self.task.levels - 0.5)))
        before, after = self.task.values, self.task.values + change
        least = (before - before[:, [middle]]) / np.sqrt(n + 1)
        distance = after - after[:, [middle]]
        above = np.arange(len(self.task.levels)) > middle
        kept = np.where(above, np.maximum(distance, least), np.minimum(distance, least))
        return np.asarray(after[:, [middle]] + kept - before)

    def error_if_true(self, change: Floats) -> float:
        """Quantiles alone do not say how far beyond them outcomes fall."""
        return 0.0


def changes_of(task: Forecast) -> Changes:
    """The changes of forecasts of one output."""
    return QuantileChanges(task) if isinstance(task, Quantiles) else SpreadChanges(task)
