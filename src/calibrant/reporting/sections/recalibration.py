"""Recalibration of predicted probabilities, cross-validated: which map helps, by how much, and what error remains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.predictions import Binary
from calibrant.inference.intervals import interval
from calibrant.reporting.contents import MapRow, Recalibration, Value
from calibrant.reporting.part import Part, headline_error
from calibrant.reporting.sections.gains import Loss
from calibrant.reporting.sections.held_out import HeldOut, held_out_rows
from calibrant.reporting.sections.how_to_apply import binary_code, commands
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.ranking import Candidate, ranked
from calibrant.reporting.sections.reliability import confidence_band, corp_curve
from calibrant.results.estimate import Estimate

#: Fewer rows, or fewer events or non-events, cannot fit and judge a map.
FEWEST_ROWS, FEWEST_EVENTS = 100, 20
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
    held_out = HeldOut.of(part)
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
