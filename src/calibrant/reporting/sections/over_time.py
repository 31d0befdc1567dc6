"""The section on time: periods, a change, and the rows since then, as a condition in SQL and in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.data.validation import read
from calibrant.inference.calendar_periods import periods_of
from calibrant.inference.changes_over_time import over_time
from calibrant.reporting.contents import Change, OverTime, Period
from calibrant.reporting.verdicts.evidence import ALPHA
from calibrant.table.bintable import BinTable


@dataclass(frozen=True)
class Since:
    """Times from `first` on, of a column; of what type the times are, `first` shows."""

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
    array, _ = read("time", values)
    later: NDArray[Any] = array[periods_of(values, name="time", length=len(array)).index >= first]
    earliest = later.min() if later.dtype.kind in "iufM" else min(map(str, later.tolist()))
    return Since(column or "time", earliest)


def _is_number(name: Any) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", str(name)) is not None


def over_time_section(data: Predictions | BinTable, time: Any, *, column: str) -> OverTime:
    """Every period in order, and the most likely point of change, from `calibrant.over_time`."""
    found = over_time(data, time)
    rows = tuple(
        Period(one.name, one.n, one.observed, one.expected, one.ratio, one.null, one.p_value, one.p_value < ALPHA)
        for one in found
    )
    at = found.change
    change = None if at is None else Change(at.first, at.before, at.after, at.p_value, at.p_value < ALPHA)
    words = f"{found.left_out:,} rows have no {column} and are left out." if found.left_out else ""
    return OverTime(column, rows, change, words)
