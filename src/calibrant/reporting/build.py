"""One function from predictions to a report, whatever the task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.judged import Judged
from calibrant.data.predictions import Column, Columns, Confidence, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.inference.groupings import Grouping, groupings
from calibrant.reporting.contents import Options
from calibrant.reporting.model import Report
from calibrant.results.target import takes_columns
from calibrant.table.bintable import BinTable, Data
from calibrant.table.task import Spread, Unlabeled, task_of


@takes_columns
def report(
    data: Data = None,
    y_prob: Column = None,
    *,
    by: Any = None,
    depth: int = 2,
    quantiles: int | None = None,
    confirm: bool = False,
    time: Any = None,
    threshold: float | None = None,
    tolerance: float | None = None,
    model: str | None = None,
    event: str | None = None,
    row: str | None = None,
    title: str | None = None,
    source: str | None = None,
    audit: Any = None,
    seed: int = 0,
    **columns: Unpack[Columns],
) -> Report:
    """Calibration report of `data`: a verdict, how sure it is, what it means and what to do, and everything behind it.

    Sections that the data do not allow are left out, and `Report.contents.omitted` says why. If the test itself cannot
    be computed, the verdict is "cannot be judged", with the reason; this includes forecasts with fewer than 12
    effective clusters.

    Holm's method adjusts the tests of all rows, of every grouping and of a change over time for each other, to call a
    calibrated model miscalibrated in at most 5 % of reports. The p-value of the test of all rows is shown unadjusted.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
        Multiclass data are tested and recalibrated as whole vectors. A table gives the same report from any number of
        rows. For `Judged` answers it uses the gold labels and the judge, and says what to label next. With plain
        arrays, `y_prob` comes next.
    by : array-like, or a mapping, list or frame of several, optional
        The group of each row. Every group is tested, with p-values adjusted for their number. Each column is a separate
        grouping. Numeric groups are shown in order, others from too high to too low. For a table: a table per group.
    depth, quantiles, confirm
        As for `by_group`: search crosses of up to `depth` columns, divide numbers into `quantiles` ranges, and find
        groups on one half of the rows to test them on the other. The 20 groups with the most evidence are shown.
    time : array-like, optional
        The time of each row: dates, numbers or sortable names of periods. Adds observed and expected events over time
        and a test for a change. For a table: a table per period.
    threshold : float in (0, 1), optional
        The score at which decisions are made; the rows at or above it are examined.
    tolerance : float in (0, 1), optional
        The largest acceptable error, as a probability; replaces limits relative to the base rate.
    model, source : str, optional
        Names shown in the report.
    event, row : str, optional
        What one event and one row are called, in the singular: "fraud", "payment".
    title : str, optional
    audit : data frame, mapping of columns, or array, optional
        Features of the rows, for the section "Where, for whom": see `audit`. Its error rate is separate.
    seed : int
        Seed of folds and resampling.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.report(cal.Binary(rng.random(2000) < 0.5 + 0.6 * (p - 0.5), p), title="Demo")
    >>> print(found.verdict.sentence)
    Predicted probabilities are too extreme: high ones too high, low ones too low, by ... points on average ...
    >>> found.verdict.severity, found.recalibration.maps[0].name
    ('problem', 'Quadratic scaling')
    """
    validation.seed(seed)
    given: Any = data if isinstance(data, BinTable) else binary(data, y_prob)
    if confirm and isinstance(given, BinTable):
        fail("A table has no rows to divide into halves: leave out confirm.")
    validation.require_same_index([("by", by), ("time", time)])
    options = Options(
        title="Calibration report" if title is None else title,
        by=() if by is None else _columns(given, by, depth, quantiles),
        confirm=confirm and by is not None,
        time=None if time is None else _time(given, time),
        threshold=None if threshold is None else validation.fraction("threshold", threshold),
        tolerance=None if tolerance is None else validation.fraction("tolerance", tolerance),
        model=model,
        event=event,
        row=row,
        source=source,
        audit=audit,
        seed=seed,
        rows="data" if y_prob is None else _as_given(data, y_prob),
    )
    return _built(given, options)


def _as_given(y_true: Any, y_prob: Any) -> str:
    """Two arrays as their user may have them: p, y, or columns of a frame by their names."""
    names = [getattr(one, "name", None) for one in (y_prob, y_true)]
    if not all(isinstance(name, str) and name and ", " not in name for name in names):
        return "p, y"
    return ", ".join(f"df[{json.dumps(name, ensure_ascii=False)}]" for name in names)


def _built(data: Any, options: Options) -> Report:
    """The report of the task that the data are of."""
    from calibrant.reporting import task_reports as tasks

    task = None if isinstance(data, Judged) else task_of(data)
    if isinstance(data, Multiclass):
        return tasks.built(tasks.MulticlassReport(data, options))
    if isinstance(data, Judged):
        from calibrant.reporting.judged_reports import JudgedReport

        return tasks.built(JudgedReport(data, options))
    if isinstance(task, Unlabeled):
        return tasks.built(tasks.UnlabeledReport(data, options))
    if isinstance(task, Spread) or isinstance(data, Forecast):
        return tasks.built(tasks.ForecastReport(data, options))
    kind = tasks.ConfidenceReport if isinstance(data, Confidence) else tasks.BinaryReport
    return tasks.built(kind(data, options))


def _columns(data: Any, by: Any, depth: int, quantiles: int | None) -> tuple[tuple[str, Any], ...]:
    """The columns of groups, checked against the rows, and their crosses."""
    validation.whole("depth", depth, minimum=1)
    if quantiles is not None:
        validation.whole("quantiles", quantiles, minimum=2)
    if isinstance(by, Mapping) and any(isinstance(part, BinTable) for part in by.values()):
        return _tables(data, by)
    if isinstance(data, BinTable):
        fail("A table has no rows to group; give one table per group, e.g. from scale.bin_tables(..., by=...).")
    found = groupings(by, length=len(data), depth=depth, quantiles=quantiles, check=data.require_same_rows)
    return tuple(map(_in_words, found))


def _in_words(grouping: Grouping) -> tuple[str, Grouping]:
    """The name of the column, and the grouping with combinations as text."""
    names = [" × ".join(map(str, name)) if isinstance(name, tuple) else name for name in grouping.names]
    column = grouping.column.replace(" x ", " × ") if len(grouping.parts) > 1 else grouping.column
    return column, replace(grouping, names=names)


def _tables(data: Any, by: Mapping[Any, Any]) -> tuple[tuple[str, Any], ...]:
    """Tables per group; names such as "country = DK" say of which column."""
    if not isinstance(data, BinTable):
        fail("A table per group goes with a table of all rows; for rows, give the group of each as by=.", TypeError)
    if not all(isinstance(name, str) and " = " in name for name in by):
        return (("", by),)
    columns: dict[str, dict[str, BinTable]] = {}
    for name, table in by.items():
        column, _, group = name.partition(" = ")
        columns.setdefault(column, {})[group] = table
    return tuple(columns.items())


def _time(data: Any, time: Any) -> tuple[str, Any]:
    """The name of the column of times, and its values, checked against the rows."""
    name = str(getattr(time, "name", None) or "")
    tables = isinstance(time, Mapping) and any(isinstance(part, BinTable | Predictions) for part in time.values())
    if isinstance(time, Mapping) and len(time) == 1 and not tables:
        ((name, time),) = time.items()
    if isinstance(time, Mapping):
        if not isinstance(data, BinTable):
            message = "A table per period goes with a table of all rows; for rows, give the time of each as time=."
            raise TypeError(message)
        return name, time
    if isinstance(data, BinTable):
        fail("A table has no rows to order by time; give one table per period as time={period: table}.")
    data.require_same_rows(time=time)
    if not hasattr(time, "__len__") or len(time) != len(data):
        fail(f"time must have one value per row, {len(data)}, got {len(time) if hasattr(time, '__len__') else time!r}.")
    return name, time
