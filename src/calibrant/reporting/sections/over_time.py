"""The section on time: periods, a change, and the rows since then, as a condition in SQL and in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.array_likes import read
from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.inference.changes_over_time import EventTotals, SpreadTotals, change_point, periods
from calibrant.inference.multiplicity import holm
from calibrant.reporting.contents import CannotBuild, Change, OverTime, Period
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread


@dataclass(frozen=True)
class Since:
    r"""Times from `first` on, of a column; of what type the times are, `first` shows.

    Examples
    --------
    >>> Since("paid at", np.datetime64("2025-09-01")).condition
    '"paid at" >= \'2025-09-01\''
    >>> Since("week", 34.0).condition, Since("week", 34.0).code
    ('week >= 34', 'time >= 34')
    """

    column: str
    first: Any

    @property
    def condition(self) -> str:
        """In SQL; a column whose name is more than one word is quoted, an expression is taken as it is."""
        named = re.fullmatch(r"\w+", self.column) or re.search(r"[()+*/'\"]", self.column)
        column = self.column if named else f'"{self.column}"'
        shown = self._shown
        return f"{column} >= {shown}" if self._is_number else f"{column} >= '{shown.replace(chr(39), chr(39) * 2)}'"

    @property
    def code(self) -> str:
        """In Python, for an array of times."""
        if self._is_number:
            return f"time >= {self._shown}"
        if isinstance(self.first, np.datetime64):
            return f'time >= np.datetime64("{self._shown}")'
        return f"time >= {self._shown!r}"

    @property
    def _is_number(self) -> bool:
        return isinstance(self.first, int | float | np.integer | np.floating)

    @property
    def _shown(self) -> str:
        if self._is_number:
            return f"{self.first:.15g}"
        if isinstance(self.first, np.datetime64):
            day = self.first.astype("datetime64[D]")
            return str(day if day == self.first else self.first.astype("datetime64[us]").item())
        return str(self.first)


def since(column: str, values: Any, first: int) -> Since:
    """The earliest time of the rows from the period with index `first` on.

    >>> since("day", ["2025-01-31", "2025-02-01", None, "2025-02-28"], 1).first
    '2025-02-01'
    """
    if isinstance(values, Mapping):
        names = list(values)
        return Since(column or "time", float(names[first]) if all(map(_is_number, names)) else names[first])
    array, _ = read(values)
    later: NDArray[Any] = array[periods(values, name="time", length=len(array)).index >= first]
    earliest = later.min() if later.dtype.kind in "iufM" else min(map(str, later.tolist()))
    return Since(column or "time", earliest)


def _is_number(name: Any) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", str(name)) is not None


def events_of(data: Predictions) -> Binary:
    """Rows with events; of several classes, that the predicted class is right."""
    if isinstance(data, Binary):
        return data
    if isinstance(data, Multiclass):
        return data.top_label()
    message = f"{type(data).__name__} has no events."
    raise CannotBuild(message)


ALPHA = 0.05


def over_time_section(data: Predictions | BinTable, time: Any, *, column: str, seed: int = 0) -> OverTime:
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
