"""What rows are grouped by: columns, each by itself and crossed with others, and times as periods of the calendar."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.groups import are_numbers, group_names, missing_name, quantile_groups
from calibrant.data.validation import fail, one_dimension, read, require_same_index

#: Up to this many combinations of groups have a place in a table; of more, those that occur are searched for.
#: Speed: the table has 8 MB, and a lookup costs less than a sort; no result depends on it.
_MOST_COMBINATIONS = 1_000_000


@dataclass(frozen=True, eq=False)
class Grouping:
    """One way to divide the rows: the name of its column ("" if it has none), the groups, and the group of each row.

    `parts` are the numbers of each row's group in each column that is crossed, `combinations` the group of each
    combination of them (-1 if it does not occur; None for one column). `ordered`: the groups are numbers or ranges of
    them.
    """

    column: str
    names: Sequence[Hashable]
    parts: tuple[NDArray[np.intp], ...]
    combinations: NDArray[np.intp] | None = None
    ordered: bool = False

    @property
    def index(self) -> NDArray[np.intp]:
        """The number of each row's group."""
        return self.parts[0] if self.combinations is None else self.combinations[self.parts]

    def rows(self) -> list[NDArray[np.intp]]:
        """The numbers of the rows of each group."""
        index = self.index
        order = np.argsort(index, kind="stable")
        return np.split(order, np.cumsum(np.bincount(index, minlength=len(self.names)))[:-1])

    def require_all(self, weighted: NDArray[np.bool_]) -> None:
        """Refuse a group whose rows all have weight 0."""
        if not weighted.all():
            name = self.names[int(np.argmin(weighted))]
            fail(f"All rows of group {name!r} have weight 0, so nothing is known about it; leave them out.")

    def take(self, rows: NDArray[np.intp]) -> Grouping:
        """The same for some of the rows; groups without rows are left out."""
        kept, index = np.unique(self.index[rows], return_inverse=True)
        return Grouping(self.column, [self.names[k] for k in kept], (index.reshape(-1),), ordered=self.ordered)


def groupings(
    by: Any, *, length: int, depth: int = 1, quantiles: int | None = None, check: Callable[..., None] | None = None
) -> list[Grouping]:
    """The groupings of an array, of a list, mapping or frame of columns, and of all crosses of up to `depth` of them.

    Numbers with more distinct values are divided at `quantiles`; `check` is called with each column under its name.
    """
    columns = _columns(by, length)
    if check is not None:
        for name, values in columns:
            check(**{name or "by": values})
    require_same_index((name or "by", values) for name, values in columns)
    if not columns:
        fail("by has no columns.")
    found = []
    for name, values in columns:
        shown = "by" if name == "" else f"by[{name!r}]"
        ranges = None if quantiles is None else quantile_groups(values, quantiles, name=shown, length=length)
        names, index = ranges or group_names(values, name=shown, length=length)
        ordered = ranges is not None or are_numbers(names)
        found.append(Grouping(name, names, (index,), ordered=ordered and missing_name(names[:-1]) != names[-1]))
    crosses = [_crossed(some) for size in range(2, depth + 1) for some in combinations(found, size)]
    return [*found, *crosses]


def _columns(by: Any, length: int) -> list[tuple[str, Any]]:
    if isinstance(by, Mapping):
        return [(str(name), values) for name, values in by.items()]
    if hasattr(by, "__len__") and hasattr(by, "columns"):  # not lazy frames, whose columns cost a query
        keys = list(getattr(by, "column_names", by.columns))  # of pandas, Polars or PyArrow
        names = [str(key) for key in keys]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            fail(f"by has several columns named {repeated[0]!r}; their names must differ.")
        return [(name, by[key]) for name, key in zip(names, keys, strict=True)]
    if isinstance(by, list | tuple) and by and all(_is_column(part, length) for part in by):
        return [(str(getattr(part, "name", None) or f"by[{k}]"), part) for k, part in enumerate(by)]
    if isinstance(by, np.ndarray) and by.ndim == 2 and by.shape[1] > 1:
        return [(f"by[:, {k}]", by[:, k]) for k in range(by.shape[1])]
    return [(str(getattr(by, "name", None) or ""), by)]


def _is_column(part: Any, length: int) -> bool:
    return not isinstance(part, str | bytes) and hasattr(part, "__len__") and np.ndim(part) == 1 and len(part) == length


def _crossed(found: Sequence[Grouping]) -> Grouping:
    """One grouping whose names are tuples: the combinations that occur."""
    column = " x ".join(one.column for one in found)
    parts, shape = tuple(one.index for one in found), tuple(len(one.names) for one in found)
    if np.prod(shape, dtype=np.float64) <= _MOST_COMBINATIONS:
        occurs = np.bincount(np.ravel_multi_index(parts, shape), minlength=int(np.prod(shape))) > 0
        numbers = np.where(occurs, np.cumsum(occurs) - 1, -1).reshape(shape)
        lines = np.argwhere(occurs.reshape(shape))
    else:
        lines, index = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)
        parts, numbers = (index.reshape(-1),), None
    names = [tuple(one.names[k] for one, k in zip(found, line, strict=True)) for line in lines.tolist()]
    return Grouping(column, names, parts, numbers)


@dataclass(frozen=True, eq=False)
class GroupEvidence:
    """One group of one grouping with its test and p-values: by itself, adjusted, and adjusted where it was found."""

    grouping: Grouping
    number: int
    method: str
    statistic: float
    p_value: float
    adjusted: float
    found: float | None = None
    of_cells: Any = None
    """Coverage by group, where that was tested."""


#: More periods than these become longer ones, unless the user asks for another number.
#: Test: tests/inference/test_groupings_calendar_periods.py::test_the_shortest_periods_of_which_there_are_few.
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
