"""Calibration in order of time: observed and expected events of each period, and whether there was a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Predictions
from calibrant.inference.multiplicity import holm
from calibrant.reporting.contents import Change, OverTime, Period
from calibrant.reporting.sections.change_point import change_point
from calibrant.reporting.sections.events import events_of
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.period_totals import EventTotals, SpreadTotals
from calibrant.reporting.sections.periods import periods
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread

ALPHA = 0.05


def over_time(data: Predictions | BinTable, time: Any, *, column: str, seed: int = 0) -> OverTime:
    """Every period in order, with p-values adjusted for their number, and the most likely point of change.

    Parameters
    ----------
    data : Binary or Forecast
        A table of all rows goes with a table per period.
    time : array-like, or mapping of periods, in order, to tables
        Dates, texts of dates, or numbers. Many are put into longer periods.
    column : str

    Notes
    -----
    The test of a change asks whether one logistic recalibration, the same at all times, explains the periods: a model
    that is always off by the same amount has not changed. See `change_point`.
    """
    totals: EventTotals | SpreadTotals | None
    if isinstance(time, Mapping):
        names, left_out = [str(name) for name in time], 0
        totals = _totals_of_tables(list(time.values()), seed)
    else:
        if isinstance(data, BinTable):
            message = "A table has no rows to put in order; give one table per period."
            raise CannotBuild(message)
        data.require_same_rows(time=time)
        found = periods(time, name=column, length=len(data))
        names, index = found.names, found.index
        left_out = int(np.count_nonzero(index < 0))
        if left_out:
            data, index = data.take(index >= 0), index[index >= 0]
        totals = None if len(names) < 2 else _totals_of_rows(data, index, len(names), seed)
    if totals is None or len(names) < 2:
        message = f"{column} has fewer than two periods."
        raise CannotBuild(message)
    adjusted = holm(totals.p_values.tolist())
    rows = tuple(
        Period(name, *totals.numbers(k), totals.ratio(k, k + 1), totals.null(k), p, p < ALPHA)
        for k, (name, p) in enumerate(zip(names, adjusted, strict=True))
    )
    words = f"{left_out:,} rows have no {column} and are left out." if left_out else ""
    return OverTime(column, rows, _change(totals, len(names)), words)


def _change(totals: EventTotals | SpreadTotals, size: int) -> Change | None:
    residuals = totals.residuals()
    found = None if residuals is None else change_point(residuals)
    if found is None:
        return None
    before, after = totals.ratio(0, found.first), totals.ratio(found.first, size)
    return Change(found.first, before, after, found.p_value, found.p_value < ALPHA)


def _totals_of_tables(tables: list[BinTable], seed: int) -> EventTotals | SpreadTotals:
    if tables and isinstance(tables[0].task, Spread):
        return SpreadTotals.of_tables(tables, seed)
    return EventTotals.of_tables([table.filled() for table in tables], seed)


def _totals_of_rows(data: Predictions, index: Any, size: int, seed: int) -> EventTotals | SpreadTotals:
    if isinstance(data, Forecast):
        return SpreadTotals.of_rows(data, index, size, seed)
    return EventTotals.of_rows(events_of(data), index, size, seed)
