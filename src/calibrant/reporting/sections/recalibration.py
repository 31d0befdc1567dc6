"""The section on recalibration: maps judged on rows they were not fitted on, ranked, and how to apply the best.

The gain of each map is paired and has an interval. A map is applied by the given commands, or by the same in Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from calibrant.data.predictions import Binary
from calibrant.inference.held_out_gains import FOLDS, Entries, Loss, cell_sums, differences, gain_share, losses
from calibrant.inference.intervals import interval
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import fold_of_rows
from calibrant.reporting.contents import CannotBuild, MapRow, Recalibration
from calibrant.reporting.part_results import Part, headline_error
from calibrant.reporting.sections.over_time import Since
from calibrant.reporting.sections.reliability import average_design_effect, confidence_band, corp_curve
from calibrant.results.estimate import Estimate, Value
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge

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


#: Cells that the scores of the rows a map is fitted to are counted on: far finer than any map could tell.
TRAINING_GRID = HybridGrid(cells=1 << 11)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows of every fold, or their cells, in the order of the folds.

    Clustered rows are kept one by one, since their gains must be added up by cluster.

    Attributes
    ----------
    score, count : array
        Prediction and number of rows of each entry.
    entries : Entries
        Weights by outcome, and clusters.
    bounds : list of slice
        Where each fold is.
    training : list of BinTable
        The rows of the other folds.
    rows : Binary or None
        Clustered rows, in the order of the folds.
    size : float
        How many independent rows they are worth.
    """

    score: Floats
    count: Floats
    entries: Entries
    bounds: list[slice]
    training: list[BinTable]
    rows: Binary | None
    size: float

    @classmethod
    def of(cls, part: Part) -> HeldOut:
        """The folds of one part of the data."""
        held, training = part.folds.held_out, [_pooled(table) for table in part.folds.training]
        data = part.data
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(data, part, training)
        score, count, ones, weight, squares = (
            np.concatenate([getattr(table, name) for table in held])
            for name in ("predicted_mean", "count", "observed", "weight", "weight_squares")
        )
        ends = np.cumsum([len(table) for table in held])
        bounds = [slice(end - len(table), end) for end, table in zip(ends.tolist(), held, strict=True)]
        return cls(score, count, Entries(ones, weight - ones, squares), bounds, training, None, _independent_rows(part))

    @classmethod
    def _of_clusters(cls, data: Binary, part: Part, training: list[BinTable]) -> HeldOut:
        fold = fold_of_rows(len(data), [1] * FOLDS, seed=part.seed, cluster=data.group)
        some = np.arange(len(data)) if data.weight is None else np.flatnonzero(data.weight > 0)
        order = some[np.argsort(fold[some], kind="stable")]
        rows = data.take(order)
        ends = np.cumsum(np.bincount(fold[order]))
        ends = np.unique(ends[ends > 0])
        bounds = [slice(start, end) for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
        cluster = cluster_labels(rows, len(rows))
        entries = Entries(weight * rows.y_true, weight * (1 - rows.y_true), weight**2, cluster)
        score = rows.y_prob.astype(np.float64)
        return cls(score, np.ones(len(rows)), entries, bounds, training, rows, _independent_rows(part))

    def fitted(self, recalibrator: Any) -> list[Any]:
        """The map fitted without each fold."""
        return [clone(recalibrator).fit_table(table) for table in self.training]

    def predicted(self, fitted: list[Any]) -> Floats:
        """What the map predicts for each entry when it is fitted without the entry's fold."""
        found = np.empty(len(self.score))
        for where, one in zip(self.bounds, fitted, strict=True):
            found[where] = one.predict_proba(self.score[where])[:, 1]
        return found

    def gain(self, after: Floats, loss: Loss, *, parameters: float) -> Value:
        """By how much the loss falls, as a share of the loss before."""
        return gain_share(self.entries, self.score, after, loss, parameters=parameters, size=self.size)

    def error_of_difference(self, one: Floats, other: Floats, loss: Loss) -> float:
        """The standard error of the difference of the gains of two maps, as a share of the loss before."""
        error = self.entries.error_of_mean(*differences(losses(one, loss), losses(other, loss)))
        return error / self.entries.mean(*losses(self.score, loss))

    def after(self, predicted: Floats) -> Binary | BinTable:
        """The same rows with other predictions: a fine table, or rows where they are clustered."""
        if self.rows is not None:
            return Binary(
                self.rows.y_true, np.clip(predicted, 0.0, 1.0), weight=self.rows.weight, group=self.rows.group
            )
        return merge([self._table(predicted, where) for where in self.bounds])

    def _table(self, predicted: Floats, where: slice) -> BinTable:
        own = self.entries
        order = np.argsort(predicted[where], kind="stable")
        columns = (predicted, own.weight, own.ones, own.squares, self.count)
        q, weight, ones, squares, count = (values[where][order] for values in columns)
        return BinTable(Distinct(), q, q, q, cell_sums(q, weight, ones, squares, count))


def held_out_rows(data: Binary, fitted: list[Any], seed: int) -> Binary:
    """The rows of `data`, in their order, with the predictions of maps fitted without the fold of each.

    Of more rows than are divided into folds one by one, a row's fold is drawn anew: its map may have been fitted on it
    among tens of thousands of others.
    """
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    score, after = data.y_prob.astype(np.float64), data.y_prob.astype(np.float64).copy()
    weighted = fold if data.weight is None else fold[data.weight > 0]
    for k, one in zip(np.unique(weighted).tolist(), fitted, strict=True):
        after[fold == k] = one.predict_proba(score[fold == k])[:, 1]
    return Binary(data.y_true, np.clip(after, 0.0, 1.0), weight=data.weight, group=data.group)


def _independent_rows(part: Part) -> float:
    return part.cells.population.effective_n / average_design_effect(part)


def _pooled(table: BinTable) -> BinTable:
    """The table with the cells of one cell of the grid added up."""
    if len(table) <= TRAINING_GRID.cells // 2:
        return table
    key = TRAINING_GRID.index(table.predicted_mean)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
    ends = np.append(starts[1:], len(key)) - 1
    sums = np.add.reduceat(table.sums, starts, axis=1)
    return replace(table, cut=TRAINING_GRID, key=key[starts], low=table.low[starts], high=table.high[ends], sums=sums)


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
