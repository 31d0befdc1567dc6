"""The section on recalibration: maps judged on rows they were not fitted on, ranked, and how to apply the best.

The gain of each map is paired and has an interval. A map is applied by the given commands, or by the same in Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.regression_coverage import quantile_error
from calibrant.estimators.regression_scores import crps_losses, pinball_losses, student_log_losses
from calibrant.estimators.regression_spread import ence, mean_squared_z
from calibrant.inference.groupings import periods_of
from calibrant.inference.intervals import interval
from calibrant.inference.inversion.binary import Inversion
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.numerics.rows import effective_n, mean_and_error
from calibrant.recalibrate import model_averaging
from calibrant.recalibrate.held_out_gains import FOLDS, HeldOut, Loss, held_out_rows, with_fit_error
from calibrant.recalibrate.inputs import Scores
from calibrant.reporting.contents import CannotBuild, MapRow, Options, OverTime, Recalibration
from calibrant.reporting.evidence import Part, headline_error, of_error
from calibrant.reporting.names import name_of_map
from calibrant.reporting.rounding import above
from calibrant.reporting.sections.groups import DRAWS, since
from calibrant.reporting.sections.reliability import average_design_effect, confidence_band, corp_curve
from calibrant.reporting.verdicts.evidence import FEWEST_EVENTS, FEWEST_ROWS
from calibrant.reporting.verdicts.severity import changed
from calibrant.results.estimate import Value
from calibrant.table.bintable import merge

Effect = Literal["best", "helps", "may not help", "makes it worse"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cross-validated map: its class, number of parameters, gain, what it predicted for held-out rows, and fits.

    `moved` is the mean distance between predictions before and after it.
    """

    name: str
    parameters: float
    gain: Value
    predicted: Any
    fitted: Any = None
    moved: float = 0.0


def ranked(
    candidates: Sequence[Candidate], error_of_difference: Callable[[Candidate, Candidate], float]
) -> list[tuple[Candidate, Effect]]:
    """The best map first, then by falling gain, each with its effect.

    A map helps where the interval of its gain lies above 0. The best is the one with the largest gain among them, or
    one with fewer parameters whose gain is smaller by no more than one standard error of the paired difference.
    """
    by_gain = sorted(candidates, key=lambda one: -one.gain.value)
    helpful = [one for one in by_gain if above(one.gain)]
    close = helpful[:1] + [
        one for one in helpful[1:] if helpful[0].gain.value - one.gain.value <= error_of_difference(helpful[0], one)
    ]
    best = min(close, key=lambda one: (one.parameters, -one.gain.value), default=None)
    order = by_gain if best is None else [best, *(one for one in by_gain if one is not best)]
    return [(one, "best" if one is best else _effect(one.gain)) for one in order]


def _effect(gain: Value) -> Effect:
    if above(gain):
        return "helps"
    return "makes it worse" if gain.high is not None and gain.high < 0 else "may not help"


def python_code(map_class: str, new: str, *, rows: str = "data", before: str = "") -> str:
    """How to fit a map to the rows of a report as their user has them, and to apply it to new ones, in Python.

    >>> print(python_code("Platt", "p_new"))
    from calibrant.recalibrate import Platt
    <BLANKLINE>
    fitted = Platt().fit(data)
    recalibrated = fitted.transform(p_new)
    """
    body = [f"fitted = {map_class}().fit({rows})", f"recalibrated = fitted.transform({new})"]
    body = [before, *body] if before else body
    numpy = ["import numpy as np"] if any("np." in line for line in body) else []
    return "\n".join([*numpy, f"from calibrant.recalibrate import {map_class}", "", *body])


#: Parameters, about, of a spline and of a rising step function as the data leave them.
#: Test: tests/reporting/sections/test_recalibration.py::test_maps_have_about_as_many_parameters_as_they_show.
SPLINE_PARAMETERS, STEPS = 5.0, 10.0


