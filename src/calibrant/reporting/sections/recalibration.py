"""The section on recalibration: maps judged on rows they were not fitted on, ranked, and how to apply the best.

The gain of each map is paired and has an interval. A map is applied by the given commands, or by the same in Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.data.predictions import Binary
from calibrant.inference.held_out_gains import HeldOut, Loss, held_out_rows
from calibrant.inference.intervals import interval
from calibrant.reporting.contents import CannotBuild, MapRow, Recalibration
from calibrant.reporting.part_results import Part, headline_error
from calibrant.reporting.sections.over_time import Since
from calibrant.reporting.sections.reliability import average_design_effect, confidence_band, corp_curve
from calibrant.reporting.verdicts.evidence import FEWEST_EVENTS, FEWEST_ROWS
from calibrant.results.estimate import Estimate, Value

Effect = Literal["best", "helps", "may not help", "makes it worse"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cross-validated map: its class, number of parameters, gain, what it predicted for held-out rows, and fits."""

    name: str
    parameters: float
    gain: Value
    predicted: Any
    fitted: Any = None


def ranked(
    candidates: Sequence[Candidate], error_of_difference: Callable[[Candidate, Candidate], float]
) -> list[tuple[Candidate, Effect]]:
    """The best map first, then by falling gain, each with its effect.

    A map helps where the interval of its gain lies above 0. The best is the one with the largest gain among them, or
    one with fewer parameters whose gain is smaller by no more than one standard error of the paired difference.
    """
    by_gain = sorted(candidates, key=lambda one: -one.gain.value)
    best = _best([one for one in by_gain if _lies_above_zero(one.gain)], error_of_difference)
    order = by_gain if best is None else [best, *(one for one in by_gain if one is not best)]
    return [(one, "best" if one is best else _effect(one.gain)) for one in order]


def _best(
    helpful: Sequence[Candidate], error_of_difference: Callable[[Candidate, Candidate], float]
) -> Candidate | None:
    if not helpful:
        return None
    first = helpful[0]
    close = [
        one for one in helpful if one is first or first.gain.value - one.gain.value <= error_of_difference(first, one)
    ]
    return min(close, key=lambda one: (one.parameters, -one.gain.value))


def _lies_above_zero(gain: Value) -> bool:
    return gain.low is not None and gain.low > 0


def _effect(gain: Value) -> Effect:
    if _lies_above_zero(gain):
        return "helps"
    return "makes it worse" if gain.high is not None and gain.high < 0 else "may not help"


#: Names of files and columns of the reader, who replaces them by their own.
_FITTED, _NEW = "labelled.csv", "new.csv"


def commands(map_class: str, columns: str, *, since: Since | None = None) -> str:
    r"""Fit the map to a file of predictions with outcomes, and apply it to another; `columns` are options of both.

    With `since` it is fitted to the rows since then.

    >>> print(commands("Platt", "--prob p"))
    calibrant recalibrate labelled.csv --truth y --prob p --method platt -o map.json && \
    calibrant apply map.json new.csv --prob p -o recalibrated.csv
    """
    rows = "" if since is None else f" --where {_quoted(since.condition)}"
    fit = f"calibrant recalibrate {_FITTED} --truth y {columns}{rows} --method {map_class.lower()} -o map.json"
    return f"{fit} && \\\ncalibrant apply map.json {_NEW} {columns} -o recalibrated.csv"


