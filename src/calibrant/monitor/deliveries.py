"""What arrives at once: rows of any task as sums per series, period and cell, checked before anything is added.

A series is all rows, one class of multiclass predictions, or one group of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.forecasts import Forecast
from calibrant.data.groups import group_names, group_texts
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import fail, require
from calibrant.inference.groupings import times_of
from calibrant.monitor.bets import CELLS, LEAVES, cells_of, tree_sums
from calibrant.numerics.arrays import Floats
from calibrant.table.bintable import BinTable
from calibrant.table.task import Labelled

Kind = Literal["binary", "multiclass", "forecast"]
#: Cells of the log odds for a group. Derived: a quarter of `CELLS`, so that a group needs a quarter of the state.
GROUP_CELLS = 32
#: What all rows are called where names of series are texts.
EVERYTHING = ""


class Sums(NamedTuple):
    """Of one series: sums by period and cell (weights, predictions, outcomes), and of squared residuals by period."""

    series: str
    cells: Floats
    squares: Floats


class Times(NamedTuple):
    """The number of each row's period, and whether these are days of the calendar."""

    number: NDArray[np.int64]
    dates: bool


def period_numbers(values: Any, rows: int) -> Times:
    """Dates, times and their texts as days since 1970; whole numbers as they are. One value may stand for all rows."""
    if (np.ndim(values) == 0 and not hasattr(values, "__len__")) or isinstance(values, str):
        number = isinstance(values, int | float | np.integer | np.floating)
        values = np.full(rows, values if number else np.datetime64(values, "D"))
    array, known = times_of(values, name="time", length=rows)
    if array.dtype.kind in "fM":
        known &= ~np.isnat(array) if array.dtype.kind == "M" else np.isfinite(array)
    require("time", array, known, "must be known", remedy=" Leave these rows out, or give them a date.")
    if array.dtype.kind in "iuf":
        whole = array.astype(np.int64)
        require("time", array, whole == array, "must be whole numbers or dates")
        return Times(whole, dates=False)
    try:
        days = array.astype("datetime64[D]") if array.dtype.kind == "M" else np.array(array, dtype="datetime64[D]")
    except (ValueError, TypeError) as error:
        fail(f"time must hold dates (such as 2026-11-18) or whole numbers of periods, but {error}.", cause=error)
    return Times(days.astype(np.int64), dates=True)


def period_name(number: int, *, dates: bool) -> str:
    """The period as a reader sees it."""
    return str(np.datetime64(int(number), "D")) if dates else str(number)


