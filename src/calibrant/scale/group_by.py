"""The one expression that every engine runs: filter, cell number, GROUP BY, sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import SUMS
from calibrant.scale import cell_expression as keys
from calibrant.scale.columns import (
    ColumnMeaning,
    Frame,
    OneVsRestColumns,
    RowExpressions,
    UnlabeledColumns,
    column_type,
    number,
    weight_checks,
)
from calibrant.table.binning import Distinct, Grid, LogGrid
from calibrant.table.bintable import BinTable, merge
from calibrant.table.task import Labelled, Spread
from calibrant.table.task import Task as TableTask
from calibrant.table.unlabeled import Unlabeled

#: Columns of ours, named so that no column of a user's is called alike.
CELL, SCORE, LOW, HIGH, ROWS = (f"_calibrant_{name}" for name in ("cell", "score", "low", "high", "rows"))
PREDICTED, OBSERVED, WEIGHT, MASS = (f"_calibrant_{name}" for name in ("predicted", "observed", "weight", "mass"))
VALID, REASON, SUM = "_calibrant_valid", "_calibrant_reason", "_calibrant_sum_"

Group = tuple[Any, ...]
"""The values of the columns in `Plan.keys`; empty where there are none."""

Tables = dict[Group, BinTable]


@dataclass(frozen=True)
class Plan:
    """What to collect: the columns and their meaning, the grid, and the columns that separate tables."""

    y_true: str
    y_prob: tuple[str, ...]
    weight: str | None
    keys: tuple[str, ...]
    task: ColumnMeaning
    grid: Grid

    @property
    def table_task(self) -> TableTask:
        """What the columns of the tables mean."""
        if isinstance(self.task, UnlabeledColumns):
            return Unlabeled(self.task.prior, self.task.label_frequency, self.task.nested)
        return Spread() if isinstance(self.grid, LogGrid) else Labelled()

    def rows(self, frame: Frame) -> RowExpressions:
        """The task's expressions on this frame, with the checks of the weight among them."""
        if isinstance(self.task, OneVsRestColumns):
            message = "OneVsRestColumns is collected class by class."
            raise TypeError(message)
        for name in self.keys:
            column_type(frame, name, "by or fold")
        rows = self.task.rows(frame, self.y_true, self.y_prob)
        if self.weight is None:
            return rows
        return replace(rows, checks=(*rows.checks, *weight_checks(frame, self.weight)))


def collected(frame: Frame, plan: Plan, *, counted: bool) -> Tables:
    """One table per group of `plan.keys`, its invalid rows counted by reason.

    Parameters
    ----------
    frame : narwhals LazyFrame
    counted : bool
        Whether counting rows is free (frames in memory, Parquet files). Then invalid rows are filtered out and
        counted by subtraction, which engines do fastest; otherwise they are given a null cell, in the same pass.
    """
    rows = plan.rows(frame)
    total = int(run(rows.frame.select(nw.len().alias(ROWS)))[ROWS].to_numpy()[0]) if counted else None
    raw = run(_sums(_prepared(rows, plan, keep_invalid=not counted), plan, [CELL]))
    known = ~raw[CELL].is_null().to_numpy().astype(bool)
    valid = raw.filter(known.tolist()) if not known.all() else raw
    tables = assembled(valid, plan)
    bad = (int(_numbers(valid, SUM + "count").sum()) != total) if counted else not known.all()
    return _with_invalid(tables, _reasons(rows, plan), plan) if bad else tables


def merged(parts: Sequence[Tables]) -> Tables:
    """The tables of several parts, group by group."""
    groups = dict.fromkeys(group for part in parts for group in part)
    return {group: merge([part[group] for part in parts if group in part]) for group in groups}