def recalibrated(part: Part, given: str = "data") -> tuple[Recalibration, Part]:
    """Six maps of binary rows, each fitted on four fifths of them and judged on the rest; and the rows after the best.

    `gain` is the mean paired difference as a share of the loss before (see `held_out_gains.gain_share`), and
    `remaining` the calibration error of the held-out predictions, with the interval of `calibrant.interval` for the
    first map. That of another map follows from the distance d = E|q - q'| between the predictions of both: its error
    differs from the first by at most d, and is d if the first map is right. The loss is the log loss, or the Brier
    score where that is infinite. The second result holds the held-out predictions of the first map: of rows in their
    order, or the table of a table.
    """
    require_enough(part)
    held_out = held_out_of(part)
    loss: Loss = "log loss" if np.isfinite(part.log_loss) else "Brier score"
    tried = candidates(part, held_out, loss)
    order = ranked(tried, lambda a, b: held_out.error_of_difference(a.predicted, b.predicted, loss))
    first = order[0][0]
    after = Part(held_out.after(first.predicted), part.seed)
    remaining = Value.of(interval(headline_error, after.data), 0.0)
    rows = [
        MapRow(one.name, one.parameters, _remaining(held_out, remaining, first, one), one.gain, effect, one.moved)
        for one, effect in order
    ]
    section = Recalibration(
        loss=loss,
        loss_before=float(part.log_loss if loss == "log loss" else part.brier),
        maps=tuple(rows),
        after=replace(corp_curve(after.cells), confidence=confidence_band(after)),
        fitted=first.name,
        code=python_code(first.name, "p_new", rows=given),
    )
    if isinstance(part.data, Binary):
        after = Part(held_out_rows(part.data, first.fitted, part.seed), part.seed)
    return section, after


def with_recent_map(made: Recalibration, data: Any, options: Options, time: OverTime | None) -> Recalibration:
    """The section with the best map fitted and judged on the rows since the change over time, if there was one.

    It is the one that readers are told to use, so that the command and the code fit it to those rows.
    """
    change = changed(time)
    if change is None or options.time is None:
        return made
    column, values = options.time
    start, rows, first, imported = since(column, values, change.first), options.rows, change.first, ""
    if isinstance(values, Mapping):
        some: Any = merge(list(values.values())[first:])
        imported, before = "from calibrant.table import merge\n", ""
        given = f"merge(list(time.values())[{first}:])"
    else:
        some = data.take(periods_of(values, name="time", length=len(data)).index >= first)
        before = f"recent = {start.code}"
        given = "data.take(recent)" if rows == "data" else ", ".join(f"{one}[recent]" for one in rows.split(", "))
    best = recalibrated(Part(some, options.seed))[0].maps[0]
    code = imported + python_code(best.name, "p_new", rows=given, before=before)
    recent = replace(best, name=name_of_map(best.name))
    return replace(made, recent=recent, fitted=best.name, since=start.condition, code=code)


def with_readers_names(made: Recalibration) -> Recalibration:
    """The section with the names of maps that readers know, not those of classes."""
    return replace(made, maps=tuple(replace(one, name=name_of_map(one.name)) for one in made.maps))


def held_out_of(part: Part) -> HeldOut:
    """The folds of one part of the data, with what they hold out."""
    effect = average_design_effect(part)
    return HeldOut.of(part.data, part.cells, part.folds, seed=part.seed, design_effect=effect)


def candidates(part: Part, held_out: HeldOut, loss: Loss) -> list[Candidate]:
    """Every map, fitted without each fold and judged on it."""
    return [
        Candidate(type(one).__name__, parameters, *held_out.judged(one, loss, parameters=parameters))
        for one, parameters in _maps(part)
    ]


