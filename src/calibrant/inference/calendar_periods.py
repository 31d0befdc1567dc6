"""Times as periods in order: days, weeks, months, quarters or years; numbers by value or in steps; texts in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.groups import group_names
from calibrant.data.validation import one_dimension, read

#: More periods than these become longer ones, unless the user asks for another number.
#: Test: tests/inference/test_calendar_periods.py::test_the_shortest_periods_of_which_there_are_few.
MOST = 40
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Steps of numbers: round ones, so that periods have short names.
#: Derived: the usual 1-2-5 series, by which no step is more than 2.5 times the one before.
_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, eq=False)
class Periods:
    """Names of the periods in order of time, and the period of each row: -1 where its time is missing."""

    names: list[str]
    index: NDArray[np.intp]


def periods_of(values: Any, *, name: str, length: int, most: int = MOST) -> Periods:
    """Dates and texts of dates as days, weeks, months, quarters or years; numbers by value or in equal steps.

    The shortest of which there are at most `most`. Other texts are in alphabetical order, joined where they are too
    many.
    """
    array, known = times_of(values, name=name, length=length)
    if array.dtype.kind == "f":
        known &= np.isfinite(array)
    if not known.any():
        return Periods([], np.full(length, -1, dtype=np.intp))
    dates = _dates(array[known])
    if dates is not None:
        names, inverse = _calendar(dates, most)
    elif array.dtype.kind in "iuf":
        names, inverse = _numbers(array[known].astype(np.float64), most)
    else:
        labels, inverse = group_names(array[known])
        names = [str(label) for label in labels]
        names, inverse = (names, inverse) if len(names) <= most else _joined(names, inverse, most)
    index = np.full(length, -1, dtype=np.intp)
    index[known] = inverse
    return Periods(names, index)


def times_of(values: Any, *, name: str, length: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The times of the rows, and whether each is there."""
    array, missing = read(name, values)
    return one_dimension(name, array, length), np.ones(length, bool) if missing is None else ~missing.reshape(-1)


def _dates(values: NDArray[Any]) -> NDArray[np.datetime64] | None:
    """Times in seconds; None where the values are no dates."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    if values.dtype.kind not in "OU" or all(isinstance(value, int | float) for value in values[:1]):
        return None
    distinct, inverse = np.unique([str(value) for value in values], return_inverse=True)
    if not all(text[:4].isdigit() and len(text) >= 7 and text[4] == "-" for text in distinct):
        return None
    try:
        return np.array([text[:19] for text in distinct], dtype="datetime64[s]")[inverse]
    except ValueError:
        return None


def _calendar(times: NDArray[np.datetime64], most: int) -> tuple[list[str], NDArray[np.intp]]:
    days = times.astype("datetime64[D]")
    months = times.astype("datetime64[M]").astype(np.int64)
    weeks = (days.astype(np.int64) + 3) // 7  # weeks start on Mondays; 1970 began on a Thursday
    choices: tuple[tuple[NDArray[np.int64], Callable[[int], str]], ...] = (
        (days.astype(np.int64), lambda k: str(np.datetime64(int(k), "D"))),
        (weeks, lambda k: f"week of {np.datetime64(int(7 * k - 3), 'D')}"),
        (months, lambda k: f"{_MONTHS[k % 12]} {1970 + k // 12}"),
        (months // 3, lambda k: f"Q{k % 4 + 1} {1970 + k // 4}"),
        (months // 12, lambda k: f"{1970 + k}"),
    )
    whole = months.min() < months.max() and bool(np.all(times == times.astype("datetime64[M]")))  # "2026-06" is June
    for number, shown in choices[2 if whole else 0 :]:
        distinct, inverse = np.unique(number, return_inverse=True)
        if len(distinct) <= most:
            return [shown(k) for k in distinct.tolist()], inverse
    return _joined([f"{1970 + k}" for k in distinct.tolist()], inverse, most)


def _numbers(values: NDArray[np.float64], most: int) -> tuple[list[str], NDArray[np.intp]]:
    distinct, inverse = np.unique(values, return_inverse=True)
    if len(distinct) <= most:
        return [f"{value:g}" for value in distinct.tolist()], inverse
    wanted = float(distinct[-1] - distinct[0]) / (most / 2)
    unit = 10.0 ** np.floor(np.log10(wanted))
    step = next(unit * factor for factor in _STEPS if unit * factor >= wanted * (1 - 1e-9))
    ranges, inverse = np.unique(np.floor(values / step), return_inverse=True)
    return [f"{k * step:g} to {(k + 1) * step:g}" for k in ranges.tolist()], inverse


def _joined(names: list[str], index: NDArray[np.intp], most: int) -> tuple[list[str], NDArray[np.intp]]:
    """Neighbouring periods joined, as many to each."""
    size = -(-len(names) // most)
    parts = [names[start : start + size] for start in range(0, len(names), size)]
    return [part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts], index // size
