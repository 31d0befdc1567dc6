"""The one expression that every engine runs: filter, cell number (bit for bit `HybridGrid.index`), GROUP BY, sums."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.data.groups import missing_name
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binned_sums import hybrid_scale
from calibrant.numerics.rows import SUMS
from calibrant.scale.checks import Frame, NamedFrame, all_hold, first_broken, weight_checks
from calibrant.scale.columns import ColumnMeaning, GaussianColumns, OneVsRestColumns, RowExpressions, UnlabeledColumns
from calibrant.table.binning import Distinct, Grid, HybridGrid, LogGrid
from calibrant.table.bintable import BinTable, merge
from calibrant.table.task import Labelled, Spread, Unlabeled
from calibrant.table.task import Task as TableTask

#: Name of the column that holds the argument of the logarithm, so that engines compute it once.
SCORE_RATIO = "_calibrant_ratio"


def score_ratio(score: nw.Expr, grid: Grid) -> nw.Expr:
    """What the logarithm is taken of; never zero, because DuckDB's log(0) is an error."""
    score = score.cast(nw.Float64)
    if not isinstance(grid, HybridGrid):
        return nw.max_horizontal(score, nw.lit(1e-300))
    least, _ = hybrid_scale(grid.cells, grid.limit)
    return (score + least) / ((1 - score) + least)


def cell_number(score: nw.Expr, grid: Grid) -> nw.Expr:
    """The cell of each score less `shift(grid)`, still as a float; needs the column `SCORE_RATIO`."""
    score, log = score.cast(nw.Float64), nw.col(SCORE_RATIO).log()
    if not isinstance(grid, HybridGrid):
        return (log * float(grid.per_fold)).floor()
    middle, (_, slope) = grid.cells // 2, hybrid_scale(grid.cells, grid.limit)
    number = (score * (grid.cells / 2) + (log * slope + (grid.cells / 4 - middle))).floor()
    if grid.equal_width is None:
        return number
    return (number + float(middle)) * float(grid.equal_width) + equal_width(score, grid.equal_width)


def cell_shift(grid: Grid) -> int:
    """What is taken off a cell's number, so that 2^16 of them fit the type of `cell_dtype`."""
    return grid.cells // 2 if isinstance(grid, HybridGrid) and grid.equal_width is None else 0


def cell_dtype(grid: Grid) -> type[nw.Int16 | nw.Int32]:
    """The type of the number: two bytes where they do, because DuckDB then needs no hash table."""
    return nw.Int16 if 0 < cell_shift(grid) <= 2**15 else nw.Int32


def equal_width(score: nw.Expr, n: int) -> nw.Expr:
    """The bin of `EqualWidth(n)`, exactly: (low, high], the first also holds zero.

    A multiplication finds the bin but for rounding; comparing with the very edges of `np.linspace` corrects it.
    """
    step = 1.0 / n
    # Narwhals' clip asks for nulls first, which doubles the time in SQL engines.
    guess = nw.min_horizontal(nw.max_horizontal((score * n).ceil() - 1, nw.lit(0.0)), nw.lit(n - 1.0))
    above = (score > (guess + 1) * step) & (guess < n - 1)
    below = (score <= guess * step) & (guess > 0)
    return guess + above.cast(nw.Float64) - below.cast(nw.Float64)


#: Columns of ours, named so that no column of a user's is called alike.
CELL, SCORE, LOW, HIGH, ROWS = (f"_calibrant_{name}" for name in ("cell", "score", "low", "high", "rows"))
PREDICTED, OBSERVED, WEIGHT, MASS = (f"_calibrant_{name}" for name in ("predicted", "observed", "weight", "mass"))
VALID, REASON, SUM = "_calibrant_valid", "_calibrant_reason", "_calibrant_sum_"

Group = tuple[Any, ...]
"""The values of the columns in `Plan.keys`; empty where there are none."""

Tables = dict[Group, BinTable]