def require_enough(part: Part) -> None:
    """Refuse data on which no map can be fitted and judged."""
    cells = part.cells
    events = cells.n * float(cells.observed.sum()) / cells.total if cells.n else 0.0
    if cells.n < FEWEST_ROWS or min(events, cells.n - events) < FEWEST_EVENTS:
        fail(
            f"Too few rows to fit or judge a map: it takes {FEWEST_ROWS} rows with {FEWEST_EVENTS} events and as many "
            "non-events.",
            CannotBuild,
        )
    if len(part.folds.held_out) < 2:
        fail("All rows belong to one group, so that no map can be judged on rows of another.", CannotBuild)


def _remaining(held_out: HeldOut, remaining: Value, first: Candidate, one: Candidate) -> Value:
    """The remaining error of a map, from that of the first and the distance between their predictions."""
    if one is first or remaining.low is None or remaining.high is None:
        return remaining
    apart = np.abs(one.predicted - first.predicted)
    distance = held_out.entries.mean(apart, apart)
    low, high = max(remaining.low - distance, distance - remaining.high, 0.0), remaining.high + distance
    return Value(float(np.clip(np.hypot(remaining.value, distance), low, high)), low, high)


def _maps(part: Part) -> list[tuple[Any, float]]:
    """The maps, each with its number of parameters; that of isotonic regression is its number of steps."""
    from calibrant.recalibrate.logistic import Beta, Platt, Quadratic, Spline, Temperature
    from calibrant.recalibrate.nonparametric import Isotonic

    steps = float(len(corp_curve(part.cells).rate))
    return [
        (Temperature(), 1.0),
        (Platt(), 2.0),
        (Beta(), 3.0),
        (Quadratic(), 3.0),
        (Spline(), SPLINE_PARAMETERS),
        (Isotonic(), max(steps, SPLINE_PARAMETERS)),
    ]


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """Losses of held-out rows before a map, and how much maps lower them."""

    before: Floats
    weight: Floats
    cluster: NDArray[Any] | None

    @cached_property
    def mean(self) -> float:
        """The mean loss before a map."""
        return float(self.before @ self.weight / self.weight.sum())

    def gain(
        self, after: Floats, parameters: float, unit: float, if_true: Callable[[float], float] = lambda _: 0.0
    ) -> Value:
        """By how much the loss falls, as a share of the loss before; see `held_out_gains.gain_share`.

        The excess loss of a fitted map is `unit` χ² / n with as many degrees of freedom as parameters; `if_true` is
        the least standard error of such a share, which knows of outcomes that were not seen.
        """
        share = 1 - float(after @ self.weight / self.weight.sum()) / self.mean
        rest = self.before - after - share * self.before
        error = mean_and_error(rest, self.weight, self.cluster)[1]
        size = effective_n(self.weight, len(self.weight))
        if self.cluster is not None:
            size *= min((mean_and_error(rest, self.weight)[1] / max(error, 1e-300)) ** 2, 1.0)
        excess = unit * np.sqrt(2 * parameters) / (size * self.mean)
        return with_fit_error(share, max(error, if_true(share)) / self.mean, excess)

    def error_of_difference(self, one: Floats, other: Floats) -> float:
        """The standard error of the difference of the gains of two maps."""
        return mean_and_error(one - other, self.weight, self.cluster)[1] / self.mean


def _folds(data: Any, seed: int, rows: str = "rows", others: str = "rows") -> NDArray[np.intp]:
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    if fold.max() == 0:
        fail(f"All {rows} belong to one group, so that no map can be judged on {others} of another.", CannotBuild)
    return fold


#: Rows that a map needs for each of its parameters.
#: Test: tests/reporting/sections/test_recalibration.py::test_a_map_needs_five_rows_for_each_parameter.
_ROWS_PER_PARAMETER = 5
#: Where rows times squared classes are more than this, one fold is held out instead of each in turn.
#: Test: tests/reporting/sections/test_recalibration.py::test_one_fold_is_held_out_where_maps_are_slow.
_WORK = 1e8