@dataclass(frozen=True, eq=False)
class Delivery:
    """Checked rows of one delivery, with the classes and `groups` in it.

    `reference` are rows per cell of scores, from which bets are made (None for forecasts). `sums` takes the period of
    each row as a number from 0 on, and how many there are, and yields `Sums`, of all rows first; of a table for
    `one_period`.
    """

    kind: Kind
    rows: int
    reference: Floats | None
    groups: list[str]
    sums: Callable[[NDArray[np.intp], int], Iterator[Sums]]
    one_period: bool = False

    @classmethod
    def of(
        cls,
        y_true: Predictions | BinTable | ArrayLike,
        y_prob: ArrayLike | None,
        *,
        group: Any = None,
        cluster: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> Delivery:
        """From predictions of any labelled task, from the table of a period, or from (y_true, y_prob)."""
        if isinstance(y_true, BinTable):
            if any(given is not None for given in (y_prob, cluster, weight)):
                fail("A table holds its predictions and weights: pass it with time= and group= alone.")
            return _of_table(y_true, group)
        data = _predictions(y_true, y_prob, cluster, weight)
        rows, power = len(data), _powers(data)
        names, codes = (None, None) if group is None else group_names(group, name="group", length=rows)
        data.require_same_rows(group=group)
        groups = [] if names is None else group_texts(names, taken=EVERYTHING)
        if isinstance(data, Forecast):
            return cls("forecast", rows, None, groups, _forecast_sums(data, power, groups, codes))
        assert isinstance(data, Binary | Multiclass)
        kind: Kind = "multiclass" if isinstance(data, Multiclass) else "binary"
        one_vs_rest = data.one_vs_rest() if isinstance(data, Multiclass) else {}
        classes = {f"class {label}": _top(one) for label, one in one_vs_rest.items()}
        if both := sorted({*classes} & {*groups}):
            fail(f"A group has the name of a class: {both[0]!r}. Rename the group.")
        series = {EVERYTHING: _top(data), **classes}
        counts = np.bincount(cells_of(series[EVERYTHING][1]), minlength=CELLS).astype(np.float64)
        return cls(kind, rows, counts, [*classes, *groups], _probability_sums(series, power, groups, codes))


def _predictions(y_true: Any, y_prob: Any, cluster: Any, weight: Any) -> Predictions:
    if not isinstance(y_true, Predictions):
        if y_prob is None:
            fail("Pass (y_true, y_prob), predictions such as Binary(...) or Gaussian(...), or a fine BinTable.")
        task = Multiclass if np.ndim(y_prob) == 2 and np.shape(y_prob)[1] > 1 else Binary
        return task(y_true, y_prob, weight=weight, group=cluster)
    if y_prob is not None or cluster is not None or weight is not None:
        fail("Predictions hold their own columns: pass weight=... and group=... (the cluster) when making them.")
    if not isinstance(y_true, Binary | Multiclass | Forecast):
        fail(f"A monitor watches Binary, Multiclass and forecasts, not {type(y_true).__name__}.")
    return y_true


def _powers(data: Predictions) -> Floats:
    """The power of each row's bet: its weight, divided by the number of rows of its cluster."""
    power = np.ones(len(data)) if data.weight is None else np.asarray(data.weight, dtype=np.float64)
    remedy = " A row cannot count more than once; divide all weights by the largest."
    require("weight", power, (power <= 1) & (data._weight_unit == 0), "must lie in [0, 1]", remedy=remedy)
    if data.group is not None:
        _, codes = group_names(data.group)
        power = power / np.bincount(codes)[codes]
    return power


def _top(data: Binary | Multiclass) -> tuple[Floats, Floats]:
    """Outcomes and probabilities; of multiclass predictions whether the top label is right, and its confidence."""
    one = data if isinstance(data, Binary) else data.top_label()
    return one.y_true.astype(np.float64), one.y_prob.astype(np.float64, copy=False)


def _probability_sums(
    series: dict[str, tuple[Floats, Floats]], power: Floats, groups: list[str], codes: NDArray[np.intp] | None
) -> Callable[[NDArray[np.intp], int], Iterator[Sums]]:
    def sums(period: NDArray[np.intp], periods: int) -> Iterator[Sums]:
        for name, (y, p) in series.items():
            yield _cell_sums(name, y, p, power, period, periods, CELLS if name == EVERYTHING else GROUP_CELLS)
        y, p = series[EVERYTHING]
        for name, some in _members(groups, codes):
            yield _cell_sums(name, y[some], p[some], power[some], period[some], periods, GROUP_CELLS)

    return sums


def _forecast_sums(
    data: Forecast, power: Floats, groups: list[str], codes: NDArray[np.intp] | None
) -> Callable[[NDArray[np.intp], int], Iterator[Sums]]:
    low, high = data.pit()
    outputs = len(low) // len(data)
    row = np.repeat(np.arange(len(data)), outputs)
    power = power[row] / outputs  # outputs of one row are a cluster

    def of(name: str, some: Any, period: NDArray[np.intp], periods: int) -> Sums:
        cells = tree_sums(low[some], high[some], power[some], period[row][some], periods, LEAVES)
        return Sums(name, cells, cells[:, 0, 0] / 4)  # of an indicator of probability 1/2

    def sums(period: NDArray[np.intp], periods: int) -> Iterator[Sums]:
        yield of(EVERYTHING, slice(None), period, periods)
        for name, some in _members(groups, None if codes is None else codes[row]):
            yield of(name, some, period, periods)

    return sums


def _members(groups: list[str], codes: NDArray[np.intp] | None) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Each group and its rows."""
    if codes is not None:
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        for k, name in enumerate(groups):
            yield name, order[ends[k] : ends[k + 1]]


def _cell_sums(
    name: str, y: Floats, p: Floats, power: Floats, period: NDArray[np.intp], periods: int, cells: int
) -> Sums:
    place = period * cells + cells_of(p, cells)
    columns = [np.bincount(place, values, periods * cells) for values in (power, power * p, power * y)]
    squares = np.asarray(np.bincount(period, power * (y - p) ** 2, periods), dtype=np.float64)
    return Sums(name, np.stack(columns, axis=1, dtype=np.float64).reshape(periods, cells, 3), squares)


def _of_table(table: BinTable, group: Any) -> Delivery:
    """A fine table of unweighted probabilities, all rows of one period and, if one is named, of one group."""
    if not table.fine or not isinstance(table.task, Labelled):
        fail("A monitor takes fine tables of predicted probabilities, e.g. of scale.bin_table(...).")
    if not np.array_equal(table.weight, table.count):
        fail("A monitor takes tables without weights: weights above 1 cannot be seen in their sums. Pass the rows.")
    if group is not None and np.ndim(group):
        fail("The rows of a table belong to one group: pass its name, and one table for each group.")
    filled = table.filled()
    columns = np.stack([filled.weight, filled.predicted, filled.observed], axis=1)
    squares = float((filled.observed_squares - 2 * filled.product + filled.predicted_squares).sum())

    def binned(cells: int) -> Floats:
        found = np.zeros((1, cells, 3))
        np.add.at(found[0], cells_of(np.clip(filled.predicted_mean, 0.0, 1.0), cells), columns)
        return found

    groups = [] if group is None else [str(group)]

    def sums(period: NDArray[np.intp], periods: int) -> Iterator[Sums]:
        del period, periods  # one of them
        for name, cells in ((EVERYTHING, CELLS), *((name, GROUP_CELLS) for name in groups)):
            yield Sums(name, binned(cells), np.array([squares]))

    return Delivery("binary", table.n, binned(CELLS)[0, :, 0], groups, sums, one_period=True)
