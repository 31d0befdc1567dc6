"""The section on recalibration of multiclass probabilities and of forecasts: maps, cross-validated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast, Gaussian, Quantiles
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.regression_coverage import quantile_error
from calibrant.estimators.regression_scores import crps_losses, pinball_losses
from calibrant.estimators.regression_spread import ence, mean_squared_z
from calibrant.inference.held_out_gains import FOLDS, with_fit_error
from calibrant.inference.intervals import interval
from calibrant.inference.inversion.binary import Inversion
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.numerics.rows import effective_n, mean_and_error
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.model_averaging import HeldOut, Loss, row_losses
from calibrant.reporting.contents import CannotBuild, MapRow, Recalibration
from calibrant.reporting.part_results import Part, headline_error
from calibrant.reporting.sections.groups import DRAWS
from calibrant.reporting.sections.recalibration import (
    Candidate,
    class_code,
    class_columns,
    commands,
    forecast_code,
    ranked,
    value_of,
)
from calibrant.reporting.sections.reliability import confidence_band, corp_curve
from calibrant.reporting.verdicts.evidence import FEWEST_ROWS
from calibrant.results.estimate import Value

#: Rows that a map needs for each of its parameters.
_ROWS_PER_PARAMETER = 5
#: Where rows times squared classes are more than this, one fold is held out instead of each in turn.
_WORK = 1e8
#: Of more classes the command, with an option each, would not be read.
_NAMED_CLASSES = 12


def class_recalibration(data: Multiclass, *, seed: int = 0) -> Recalibration:
    """Temperature, vector, matrix and Dirichlet scaling, each fitted on four fifths of the rows and judged on the rest.

    All of them map the whole vector; none looks at the confidence of the predicted class alone. Matrix and Dirichlet
    maps are tried where there are five rows for each of their parameters. `remaining` is the calibration error of the
    confidence of the predicted class after the map.
    """
    fold = _class_folds(data, seed)
    scores = Scores.of(data.y_prob, input="probabilities", clip=False)
    before = float(np.min(data.y_prob[np.arange(len(data)), data.y_true]))
    loss: Loss = "log_loss" if before > 0 else "brier"
    maps = _class_maps(len(data.classes), len(data))
    parts = FOLDS if len(data) * len(data.classes) ** 2 <= _WORK else 1
    tried = HeldOut.of(
        [one for one, _ in maps], scores, data.y_true, data.weight, fold, parts=min(parts, fold.max() + 1)
    )
    rows = np.flatnonzero(fold < parts)
    judge = _ClassJudge(data.take(rows), tried.mass, loss)
    judged = [
        Candidate(type(one).__name__, parameters, judge.gain(p, parameters), p)
        for (one, parameters), p in zip(maps, tried.probabilities, strict=True)
    ]
    order = ranked(judged, lambda a, b: judge.error_of_difference(a.predicted, b.predicted))
    first, after = order[0][0], judge.top_label(order[0][0].predicted, seed)
    return Recalibration(
        loss="log loss" if loss == "log_loss" else "Brier score",
        loss_before=judge.mean_before,
        maps=tuple(_map_row(judge, one, effect, seed, first=one is first) for one, effect in order),
        after=replace(corp_curve(after.cells), confidence=confidence_band(after)),
        command=commands(first.name, class_columns(data.classes)) if len(data.classes) <= _NAMED_CLASSES else "",
        code=class_code(first.name),
    )


def _map_row(judge: _ClassJudge, one: Candidate, effect: Any, seed: int, *, first: bool) -> MapRow:
    method = None if first else Inversion(draws=DRAWS)
    error = interval(headline_error, judge.top_label(one.predicted, seed).data, method=method)
    return MapRow(one.name, one.parameters, value_of(error), one.gain, effect)


def _class_folds(data: Multiclass, seed: int) -> NDArray[np.intp]:
    if len(data) < FEWEST_ROWS or len(np.unique(data.y_true)) < 2:
        message = f"Too few rows to fit or judge a map: it takes {FEWEST_ROWS} rows of two classes or more."
        raise CannotBuild(message)
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    if fold.max() == 0:
        message = "All rows belong to one group, so that no map can be judged on rows of another."
        raise CannotBuild(message)
    return fold


def _class_maps(classes: int, n: int) -> list[tuple[Any, float]]:
    """The maps that so many rows can fit, each with its number of parameters."""
    from calibrant.recalibrate.logistic import Temperature
    from calibrant.recalibrate.multiclass_scaling import Dirichlet, MatrixScaling, VectorScaling

    vector, matrix = 2.0 * classes - 1, float((classes - 1) * (classes + 1))
    every = [(Temperature(), 1.0), (VectorScaling(), vector), (MatrixScaling(), matrix), (Dirichlet(), matrix)]
    return [(one, size) for one, size in every if size == 1 or _ROWS_PER_PARAMETER * size <= n]


class _ClassJudge:
    """Losses of held-out rows before and after a map."""

    def __init__(self, data: Multiclass, mass: Floats, loss: Loss) -> None:
        self.data, self.mass, self.loss = data, mass, loss
        self.before = data.y_prob.astype(np.float64)
        self.losses_before = row_losses(self.before, data.y_true, loss)
        self.mean_before = float(self.losses_before @ mass / mass.sum())
        self.cluster = None if data.group is None else cluster_labels(data, len(data))

    def gain(self, after: Floats, parameters: float) -> Value:
        """By how much the loss falls, as a share of the loss before; see `gains.gain_share`."""
        losses = row_losses(after, self.data.y_true, self.loss)
        share = 1 - float(losses @ self.mass / self.mass.sum()) / self.mean_before
        rest = self.losses_before - losses - share * self.losses_before
        error = mean_and_error(rest, self.mass, self.cluster)[1]
        by_model = (self._error_if_true(p, after, share) for p in (self.before, after))
        size = effective_n(self.data.weight, len(self.data))
        if self.cluster is not None:
            size *= min((mean_and_error(rest, self.mass)[1] / max(error, 1e-300)) ** 2, 1.0)
        unit = 0.5 if self.loss == "log_loss" else float((self.before * (1 - self.before)).sum(axis=1).mean()) / 2
        excess = unit * np.sqrt(2 * parameters) / (size * self.mean_before)
        return with_fit_error(share, max(error, *by_model) / self.mean_before, excess)

    def error_of_difference(self, one: Floats, other: Floats) -> float:
        """The standard error of the difference of the gains of two maps."""
        difference = row_losses(one, self.data.y_true, self.loss) - row_losses(other, self.data.y_true, self.loss)
        return mean_and_error(difference, self.mass, self.cluster)[1] / self.mean_before

    def top_label(self, after: Floats, seed: int) -> Part:
        """The confidence of the predicted class after the map."""
        p = after / after.sum(axis=1, keepdims=True)
        labels, data = np.asarray(range(len(self.data.classes))), self.data
        return Part(Multiclass(labels[data.y_true], p, weight=data.weight, group=data.group).top_label(), seed)

    def _error_if_true(self, p: Floats, after: Floats, share: float) -> float:
        """The standard error of the gain if p were the probabilities of the classes."""
        classes = range(p.shape[1])
        columns = [np.full(len(p), k) for k in classes]
        rest = np.stack(
            [(1 - share) * row_losses(self.before, k, self.loss) - row_losses(after, k, self.loss) for k in columns],
            axis=1,
        )
        mean = np.einsum("ij,ij->i", p, rest)
        variance = np.einsum("ij,ij->i", p, (rest - mean[:, None]) ** 2)
        return float(np.sqrt(variance @ self.mass**2)) / float(self.mass.sum())


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
    judge = _ForecastJudge(data, fold, pinball_losses if quantiles else crps_losses)
    found = []
    for recalibrator, parameters in _forecast_maps(quantiles=quantiles):
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


def _forecast_maps(*, quantiles: bool) -> list[tuple[Any, float]]:
    from calibrant.recalibrate.regression_maps import Conformal, SpreadSpline, StdScaling, VarianceIsotonic

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


class _ForecastJudge:
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