def class_recalibration(data: Multiclass, *, seed: int = 0) -> Recalibration:
    """Five maps of the whole vector, each fitted on four fifths of the rows and judged on the rest.

    None looks at the confidence of the predicted class alone. Those with more than one parameter are tried where there
    are five rows for each, `ConditionalLogit` also only where all folds are held out in turn. `remaining` is the
    calibration error of the confidence of the predicted class after the map.
    """
    if len(data) < FEWEST_ROWS or len(np.unique(data.y_true)) < 2:
        fail(f"Too few rows to fit or judge a map: it takes {FEWEST_ROWS} rows of two classes or more.", CannotBuild)
    fold = _folds(data, seed)
    loss: model_averaging.Loss = "log_loss" if np.min(data.y_prob[np.arange(len(data)), data.y_true]) > 0 else "brier"
    maps, parts = _class_maps(len(data.classes), len(data)), parts_held_out(len(data), len(data.classes))
    scores = Scores.of(data.y_prob, input="probabilities", clip=False)
    some = [one for one, _ in maps], scores, data.y_true, data.weight, fold
    tried = model_averaging.HeldOut.of(*some, parts=min(parts, fold.max() + 1))
    judge = _ClassJudge(data.take(np.flatnonzero(fold < parts)), tried.mass, loss, seed)
    judged = [
        Candidate(type(one).__name__, parameters, judge.gain(p, parameters), p)
        for (one, parameters), p in zip(maps, tried.probabilities, strict=True)
    ]
    order = ranked(
        judged, lambda a, b: judge.own.error_of_difference(judge.losses(a.predicted), judge.losses(b.predicted))
    )
    first, after = order[0][0], judge.top_label(order[0][0].predicted)
    rows = []
    for one, effect in order:
        method = None if one is first else Inversion(draws=DRAWS)
        error = interval(headline_error, judge.top_label(one.predicted).data, method=method)
        rows.append(MapRow(one.name, one.parameters, Value.of(error, 0.0), one.gain, effect))
    return Recalibration(
        loss="log loss" if loss == "log_loss" else "Brier score",
        loss_before=judge.own.mean,
        maps=tuple(rows),
        after=replace(corp_curve(after.cells), confidence=confidence_band(after)),
        fitted=first.name,
        code=python_code(first.name, "p_new"),
    )


def parts_held_out(n: int, classes: int) -> int:
    """How many folds are held out in turn; one where maps take long to fit."""
    return FOLDS if n * classes**2 <= _WORK else 1


def _class_maps(classes: int, n: int) -> list[tuple[Any, float]]:
    """The maps that this number of rows can fit, each with its number of parameters."""
    from calibrant.recalibrate.logistic import Temperature
    from calibrant.recalibrate.multiclass_scaling import Dirichlet, MatrixScaling, VectorScaling
    from calibrant.recalibrate.variational_maps import ConditionalLogit

    vector, matrix = 2.0 * classes - 1, float((classes - 1) * (classes + 1))
    every = [(Temperature(), 1.0), (VectorScaling(), vector), (MatrixScaling(), matrix), (Dirichlet(), matrix)]
    if parts_held_out(n, classes) == FOLDS:  # it has both, and local corrections
        every.append((ConditionalLogit(), vector + matrix))
    return [(one, size) for one, size in every if size == 1 or _ROWS_PER_PARAMETER * size <= n]


