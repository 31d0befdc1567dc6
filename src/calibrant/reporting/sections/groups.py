"""Groups of rows: observed and expected events, error, direction, and a p-value adjusted for all groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast, Quantiles, Samples
from calibrant.data.groups import are_numbers, group_texts
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions, fail, read
from calibrant.estimators.binned import debiased_ece
from calibrant.estimators.regression_coverage import coverage
from calibrant.estimators.regression_spread import ence, scale_factor
from calibrant.estimators.validation_study import calibration_slope, observed_expected
from calibrant.inference.changes_over_time import over_time
from calibrant.inference.group_tests import adjusted_of_tables, adjusted_p_values, confirmed, spread_p_value
from calibrant.inference.groupings import Grouping, groupings, periods_of
from calibrant.inference.groups import by_group
from calibrant.inference.intervals import interval
from calibrant.inference.inversion.binary import Inversion
from calibrant.inference.multiplicity import holm
from calibrant.numerics.arrays import Floats
from calibrant.reporting.contents import IMPOSSIBLE, CannotBuild, Change, Direction, GroupRow, Groups, OverTime, Period
from calibrant.reporting.evidence import ForecastPart, headline_error, widest_interval
from calibrant.reporting.verdicts.evidence import ALPHA
from calibrant.results.estimate import Value
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable, number_of_rows
from calibrant.table.task import Spread

#: Groups with an interval of the error: those with the most evidence, then the largest.
#: Test: tests/reporting/sections/test_task_sections.py::test_many_classes_show_twenty.
WITH_INTERVAL = 20
#: Simulated samples behind each of these intervals.
#: Test: tests/reporting/sections/test_groups.py::test_intervals_of_groups_take_few_draws.
DRAWS = 99
#: With fewer events, or non-events, a group that is not flagged cannot be judged.
#: Test: tests/reporting/sections/test_groups.py::test_ten_events_are_enough_to_judge_a_group.
FEWEST_EVENTS = 10
#: Numbered groups that stand in their order; of more, flagged ones come first, so that they are seen.
#: Test: tests/reporting/sections/test_groups.py::test_thirty_numbered_groups_keep_their_order.
IN_ORDER = 30
#: Groups that a sentence names.
#: Test: tests/reporting/sections/test_groups.py::test_eight_groups_that_were_not_tested_are_named.
_NAMED = 8


def group_section(data: Predictions | BinTable, by: Any, *, column: str, after: Predictions | None = None) -> Groups:
    """Every group of one column, or of a cross of several (`by` is a grouping, columns, or a table per group).

    `after` are the same rows with recalibrated predictions, of maps that were not fitted on them: flagged groups are
    tested again on these.
    """
    if isinstance(by, Mapping) and any(isinstance(part, BinTable) for part in by.values()):
        names, parts = group_texts(by), list(by.values())
        spread = isinstance(parts[0].task, Spread)
        p_values = np.array(holm(list(map(spread_p_value, parts)))) if spread else adjusted_of_tables(parts)
        still = grouping = None
    else:
        if isinstance(data, BinTable):
            message = "A table has no rows to group; give one table per group, e.g. from scale.bin_tables(..., by=...)."
            raise CannotBuild(message)
        grouping = _one_grouping(data, by)
        if isinstance(data, Quantiles | Samples) and data.group is None and len(grouping.names) > 1:
            return Groups(column, _coverage_rows(data, grouping, texts(grouping)))
        names, parts = texts(grouping), [_table(data, rows) for rows in grouping.rows()]
        p_values = adjusted_p_values(data, grouping)
        still = None if after is None else _still_flagged(after, grouping, p_values)
    if len(parts) < 2:
        fail(f"All rows are in one group of {column}.", CannotBuild)
    made = _rows(names, parts, p_values, still)
    in_order = grouping.ordered if grouping is not None else are_numbers(names)
    if not in_order:
        made = sorted(made, key=from_too_high_to_too_low)
    elif len(made) > IN_ORDER:
        made = sorted(made, key=lambda row: not row.flagged)
    return Groups(column, tuple(made), _untested(names, p_values))


def confirmed_section(data: Predictions, found: Sequence[Grouping]) -> Groups:
    """The groups with the most evidence on one half of the rows, as the other half shows them.

    See `by_group` with `confirm=True`: p-values are adjusted for the groups that were chosen, and every number is of
    rows that had no part in choosing them.
    """
    other, again = confirmed(data, found, None, WITH_INTERVAL)
    names = group_texts(_with_columns(one.grouping.column, one.grouping.names[one.number]) for one in again)
    parts = [_table(other, one.grouping.rows()[one.number]) for one in again]
    made = _rows(names, parts, np.array([one.adjusted for one in again]), None)
    words = (
        f"Of {sum(len(one.names) for one in found):,} groups, the {len(made)} with the most evidence on one half of "
        "the rows; every number is of the other half."
    )
    return Groups("group", tuple(sorted(made, key=from_too_high_to_too_low)), search=words)


def _coverage_rows(data: Quantiles | Samples, grouping: Grouping, names: list[str]) -> tuple[GroupRow, ...]:
    """Groups of quantiles or draws in their order: what the widest central interval up to 90 % holds in each.

    The intervals are for all groups together: they exclude the nominal coverage only where the adjusted p-value is
    below 0.05.
    """
    keys = [str(k) for k in range(len(names))] if grouping.ordered else names
    by = grouping.index if grouping.ordered else np.asarray(names)[grouping.index]
    held = partial(coverage, nominal=widest_interval(data))
    found = {str(one.group): one for one in by_group(held, data, by=by).rows}
    made = []
    for key, name in zip(keys, names, strict=True):
        one = found[key]
        direction: Direction = (one.direction or "mixed") if one.adjusted < ALPHA else "not flagged"
        ideal = float(one.estimate.details["null"]["mean"])
        made.append(
            GroupRow(
                name, one.n, Value.of(one.estimate), Value(float("nan")), direction, one.adjusted, one.adjusted < ALPHA,
                judged=one.tested, ideal=ideal,
            )
        )  # fmt: skip
    return tuple(made)


def _still_flagged(after: Predictions, grouping: Grouping, p_values: Floats) -> NDArray[np.bool_]:
    """Which of the flagged groups are flagged after recalibration too; only these are tested again."""
    flagged, still = np.flatnonzero(p_values < ALPHA), np.zeros(len(p_values), dtype=bool)
    if len(flagged):
        rows = np.flatnonzero(np.isin(grouping.index, flagged))
        still[flagged] = adjusted_p_values(after.take(rows), grouping.take(rows)) < ALPHA
    return still


def _one_grouping(data: Predictions, by: Any) -> Grouping:
    """The groups of one column, or of all columns crossed."""
    if isinstance(by, Grouping):
        return by
    columns = groupings(by, length=len(data), check=data.require_same_rows)
    return columns[0] if len(columns) == 1 else groupings(by, length=len(data), depth=len(columns))[-1]


def texts(grouping: Grouping) -> list[str]:
    """The names of the groups."""
    return group_texts(_in_words(name) if isinstance(name, tuple) else name for name in grouping.names)


def _with_columns(column: str, name: Any) -> str:
    """A group with the column of each part: "country = BR × channel = app"."""
    pairs = list(zip(column.split(" x "), _in_words(name).split(" × "), strict=False))
    told = " × ".join(f"{one} = {part}" for one, part in pairs)
    return told if column and len(pairs) == column.count(" x ") + 1 else f"{column} {_in_words(name)}".strip()


def _in_words(name: Any) -> str:
    """A group; one of crossed columns by all its parts."""
    return " × ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _table(data: Any, rows: NDArray[np.intp]) -> Any:
    """One group: rows with their clusters, a forecast, or the exact table of independent rows of one event."""
    some = data.take(rows)
    some = some.top_label() if isinstance(some, Multiclass) else some
    return BinTable.of(some, Distinct()).filled() if isinstance(some, Binary) and some.group is None else some


def _rows(names: list[str], parts: list[Any], p_values: Floats, still: NDArray[np.bool_] | None) -> list[GroupRow]:
    size = np.array([number_of_rows(part) for part in parts], dtype=np.float64)
    tested = np.nan_to_num(p_values, nan=1.0)
    chosen = set(np.lexsort((-size, np.where(tested < ALPHA, tested, 1.0)))[:WITH_INTERVAL].tolist())
    found = []
    for k, (name, part) in enumerate(zip(names, parts, strict=True)):
        spread = isinstance(part, Forecast) or (isinstance(part, BinTable) and isinstance(part.task, Spread))
        make = _spread_row if spread else event_row
        row = make(name, part, float(size[k]), float(p_values[k]), with_interval=k in chosen)
        again = None if still is None or not row.flagged else bool(still[k])
        found.append(replace(row, flagged_after=again))
    return found


def event_row(name: str, part: Any, n: float, p_value: float, *, with_interval: bool) -> GroupRow:
    """A group of rows with events."""
    cells = part if isinstance(part, BinTable) else BinTable.of(part, Distinct()).filled()
    rate, mean = (float(column.sum()) / cells.total for column in (cells.observed, cells.predicted))
    flagged = p_value < ALPHA
    error = Value(max(float(debiased_ece(cells, norm=1)), 0.0))  # cheap, and without an interval
    if with_interval:
        error = Value.of(interval(headline_error, part, method=Inversion(draws=DRAWS)), 0.0)
    ratio = value_with_interval(observed_expected, part) if mean > 0 else Value(np.inf if rate > 0 else np.nan)
    slope = value_with_interval(calibration_slope, part) if flagged and not ratio.excludes(1.0) else None
    return GroupRow(
        name=name,
        n=n,
        ratio=ratio,
        error=error,
        direction=direction(ratio, slope) if flagged else "not flagged",
        p_value=p_value,
        flagged=flagged,
        judged=flagged or (not np.isnan(p_value) and n * min(rate, 1 - rate) >= FEWEST_EVENTS),
        observed=n * rate,
        expected=n * mean,
        slope=slope,
    )


def enough_events(row: GroupRow) -> bool:
    """Whether a group that is not flagged can be judged: it has ten events and as many others."""
    return row.observed is None or min(row.observed, row.n - row.observed) >= FEWEST_EVENTS


def direction(ratio: Value, slope: Value | None) -> Direction:
    """The first that applies: the total is too high or low, the slope too extreme or moderate, or mixed."""
    if ratio.excludes(1.0):
        return "too high" if ratio.value < 1 else "too low"
    if slope is not None and slope.excludes(1.0):
        return "too extreme" if slope.value < 1 else "too moderate"
    return "mixed"


def _spread_row(name: str, part: Any, n: float, p_value: float, *, with_interval: bool) -> GroupRow:
    """A group of forecasts: `ratio` is errors over predicted spread, `error` the ENCE."""
    flagged, ratio = p_value < ALPHA, value_with_interval(scale_factor, part)
    return GroupRow(
        name=name,
        n=n,
        ratio=ratio,
        error=Value(_estimate(ence, part)),
        direction=spread_direction(ratio, _bias(part)) if flagged else "not flagged",
        p_value=p_value,
        flagged=flagged,
        judged=not np.isnan(p_value),
    )


def _bias(part: Any) -> Value | None:
    """The mean of z, where forecasts have one."""
    try:
        return Value.of(ForecastPart(part).bias)
    except IMPOSSIBLE:
        return None


def spread_direction(ratio: Value, shift: Value | None) -> Direction:
    """The side of the mean of z where it explains most of the excess of its square, or there is no other fault."""
    biased = shift is not None and shift.excludes(0.0)
    if shift is not None and biased and (not ratio.excludes(1.0) or 2 * shift.value**2 >= ratio.value**2 - 1 >= 0):
        return "too low" if shift.value > 0 else "too high"
    if ratio.excludes(1.0):
        return "too narrow" if ratio.value > 1 else "too wide"
    return "mixed"


def value_with_interval(estimator: Any, part: Any) -> Value:
    """An estimate with its interval, or alone where the data give none (as of too few clusters)."""
    try:
        return Value.of(interval(estimator, part))
    except (InvalidPredictions, ValueError):
        return Value(_estimate(estimator, part))


def _estimate(estimator: Any, part: Any) -> float:
    try:
        return float(estimator(part))
    except (InvalidPredictions, ValueError):
        return float("nan")


def from_too_high_to_too_low(row: GroupRow) -> tuple[bool, float, str]:
    """By the ratio, what has none last."""
    return bool(np.isnan(row.ratio.value)), row.ratio.value, row.name


def _untested(names: list[str], p_values: Floats) -> str:
    left_out = [name for name, p in zip(names, p_values.tolist(), strict=True) if np.isnan(p)]
    if not left_out:
        return ""
    more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
    return f"Not tested, because too few independent rows belong to them: {', '.join(left_out[:_NAMED])}{more}."


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
    rows = tuple(Period(**vars(one), flagged=one.p_value < ALPHA) for one in found)
    at = found.change
    change = None if at is None else Change(**vars(at), significant=at.p_value < ALPHA)
    words = f"{found.left_out:,} rows have no {column} and are left out." if found.left_out else ""
    return OverTime(column, rows, change, words)