def refined(frame: Frame, plan: Plan, cells: NDArray[Any], *, counted: bool) -> Tables:
    """Tables of the rows in `cells` only, one entry per distinct score: the second pass of the exact mode."""
    wanted = (cells - keys.shift(plan.grid)).tolist()
    prepared = _prepared(plan.rows(frame), plan, keep_invalid=False).filter(nw.col(CELL).is_in(wanted))
    tables = assembled(run(_sums(prepared, plan, [CELL, SCORE])), plan)
    return {group: replace(table, cut=Distinct(), key=table.low) for group, table in tables.items()}


def run(frame: Frame) -> nw.DataFrame[Any]:
    """Execute. Polars is told to stream: its in-memory engine needs twenty times the memory."""
    if frame.implementation.is_polars():
        return frame.collect(engine="streaming")
    return frame.collect()


def _prepared(rows: RowExpressions, plan: Plan, *, keep_invalid: bool) -> Frame:
    """Valid rows with their cell and the columns to be summed; invalid ones, if kept, have a null cell."""
    valid = reduce(and_, (check.holds for check in rows.checks if not check.implied))
    frame = rows.frame if keep_invalid else rows.frame.filter(valid)
    predicted = rows.score if rows.predicted is None else rows.predicted
    columns = {SCORE: rows.score, PREDICTED: predicted.cast(nw.Float64), OBSERVED: rows.observed.cast(nw.Float64)}
    if plan.weight is not None:
        columns[WEIGHT] = number(frame, plan.weight, "weight").cast(nw.Float64)
    if rows.mass is not None:
        columns[MASS] = rows.mass
    if keep_invalid:
        columns[VALID] = valid
    columns[keys.RATIO] = keys.ratio(rows.score, plan.grid)
    groups = [nw.col(name).alias(_key(place)) for place, name in enumerate(plan.keys)]
    frame = frame.select(*groups, *(expression.alias(name) for name, expression in columns.items()))
    cell = keys.cell(nw.col(SCORE), plan.grid)
    if keep_invalid:
        cell = nw.when(nw.col(VALID)).then(cell)
    kept = [_key(place) for place in range(len(plan.keys))]
    sums = [expression.alias(SUM + name) for name, expression in _summands(rows, plan).items()]
    return frame.select(*kept, SCORE, cell.cast(keys.dtype(plan.grid)).alias(CELL), *sums)


def _summands(rows: RowExpressions, plan: Plan) -> dict[str, nw.Expr]:
    """What is added up for each of `SUMS`; the missing ones equal the count, the weight or the outcomes."""
    predicted, observed = nw.col(PREDICTED), nw.col(OBSERVED)
    first, second = predicted, observed
    summands: dict[str, nw.Expr] = {}
    if plan.weight is not None:
        weight = nw.col(WEIGHT)
        first, second = weight * predicted, weight * observed
        mass = weight if rows.mass is None else weight * nw.col(MASS)
        summands |= {"weight": mass, "weight_squares": mass * mass}
    elif rows.mass is not None:
        summands |= {"weight": nw.col(MASS)}
    summands |= {"predicted": first, "observed": second, "predicted_squares": first * predicted}
    if rows.mass is not None:  # what is observed is not what is weighed: see calibrant.numerics.rows.Rows
        summands |= {"product": second * nw.col(SCORE).cast(nw.Float64), "observed_squares": second * second}
        return summands | {"positives": observed} if getattr(plan.task, "nested", False) else summands
    summands |= {"product": first * observed}
    return summands if rows.zero_or_one else summands | {"observed_squares": second * observed}


def _sums(frame: Frame, plan: Plan, by: list[str]) -> Frame:
    groups = [_key(place) for place in range(len(plan.keys))]
    summed = [name for name in frame.collect_schema() if name.startswith(SUM)]
    return frame.group_by(*groups, *by).agg(
        nw.len().alias(SUM + "count"),
        nw.col(SCORE).min().alias(LOW),
        nw.col(SCORE).max().alias(HIGH),
        *(nw.col(name).sum() for name in summed),
    )