def _quoted(text: str) -> str:
    """One word of a shell: in double quotes where nothing in them has a meaning, which is easier to read."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def class_columns(labels: Sequence[Hashable]) -> str:
    """The options that name one column of probabilities per class: its label, or p_0, p_1, ... for numbers.

    >>> class_columns(["cat", "big dog"]), class_columns([0, 1])
    ("--prob cat --prob 'big dog'", '--prob p_0 --prob p_1')
    """
    words = all(isinstance(label, str) for label in labels)
    return " ".join(f"--prob {shlex.quote(str(label) if words else f'p_{label}')}" for label in labels)


def class_code(map_class: str) -> str:
    """The same in Python, for arrays y, p and p_new of several classes.

    >>> print(class_code("VectorScaling").splitlines()[-1])
    recalibrated = fitted.predict_proba(p_new)
    """
    return "\n".join(
        [
            f"from calibrant.recalibrate import {map_class}",
            "",
            f"fitted = {map_class}().fit(p, y)",
            "recalibrated = fitted.predict_proba(p_new)",
        ]
    )


def forecast_code(map_class: str) -> str:
    """The same in Python, for arrays y, mean, std, mean_new and std_new.

    >>> print(forecast_code("StdScaling").splitlines()[-1])
    recalibrated = fitted.transform(np.column_stack([mean_new, std_new]))
    """
    return "\n".join(
        [
            "import numpy as np",
            f"from calibrant.recalibrate import {map_class}",
            "",
            f"fitted = {map_class}().fit(np.column_stack([mean, std]), y)",
            "recalibrated = fitted.transform(np.column_stack([mean_new, std_new]))",
        ]
    )


def binary_code(map_class: str, *, since: Since | None = None) -> str:
    """The same in Python, for arrays y, p and p_new, and time where only the rows since a time are fitted.

    >>> print(binary_code("Platt"))
    from calibrant.recalibrate import Platt
    <BLANKLINE>
    fitted = Platt().fit(p, y)
    recalibrated = fitted.predict_proba(p_new)[:, 1]
    """
    fit = [f"fitted = {map_class}().fit(p, y)"]
    if since is not None:
        fit = [f"recent = {since.code}", f"fitted = {map_class}().fit(p[recent], y[recent])"]
    numpy = ["import numpy as np"] if "np." in fit[0] else []
    start = [*numpy, f"from calibrant.recalibrate import {map_class}", ""]
    return "\n".join([*start, *fit, "recalibrated = fitted.predict_proba(p_new)[:, 1]"])


#: Parameters of a spline as the data leave it, about.
SPLINE_PARAMETERS = 5.0


def recalibration_section(part: Part) -> Recalibration:
    """Six maps of one event, each fitted on four fifths of the rows and judged on the rest.

    `gain` is the mean paired difference as a share of the loss before (see `gains.gain_share`), and `remaining` the
    calibration error of the held-out predictions, with the interval of `calibrant.interval` for the first map. That of
    another map follows from the distance d = E|q - q'| between the predictions of both: its error differs from the
    first by at most d, and is d if the first map is right. The loss is the log loss, or the Brier score where that is
    infinite.
    """
    return recalibrated(part)[0]


def recalibrated(part: Part) -> tuple[Recalibration, Part]:
    """The section, and the held-out predictions of its first map: of rows in their order, or the table of a table."""
    require_enough(part)
    held_out = held_out_of(part)
    loss: Loss = "log loss" if np.isfinite(part.log_loss) else "Brier score"
    judged = candidates(part, held_out, loss)
    order = ranked(judged, lambda a, b: held_out.error_of_difference(a.predicted, b.predicted, loss))
    first = order[0][0]
    after = Part(held_out.after(first.predicted), part.seed)
    remaining = value_of(interval(headline_error, after.data))
    rows = [
        MapRow(one.name, one.parameters, _remaining(held_out, remaining, first, one), one.gain, effect)
        for one, effect in order
    ]
    section = Recalibration(
        loss=loss,
        loss_before=float(part.log_loss if loss == "log loss" else part.brier),
        maps=tuple(rows),
        after=replace(corp_curve(after.cells), confidence=confidence_band(after)),
        command=commands(first.name, "--prob p"),
        code=binary_code(first.name),
    )
    if isinstance(part.data, Binary):
        after = Part(held_out_rows(part.data, first.fitted, part.seed), part.seed)
    return section, after


def held_out_of(part: Part) -> HeldOut:
    """The folds of one part of the data, with what they hold out."""
    effect = average_design_effect(part)
    return HeldOut.of(part.data, part.cells, part.folds, seed=part.seed, design_effect=effect)


def candidates(part: Part, held_out: HeldOut, loss: Loss) -> list[Candidate]:
    """Every map, fitted without each fold and judged on it."""
    return [_judged(held_out, recalibrator, parameters, loss) for recalibrator, parameters in _maps(part)]


def require_enough(part: Part) -> None:
    """Refuse data on which no map can be fitted and judged."""
    cells = part.cells
    events = cells.n * float(cells.observed.sum()) / cells.total if cells.n else 0.0
    if cells.n < FEWEST_ROWS or min(events, cells.n - events) < FEWEST_EVENTS:
        message = (
            f"Too few rows to fit or judge a map: it takes {FEWEST_ROWS} rows with {FEWEST_EVENTS} events and as many "
            "non-events."
        )
        raise CannotBuild(message)
    if len(part.folds.held_out) < 2:
        message = "All rows belong to one group, so that no map can be judged on rows of another."
        raise CannotBuild(message)


def value_of(estimate: Estimate) -> Value:
    """An estimate and its interval, cut at 0: the error of a calibrated model."""
    found = estimate.interval
    value = max(float(estimate), 0.0)
    return Value(value) if found is None else Value(value, max(float(found.low), 0.0), float(found.high))


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
    from calibrant.recalibrate.isotonic import Isotonic
    from calibrant.recalibrate.logistic import Beta, Platt, Quadratic, Temperature
    from calibrant.recalibrate.spline import Spline

    steps = float(len(corp_curve(part.cells).rate))
    return [
        (Temperature(), 1.0),
        (Platt(), 2.0),
        (Beta(), 3.0),
        (Quadratic(), 3.0),
        (Spline(), SPLINE_PARAMETERS),
        (Isotonic(), max(steps, SPLINE_PARAMETERS)),
    ]


def _judged(held_out: HeldOut, recalibrator: Any, parameters: float, loss: Loss) -> Candidate:
    fitted = held_out.fitted(recalibrator)
    predicted = held_out.predicted(fitted)
    gain = held_out.gain(predicted, loss, parameters=parameters)
    return Candidate(type(recalibrator).__name__, parameters, gain, predicted, fitted)