class _ClassJudge:
    """Held-out multiclass rows, before and after a map."""

    def __init__(self, data: Multiclass, mass: Floats, loss: model_averaging.Loss, seed: int) -> None:
        self.data, self.loss, self.seed = data, loss, seed
        self.before = data.y_prob.astype(np.float64)
        cluster = None if data.group is None else cluster_labels(data, len(data))
        self.own = HeldOutLosses(self.losses(self.before), mass, cluster)

    def losses(self, p: Floats, codes: Any = None) -> Floats:
        """The loss of each row; of a class other than the observed one, if it is given."""
        return model_averaging.row_losses(p, self.data.y_true if codes is None else codes, self.loss)

    def gain(self, after: Floats, parameters: float) -> Value:
        """By how much the loss falls, as a share of the loss before."""
        unit = 0.5 if self.loss == "log_loss" else float((self.before * (1 - self.before)).sum(axis=1).mean()) / 2
        return self.own.gain(self.losses(after), parameters, unit, lambda share: self._error_if_true(after, share))

    def top_label(self, after: Floats) -> Part:
        """The confidence of the predicted class after the map."""
        p, data = after / after.sum(axis=1, keepdims=True), self.data
        return Part(Multiclass(data.y_true, p, weight=data.weight, group=data.group).top_label(), self.seed)

    def _error_if_true(self, after: Floats, share: float) -> float:
        """The standard error of the gain if the probabilities before or after were true, whichever is larger."""
        columns = [np.full(len(after), k) for k in range(after.shape[1])]
        rest = np.stack([(1 - share) * self.losses(self.before, k) - self.losses(after, k) for k in columns], axis=1)
        found, mass = [], self.own.weight
        for p in (self.before, after):
            mean = np.einsum("ij,ij->i", p, rest)
            variance = np.einsum("ij,ij->i", p, (rest - mean[:, None]) ** 2)
            found.append(float(np.sqrt(variance @ mass**2)) / float(mass.sum()))
        return max(found)


#: The relative excess CRPS of a map with one parameter, for normal errors, is this times χ² (κ - 1) / n.
#: Derived: the expected CRPS of s times the true spread is proportional to √(1 + s²) - s / √2, so that its relative
#: excess is (s - 1)² / 4, and the variance of a fitted s is (κ - 1) / 4n.
_CRPS_EXCESS = 1 / 16
#: The same of the negative log likelihood. Derived: that of s times the true spread is larger by (s - 1)².
_LOG_EXCESS = 1 / 4


def forecast_recalibration(data: Forecast, *, seed: int = 0) -> Recalibration:
    """Maps of the predicted spread (or of quantiles), each fitted on four fifths of the rows and judged on the rest.

    `gain` is the paired difference of the CRPS (for quantiles, of the pinball loss; for draws, of `student_log_losses`
    in units of the spread before the map) as a share of it before; its interval allows for the fit of the maps as
    `held_out_gains.gain_share` does, with the kurtosis κ of the standardised errors. `remaining` is
    the ENCE after the map (for quantiles, the mean quantile error), with its interval.
    """
    if not isinstance(data, Forecast):
        fail("A table of spreads has no rows to fit and judge maps on.", CannotBuild)
    if len(data) < FEWEST_ROWS:
        fail(f"Too few forecasts to fit or judge a map: it takes {FEWEST_ROWS}.", CannotBuild)
    fold, quantiles = _folds(data, seed, "forecasts", "those"), isinstance(data, Quantiles)
    order = np.argsort(fold, kind="stable")
    weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)[order]
    cluster = None if data.group is None else cluster_labels(data, len(data))[order]
    draws = isinstance(data, Samples)
    scale = np.log(np.maximum(data.std, 1e-150)) if isinstance(data, Samples) else np.zeros(len(data))
    judge = HeldOutLosses((_forecast_losses(data) - scale)[order], weight, cluster)
    unit = (_kurtosis(data) - 1) * (_LOG_EXCESS if draws else _CRPS_EXCESS * judge.mean)
    found = []
    for recalibrator, parameters in _forecast_maps(data):
        after = _after(recalibrator, data, fold)
        if after is not None:
            losses = np.concatenate([_forecast_losses(one) for one in after]) - scale[order]
            gain = judge.gain(losses, parameters, unit)
            found.append(Candidate(type(recalibrator).__name__, parameters, gain, losses, after))
    if not found:
        fail(f"No map can be fitted to these {type(data).__name__} forecasts.", CannotBuild)
    maps = ranked(found, lambda a, b: judge.error_of_difference(a.predicted, b.predicted))
    first = maps[0][0].name
    tied = isinstance(data, Quantiles) and bool((data.values == data.y_true[:, None]).any())
    gaussian = isinstance(data, Gaussian) and data.y_true.ndim == 1
    return Recalibration(
        loss="pinball loss" if quantiles else "negative log likelihood" if draws else "CRPS",
        loss_before=judge.mean,
        maps=tuple(
            MapRow(m.name, m.parameters, _remaining_spread(m.fitted, tied=tied), m.gain, effect) for m, effect in maps
        ),
        fitted=first,
        code=python_code(first, "np.column_stack([mean_new, std_new])" if gaussian else "new"),
    )