def assembled(raw: nw.DataFrame[Any], plan: Plan) -> Tables:
    """Tables from the rows an engine gave back, one row per group and cell."""
    groups = list(zip(*(raw[_key(place)].to_list() for place in range(len(plan.keys))), strict=True))
    found = {group: code for code, group in enumerate(dict.fromkeys(groups))} if plan.keys else {(): 0}
    code = np.array([found[group] for group in groups]) if plan.keys else np.zeros(len(raw), np.intp)
    cell, low, high = keys.numbers(raw[CELL].to_numpy(), plan.grid), _numbers(raw, LOW), _numbers(raw, HIGH)
    order = np.lexsort((low, cell, code))
    sums = {name: _numbers(raw, SUM + name) for name in SUMS if SUM + name in raw.columns}
    if SUM + "positives" in raw.columns:  # they are rows of both samples
        sums["count"] = sums["count"] + _numbers(raw, SUM + "positives")
    sums.setdefault("weight", sums["count"])
    sums.setdefault("weight_squares", sums["weight"])
    sums.setdefault("observed_squares", sums["observed"])
    stacked = np.stack([sums[name][order] for name in SUMS])
    _require_finite(sums, plan)
    if len(raw) == 0:
        return {}
    ends = np.searchsorted(code[order], np.arange(len(found)), side="right")
    parts = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    cell, low, high = cell[order], low[order], high[order]
    return {
        group: BinTable(
            plan.grid,
            cell[part],
            low[part],
            high[part],
            np.ascontiguousarray(stacked[:, part]),
            plan.table_task,
        )
        for group, part in zip(found, parts, strict=True)
        if part.stop > part.start
    }


def _require_finite(sums: dict[str, Floats], plan: Plan) -> None:
    if plan.weight is not None and not all(np.isfinite(sums[name]).all() for name in ("weight", "weight_squares")):
        raise InvalidPredictions(extreme_weights(plan.weight, "large"))
    if not all(np.isfinite(column).all() for column in sums.values()):
        message = "The sums overflow or the source holds values that the engine could not tell from numbers."
        raise InvalidPredictions(message)


def extreme_weights(column: str, size: Literal["large", "small"]) -> str:
    """What to say where weights are numbers, but the squares of them or of their sum are not."""
    return (
        f"The weights in column {column!r} are too {size}: squares of them are beyond the range of double precision. "
        "Only their ratios matter, so divide them by their mean."
    )


def _reasons(rows: RowExpressions, plan: Plan) -> dict[Group, Counter[str]]:
    """Invalid rows by group and by the first rule they break."""
    code: nw.Expr = nw.lit(-1)
    for place, check in reversed(list(enumerate(rows.checks))):
        code = nw.when(check.holds).then(code).otherwise(nw.lit(place))
    groups = [nw.col(name).alias(_key(place)) for place, name in enumerate(plan.keys)]
    frame = rows.frame.select(*groups, code.cast(nw.Int32).alias(REASON))
    counts = run(frame.group_by(*(_key(place) for place in range(len(groups))), REASON).agg(nw.len().alias(ROWS)))
    found: dict[Group, Counter[str]] = defaultdict(Counter)
    columns = [counts[name].to_list() for name in (*(_key(place) for place in range(len(groups))), REASON, ROWS)]
    for *group, reason, n in zip(*columns, strict=True):
        if reason >= 0:
            found[tuple(group)][rows.checks[reason].reason] += int(n)
    return found


def _with_invalid(tables: Tables, invalid: dict[Group, Counter[str]], plan: Plan) -> Tables:
    """A group of invalid rows only still gets a table, of no cells, so that its rows are accounted for."""
    none = np.zeros(0)
    empty = BinTable(plan.grid, none.astype(np.int64), none, none, np.zeros((len(SUMS), 0)), plan.table_task)
    groups = dict.fromkeys([*tables, *invalid])
    return {group: replace(tables.get(group, empty), invalid=dict(invalid.get(group, {}))) for group in groups}


def _key(place: int) -> str:
    return f"_calibrant_key_{place}"


def _numbers(raw: nw.DataFrame[Any], name: str) -> Floats:
    return raw[name].to_numpy().astype(np.float64)