#: From here on double precision does not tell whole numbers apart.
#: Derived: its significand has 53 bits.
LARGEST_WHOLE = 2.0**53


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
    def key_names(self) -> list[str]:
        """What the columns that separate tables are called in queries."""
        return [f"_calibrant_key_{place}" for place in range(len(self.keys))]

    @property
    def table_task(self) -> TableTask:
        """What the columns of the tables mean."""
        if isinstance(self.task, UnlabeledColumns):
            return Unlabeled(self.task.prior, self.task.label_frequency, self.task.nested)
        return Spread() if isinstance(self.grid, LogGrid) else Labelled()

    @property
    def wanted(self) -> dict[str, str]:
        """The names the user gave to columns, and the role of each."""
        names = dict.fromkeys(self.keys, "by or fold")
        if isinstance(self.task, GaussianColumns):
            names |= {self.task.std: "std", self.task.mean: "mean"}
        if self.weight is not None:
            names[self.weight] = "weight"
        return names | dict.fromkeys(self.y_prob, "y_prob") | {self.y_true: "y_true"}

    def rows(self, columns: NamedFrame) -> RowExpressions:
        """The task's expressions on this frame, with the checks of the weight among them."""
        if isinstance(self.task, OneVsRestColumns):
            fail("OneVsRestColumns is collected class by class.", TypeError)
        for name in self.keys:
            columns.kind(name, "by or fold")
        rows = self.task.rows(columns, self.y_true, self.y_prob)
        if self.weight is None:
            return rows
        return replace(rows, checks=(*rows.checks, *weight_checks(columns, self.weight)))

    def groups(self, columns: NamedFrame) -> list[nw.Expr]:
        """The columns that separate tables; NaN is as missing as null."""
        found = []
        for key, name in zip(self.key_names, self.keys, strict=True):
            name = columns.as_text(name)
            value = columns[name]
            if columns.kind(name, "by or fold").is_float():
                value = nw.when(~value.is_nan()).then(value)
            found.append(value.alias(key))
        return found


def collected(columns: NamedFrame, plan: Plan) -> Tables:
    """One table per group of `plan.keys`, its invalid rows counted by reason.

    Where rows are `counted` for free, invalid ones are counted by subtraction; else they have a null cell.
    """
    rows = plan.rows(columns)
    counted = columns.counted
    total = int(run(rows.columns.frame.select(nw.len().alias(ROWS)))[ROWS].to_numpy()[0]) if counted else None
    raw = run(_sums(_prepared(rows, plan, keep_invalid=not counted), plan, [CELL]))
    known = ~raw[CELL].is_null().to_numpy().astype(bool)
    valid = raw.filter(known.tolist()) if not known.all() else raw
    tables = assembled(valid, plan)
    bad = (int(_numbers(valid, SUM + "count").sum()) != total) if counted else not known.all()
    if not bad:
        return tables
    invalid, none = reasons(rows, plan), np.zeros(0)  # groups of invalid rows only have a table of no cells
    empty = BinTable(plan.grid, none.astype(np.int64), none, none, np.zeros((len(SUMS), 0)), plan.table_task)
    groups = dict.fromkeys([*tables, *invalid])
    return {group: replace(tables.get(group, empty), invalid=dict(invalid.get(group, {}))) for group in groups}


def merged(parts: Sequence[Tables]) -> Tables:
    """The tables of several parts, group by group."""
    groups = dict.fromkeys(group for part in parts for group in part)
    return {group: merge([part[group] for part in parts if group in part]) for group in groups}


def refined(columns: NamedFrame, plan: Plan, cells: NDArray[Any]) -> Tables:
    """Tables of the rows in `cells` only, one entry per distinct score: the second pass of the exact mode."""
    wanted = (cells - cell_shift(plan.grid)).tolist()
    prepared = _prepared(plan.rows(columns), plan, keep_invalid=False).filter(nw.col(CELL).is_in(wanted))
    tables = assembled(run(_sums(prepared, plan, [CELL, SCORE])), plan)
    return {group: replace(table, cut=Distinct(), key=table.low) for group, table in tables.items()}


def run(frame: Frame) -> nw.DataFrame[Any]:
    """Execute. Polars is told to stream: its in-memory engine needs twenty times the memory."""
    return frame.collect(engine="streaming") if frame.implementation.is_polars() else frame.collect()


def _prepared(rows: RowExpressions, plan: Plan, *, keep_invalid: bool) -> Frame:
    """Valid rows with their cell and the columns to be summed; invalid ones, if kept, have a null cell."""
    valid = all_hold(rows.checks)
    source = rows.columns if keep_invalid else rows.columns.filter(valid)
    predicted = rows.score if rows.predicted is None else rows.predicted
    columns = {SCORE: rows.score, PREDICTED: predicted.cast(nw.Float64), OBSERVED: rows.observed.cast(nw.Float64)}
    if plan.weight is not None:
        columns[WEIGHT] = source.number(plan.weight, "weight").cast(nw.Float64)
    if rows.mass is not None:
        columns[MASS] = rows.mass
    if keep_invalid:
        columns[VALID] = valid
    columns[SCORE_RATIO] = score_ratio(rows.score, plan.grid)
    frame = source.frame.select(*plan.groups(source), *(expression.alias(name) for name, expression in columns.items()))
    cell = cell_number(nw.col(SCORE), plan.grid)
    if keep_invalid:
        cell = nw.when(nw.col(VALID)).then(cell)
    sums = [expression.alias(SUM + name) for name, expression in _summands(rows, plan).items()]
    return frame.select(*plan.key_names, SCORE, cell.cast(cell_dtype(plan.grid)).alias(CELL), *sums)


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
        return summands
    summands |= {"product": first * observed}
    return summands if rows.zero_or_one else summands | {"observed_squares": second * observed}