def _forecast_maps(data: Forecast) -> list[tuple[Any, float]]:
    from calibrant.recalibrate.regression_maps import ExchangeableStretch, SpreadSpline, StdScaling, VarianceIsotonic
    from calibrant.recalibrate.regression_quantiles import Conformal

    if isinstance(data, Quantiles):
        return [(Conformal(), 1.0)]
    if isinstance(data, Samples):  # curves of the spread of a few draws would not leave them exchangeable
        return [(ExchangeableStretch(), 2.0)]
    return [(StdScaling(), 1.0), (SpreadSpline(), SPLINE_PARAMETERS), (VarianceIsotonic(), STEPS)]


def _after(recalibrator: Any, data: Forecast, fold: NDArray[np.intp]) -> list[Forecast] | None:
    """The forecasts of each fold after a map fitted without it; None where these forecasts have no such map."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single rows that carry the fit: a finding says so
        try:
            return [
                recalibrator.fit(data.take(fold != k)).transform(data.take(fold == k)) for k in range(fold.max() + 1)
            ]
        except (InvalidPredictions, ValueError, TypeError):
            return None


def _forecast_losses(data: Forecast) -> Floats:
    """The CRPS, or the pinball loss, of each row: its mean over the outputs. Of draws, `student_log_losses`."""
    if isinstance(data, Samples):
        return student_log_losses(data)
    losses = pinball_losses(data) if isinstance(data, Quantiles) else crps_losses(data)
    return losses.reshape(-1, data.y_true.size // len(data)).mean(axis=1)


def _kurtosis(data: Forecast) -> float:
    """Of the standardised errors; 3, that of normal ones, where there are no spreads."""
    if isinstance(data, Quantiles):
        return 3.0
    return float(max(mean_squared_z(data).details["null"].get("kurtosis", 3.0), 1.0))


def _remaining_spread(after: list[Forecast], *, tied: bool = False) -> Value:
    """The error after a map, over all folds; an estimate above its interval, which counts noise, is moved to its end.

    Far below it, few rows have tiny spreads, which no binned error sees: then there is no interval. Nor is there one
    where outcomes equal quantiles (`tied`): quantiles of counts are exceeded less often than their levels say.
    """
    whole = _joined(after)
    estimator = quantile_error if isinstance(whole, Quantiles) else ence
    plain = Value(float(estimator(whole)))
    if tied:
        return plain
    try:
        found = of_error(interval(estimator, whole))
    except (InvalidPredictions, ValueError):
        return plain
    return plain if found is None or found.value > plain.value else found


def _joined(after: list[Any]) -> Any:
    """Forecasts of all folds as one: means and spreads, quantiles, or draws."""
    first = after[0]

    def whole(name: str) -> Any:
        return None if getattr(first, name) is None else np.concatenate([getattr(one, name) for one in after])

    rows = {"weight": whole("weight"), "group": whole("group")}
    if isinstance(first, Quantiles):
        return Quantiles(whole("y_true"), first.levels, whole("values"), **rows)
    if isinstance(first, Samples):
        return Samples(whole("y_true"), whole("draws"), **rows)
    return Gaussian(whole("y_true"), whole("mean"), whole("std"), **rows)
