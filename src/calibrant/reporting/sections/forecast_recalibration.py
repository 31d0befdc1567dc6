"""Recalibration of predicted distributions, cross-validated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from calibrant.data.forecasts import Forecast, Gaussian, Quantiles
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.dispersion import mean_squared_z
from calibrant.estimators.forecast_losses import crps_losses, pinball_losses
from calibrant.estimators.regression_coverage import quantile_error
from calibrant.estimators.regression_spread import ence
from calibrant.inference.intervals import interval
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import fold_of_rows
from calibrant.numerics.weights import effective_n, mean_and_error
from calibrant.reporting.contents import MapRow, Recalibration, Value
from calibrant.reporting.folds import FOLDS
from calibrant.reporting.sections.gains import with_fit_error
from calibrant.reporting.sections.how_to_apply import commands, forecast_code
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.ranking import Candidate, ranked
from calibrant.reporting.sections.recalibration import value_of

#: Fewer forecasts cannot fit and judge a map.
FEWEST_ROWS = 100
#: Parameters, about, of a spline of the spread and of a rising step function.
_SPLINE, _STEPS = 5.0, 10.0
#: The relative excess CRPS of a map with one parameter, for normal errors, is this times χ² (κ - 1) / n.
_CRPS_EXCESS = 1 / 16

ForecastLoss = Literal["CRPS", "pinball loss"]


def forecast_recalibration(data: Forecast, *, seed: int = 0) -> Recalibration:
    """Maps of the predicted spread (or of quantiles), each fitted on four fifths of the rows and judged on the rest.

    `gain` is the paired difference of the CRPS (for quantiles, of the pinball loss) as a share of it before; its
    interval allows for the fit of the maps as `gains.gain_share` does, with the kurtosis κ of the standardised errors.
    `remaining` is the ENCE after the map (for quantiles, the mean quantile error), with its interval.
    """
    if not isinstance(data, Forecast):
        message = "A table has no forecasts that could be judged one by one."
        raise CannotBuild(message)
    if len(data) < FEWEST_ROWS:
        message = f"Too few forecasts to fit or judge a map: it takes {FEWEST_ROWS}."
        raise CannotBuild(message)
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    if fold.max() == 0:
        message = "All forecasts belong to one group, so that no map can be judged on those of another."
        raise CannotBuild(message)
    quantiles = isinstance(data, Quantiles)
    judge = _Judge(data, fold, pinball_losses if quantiles else crps_losses)
    found = []
    for recalibrator, parameters in _maps(quantiles=quantiles):
        tried = judge.tried(recalibrator)
        if tried is not None:
            losses, after = tried
            found.append(
                Candidate(type(recalibrator).__name__, parameters, judge.gain(losses, parameters), (losses, after))
            )
    if not found:
        message = f"No map can be fitted to these {type(data).__name__} forecasts."
        raise CannotBuild(message)
    order = ranked(found, lambda a, b: judge.error_of_difference(a.predicted[0], b.predicted[0]))
    first = order[0][0]
    loss: ForecastLoss = "pinball loss" if quantiles else "CRPS"
    gaussian = isinstance(data, Gaussian) and data.y_true.ndim == 1
    return Recalibration(
        loss=loss,
        loss_before=judge.mean_before,
        maps=tuple(MapRow(m.name, m.parameters, _remaining(m.predicted[1]), m.gain, effect) for m, effect in order),
        command=commands(first.name, "--mean mean --std std") if gaussian else "",
        code=forecast_code(first.name) if gaussian else "",
    )


def _maps(*, quantiles: bool) -> list[tuple[Any, float]]:
    from calibrant.recalibrate.regression_distribution import Conformal
    from calibrant.recalibrate.regression_spread import SpreadSpline, StdScaling, VarianceIsotonic

    if quantiles:
        return [(Conformal(), 1.0)]
    return [(StdScaling(), 1.0), (SpreadSpline(), _SPLINE), (VarianceIsotonic(), _STEPS)]


def _remaining(after: list[Forecast]) -> Value:
    """The error after a map, over all folds."""
    whole = _joined(after)
    estimator = quantile_error if isinstance(whole, Quantiles) else ence
    try:
        return value_of(interval(estimator, whole))
    except (InvalidPredictions, ValueError):
        return Value(float(estimator(whole)))


def _joined(after: list[Forecast]) -> Any:
    """Forecasts of all folds as one: means and spreads, or quantiles."""
    first: Any = after[0]
    weight = None if first.weight is None else np.concatenate([one.weight for one in after])
    group = None if first.group is None else np.concatenate([one.group for one in after])
    if isinstance(first, Quantiles):
        quantiles: Any = after
        values = np.concatenate([one.values for one in quantiles])
        y = np.concatenate([one.y_true for one in quantiles])
        return Quantiles(y, first.levels, values, weight=weight, group=group)
    spread: Any = after
    y, mean, std = (np.concatenate([getattr(one, name) for one in spread]) for name in ("y_true", "mean", "std"))
    return Gaussian(y, mean, std, weight=weight, group=group)


class _Judge:
    """Losses of held-out forecasts before and after a map, in the order of the folds."""

    def __init__(self, data: Forecast, fold: Any, losses: Callable[[Any], Floats]) -> None:
        self.data, self.fold, self._losses = data, fold, losses
        self.order = np.argsort(fold, kind="stable")
        self.before = self._by_row(losses(data))[self.order]
        self.weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)[self.order]
        self.mean_before = float(self.before @ self.weight / self.weight.sum())
        self.cluster = None if data.group is None else cluster_labels(data, len(data))[self.order]

    def tried(self, recalibrator: Any) -> tuple[Floats, list[Forecast]] | None:
        """Losses and forecasts after the map; None where these forecasts have no such map."""
        after = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of single rows that carry the fit: a finding says so
            try:
                for k in range(int(self.fold.max()) + 1):
                    others, held = self.data.take(self.fold != k), self.data.take(self.fold == k)
                    after.append(recalibrator.fit(others).transform(held))
                return np.concatenate([self._by_row(self._losses(one)) for one in after]), after
            except (InvalidPredictions, ValueError, TypeError):
                return None

    def gain(self, losses: Floats, parameters: float) -> Value:
        """By how much the loss falls, as a share of the loss before."""
        share = 1 - float(losses @ self.weight / self.weight.sum()) / self.mean_before
        rest = self.before - losses - share * self.before
        error = mean_and_error(rest, self.weight, self.cluster)[1]
        size = effective_n(self.weight, len(self.weight))
        if self.cluster is not None:
            size *= min((mean_and_error(rest, self.weight)[1] / max(error, 1e-300)) ** 2, 1.0)
        excess = _CRPS_EXCESS * (self._kurtosis - 1) * np.sqrt(2 * parameters) / size
        return with_fit_error(share, error / self.mean_before, excess)

    def error_of_difference(self, one: Floats, other: Floats) -> float:
        """The standard error of the difference of the gains of two maps."""
        return mean_and_error(one - other, self.weight, self.cluster)[1] / self.mean_before

    @property
    def _kurtosis(self) -> float:
        """Of the standardised errors; 3, that of normal ones, where there are no spreads."""
        if isinstance(self.data, Quantiles):
            return 3.0
        null = mean_squared_z(self.data).details["null"]
        return float(max(null.get("kurtosis", 3.0), 1.0))

    def _by_row(self, losses: Floats) -> Floats:
        """The mean over the outputs of each row."""
        outputs = self.data.y_true.size // len(self.data)
        return losses.reshape(-1, outputs).mean(axis=1)