def _sums(frame: Frame, plan: Plan, by: list[str]) -> Frame:
    summed = [name for name in frame.collect_schema() if name.startswith(SUM)]
    return frame.group_by(*plan.key_names, *by).agg(
        nw.len().alias(SUM + "count"),
        nw.col(SCORE).min().alias(LOW),
        nw.col(SCORE).max().alias(HIGH),
        *(nw.col(name).sum() for name in summed),
    )


def assembled(raw: nw.DataFrame[Any], plan: Plan) -> Tables:
    """Tables from the rows an engine gave back, one row per group and cell."""
    groups = [_named(group) for group in zip(*(raw[name].to_list() for name in plan.key_names), strict=True)]
    found = {group: code for code, group in enumerate(dict.fromkeys(groups))} if plan.keys else {(): 0}
    code = np.array([found[group] for group in groups]) if plan.keys else np.zeros(len(raw), np.intp)
    cell = raw[CELL].to_numpy().astype(np.int64) + cell_shift(plan.grid)
    low, high = _numbers(raw, LOW), _numbers(raw, HIGH)
    order = np.lexsort((low, cell, code))
    sums = {name: _numbers(raw, SUM + name) for name in SUMS if SUM + name in raw.columns}
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
            plan.grid, cell[part], low[part], high[part], np.ascontiguousarray(stacked[:, part]), plan.table_task
        )
        for group, part in zip(found, parts, strict=True)
        if part.stop > part.start
    }


def _require_finite(sums: dict[str, Floats], plan: Plan) -> None:
    if plan.weight is not None and not all(np.isfinite(sums[name]).all() for name in ("weight", "weight_squares")):
        fail(extreme_weights(plan.weight, "large"))
    if not all(np.isfinite(column).all() for column in sums.values()):
        fail("The sums overflow or the source holds values that the engine could not tell from numbers.")


def extreme_weights(column: str, size: Literal["large", "small"]) -> str:
    """What to say where weights are numbers, but the squares of them or of their sum are not."""
    return (
        f"The weights in column {column!r} are too {size}: squares of them are beyond the range of double precision. "
        "Only their ratios matter, so divide them by their mean."
    )


def reasons(rows: RowExpressions, plan: Plan) -> dict[Group, Counter[str]]:
    """Invalid rows by group and by the first rule they break."""
    frame = rows.columns.frame.select(*plan.groups(rows.columns), first_broken(rows.checks).alias(REASON))
    counts = run(frame.group_by(*plan.key_names, REASON).agg(nw.len().alias(ROWS)))
    found: dict[Group, Counter[str]] = defaultdict(Counter)
    columns = [counts[name].to_list() for name in (*plan.key_names, REASON, ROWS)]
    for *group, reason, n in zip(*columns, strict=True):
        if reason >= 0:
            found[_named(group)][rows.checks[reason].reason] += int(n)
    return found


def _named(group: Sequence[Any]) -> Group:
    """The values of the columns of groups, None where they are missing, however the engine says so."""
    return tuple(None if _is_missing(value) else value for value in group)


def with_missing_named(tables: Tables) -> Tables:
    """The tables with a name in place of every missing value, one that no group of the same column has."""
    columns = list(zip(*tables, strict=True))
    names = [missing_name(set(values)) for values in columns]
    return {
        tuple(name if value is None else value for value, name in zip(group, names, strict=True)): table
        for group, table in tables.items()
    }


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    if isinstance(value, float) and abs(value) >= LARGEST_WHOLE:
        fail(
            f"A column of groups holds {value:.17g} in double precision, which cannot be distinguished from its "
            "neighbours. Give such groups as whole numbers or as text."
        )
    return type(value).__name__ in ("NaTType", "NAType")  # of pandas, recognised without importing it


def _numbers(raw: nw.DataFrame[Any], name: str) -> Floats:
    return raw[name].to_numpy().astype(np.float64)
