"""`bin_table` and `bin_tables`: from any source to its tables; invalid rows and weights raise an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import NO_LISTS, fail
from calibrant.scale import checks
from calibrant.scale.checks import NamedFrame, some_labels
from calibrant.scale.columns import ColumnMeaning, EventColumns, GaussianColumns, OneClass, OneTable, OneVsRestColumns
from calibrant.scale.group_by import Plan, Tables, collected, extreme_weights, merged, refined, with_missing_named
from calibrant.scale.paths import ReadOptions
from calibrant.scale.sources import Shard, Watch, shards, watching
from calibrant.table.binning import Binning, EqualMass, EqualWidth, Grid, HybridGrid, LogGrid, as_binning
from calibrant.table.bintable import BinTable, cut_cells
from calibrant.table.task import Unlabeled

#: The square of the sum of weights must be a number, and the sum of squares one that has all its digits.
#: Derived: the square of 1e150 is below the largest double, 1.8e308, and 1e-290 is 1e17 times the smallest normal one.
LARGEST_TOTAL, SMALLEST_SQUARES = 1e150, 1e-290


def require_valid(tables: Tables, max_invalid: float, parts: Sequence[Shard], plan: Plan, watch: Watch) -> None:
    """Refuse more invalid rows than are tolerated, and sources that have no others."""
    rows = sum(table.n for table in tables.values())
    invalid = sum((Counter(table.invalid) for table in tables.values()), Counter[str]())
    bad = invalid.total()
    if bad > max_invalid * (rows + bad):
        are = "is" if bad == 1 else "are"
        share = f"a share of {bad / (rows + bad):.3g}; max_invalid={max_invalid:g} allows no more than that"
        said = f"{bad:,} of {rows + bad:,} rows {are} invalid ({_described(invalid, parts, plan, watch)}), {share}."
        remedy = ""
        if f"y_true {checks.NOT_BINARY}" in invalid and isinstance(plan.task, EventColumns):
            words = checks.unknown_labels(label for label in _labels(parts, plan, watch) if isinstance(label, str))
            how = "name the event's label with EventColumns(positive=...)"
            remedy = f" Column {plan.y_true!r} holds {words}: {how}." if words else ""
        fail(f"{said} Raise it to leave such rows out and count them.{remedy}")
    if rows == 0:
        reason = f" ({_described(invalid, parts, plan, watch)})" if invalid else ""
        fail(f"The source has no valid rows{reason}: {', '.join(part.name for part in parts)}.")


def require_weights(tables: Tables, column: str | None) -> None:
    """Refuse weights that are all zero, whose squares vanish, or whose sum has no square."""
    if column is None:
        return
    if not any(table.weight.any() for table in tables.values()):
        rows = sum(table.n for table in tables.values())
        fail(f"{column} must not be all zero, but all {rows} values are.")
    for table in tables.values():
        with np.errstate(over="ignore"):
            total, squares = table.population
        if total > LARGEST_TOTAL:
            fail(extreme_weights(column, "large"))
        if total > 0 and squares < SMALLEST_SQUARES:
            fail(extreme_weights(column, "small"))


def require_possible(tables: Tables) -> None:
    """Refuse a label frequency by which more than all rows would be positive."""
    for group, table in tables.items():
        frequency = table.task.label_frequency if isinstance(table.task, Unlabeled) else None
        if frequency is None or not table.n:
            continue
        share = float(table.observed.sum()) / table.total
        if not share < frequency:
            where = f" of group {group}" if group else ""
            fail(
                f"label_frequency is {frequency:g}, but {share:g} of all rows{where} are labelled: more than all rows "
                "would be positive."
            )


def _labels(parts: Sequence[Shard], plan: Plan, watch: Watch) -> set[Any]:
    """Some of the distinct labels, enough to tell two from more."""
    work = partial(some_labels, name=plan.y_true, positive=getattr(plan.task, "positive", None))
    return _union([part.apply(work, {plan.y_true: "y_true"}, watch, _union) for part in parts])


def _union(found: Sequence[set[Any]]) -> set[Any]:
    return set[Any]().union(*found)


def _described(invalid: Counter[str], parts: Sequence[Shard], plan: Plan, watch: Watch) -> str:
    """Reasons with their rows and columns, and the first row where the source is a file."""
    named = parts[0].apply(partial(_named_reasons, plan=plan), plan.wanted, watch, itemgetter(0))
    first = next((found for part in parts if (found := part.first_invalid(plan)) is not None), None)
    return checks.counted(invalid, named) + (f"; first: {first}" if first else "")


def _named_reasons(columns: NamedFrame, plan: Plan) -> dict[str, str]:
    return checks.named_reasons(plan.rows(columns).checks)


Names = str | Sequence[str]


def bin_table(
    source: Any,
    *,
    y_true: str,
    y_prob: Names = (),
    weight: str | None = None,
    where: nw.Expr | str | None = None,
    task: OneTable = EventColumns(),
    grid: Grid | None = None,
    exact: bool | Binning = False,
    max_invalid: float = 0.0,
    hive: bool = False,
    decimal: str = ".",
    progress: bool | None = None,
) -> BinTable:
    """The fine table of a source that need not fit into memory, by one GROUP BY on its own engine.

    Parameters
    ----------
    source : path, frame, or list of them
        A file, folder or pattern (Parquet, CSV, JSON, Arrow, NumPy; read by an embedded DuckDB, which also knows ``s3://``
        and ``https://``), or a frame of pandas, Polars (eager or lazy), pyarrow, DuckDB, Spark, Ibis or Dask. A path
        that exists is that file, others are patterns. Whole and floating-point numbers of several files are widened;
        a column of other mixed types is refused.
    y_true, y_prob, weight : column names
        The outcome, its predicted probability (one column per class for `TopLabelColumns`), and row weights. For files
        and DuckDB relations also SQL expressions of columns, e.g. ``"score / 100"``; a column of that name wins.
    where : Narwhals expression, or SQL text for files, optional
        The rows to use. SQL text is passed to DuckDB as it is: never build it from untrusted input.
    task : EventColumns, TopLabelColumns, GaussianColumns or UnlabeledColumns
        What the columns mean.
    grid : HybridGrid or LogGrid, optional
        The cells, 2^16 by default; take fewer, e.g. ``HybridGrid(2**12)``, for thousands of groups.
    exact : bool, EqualMass, EqualWidth or Edges
        Make these bins exact (True: `EqualMass(15)`). Equal width costs a second key, the others a second pass over the
        rows of the few cells that an edge cuts. Without it `BinTable.error_bound` says how far off a result can be.
    max_invalid : float
        The share of invalid rows that is tolerated (left out, and counted by reason in `table.invalid`).
    hive : bool
        Take folders named ``key=value`` as columns of the files in them.
    decimal : {".", ","}
        The decimal mark of CSV files.
    progress : bool, optional
        Show a progress bar; by default where the standard error is a terminal and rich is installed.

    Examples
    --------
    >>> import polars as pl
    >>> log = pl.LazyFrame({"y": [0, 0, 1, 1], "p": [0.1, 0.3, 0.6, 0.8]})
    >>> bin_table(log, y_true="y", y_prob="p")
    <BinTable of 4 cells, n=4, HybridGrid>
    """
    if isinstance(task, OneVsRestColumns):
        fail("OneVsRestColumns gives one table per class: use bin_tables, or TopLabelColumns for one table.", TypeError)
    chosen, second_pass = _grid(grid, task, exact=exact)
    plan = Plan(y_true, _names(y_prob), weight, (), task, chosen)
    parts = shards(source, where, ReadOptions(hive, decimal))
    with watching(len(parts), enabled=progress) as watch:
        return _collected(parts, plan, second_pass, max_invalid, watch)[()]


def bin_tables(
    source: Any,
    *,
    y_true: str,
    y_prob: Names = (),
    weight: str | None = None,
    by: Names | None = None,
    fold: str | None = None,
    where: nw.Expr | str | None = None,
    task: ColumnMeaning = EventColumns(),
    grid: Grid | None = None,
    exact: bool | Binning = False,
    max_invalid: float = 0.0,
    hive: bool = False,
    decimal: str = ".",
    progress: bool | None = None,
) -> dict[Any, BinTable]:
    """One fine table per group, class or fold, by the same GROUP BY as `bin_table`.

    Parameters
    ----------
    source, y_true, y_prob, weight, where, grid, exact, max_invalid, hive, decimal, progress
        As for `bin_table`.
    by : column name or names, optional
        One table per group; SQL expressions as for `y_prob`, e.g. ``"month(day)"``. Groups of a CSV file are told apart
        by their text. Rows whose group is missing (null or NaN) are the group ``"(missing)"``, or ``"((missing))"``
        where another is called so.
    fold : column name, optional
        One table per fold: needed where rows are weighted or belong together. The folds of independent rows are drawn
        from the cell counts afterwards.
    task : as for `bin_table`, or OneVsRestColumns
        `OneVsRestColumns` gives one table per class.

    Returns
    -------
    dict of key to BinTable
        The key is the group, the class or the fold; a tuple of (groups, class, fold), as far as they were asked for,
        where there are several or `by` is a list.

    Examples
    --------
    >>> import polars as pl
    >>> log = pl.LazyFrame({"y": [0, 0, 1, 1], "p": [0.1, 0.3, 0.6, 0.8], "country": ["at", "at", "at", "de"]})
    >>> bin_tables(log, y_true="y", y_prob="p", by="country")["at"]
    <BinTable of 3 cells, n=3, HybridGrid>
    """
    names, keys = _names(y_prob), _names(by)
    if not keys and fold is None and not isinstance(task, OneVsRestColumns):
        remedy = "for one table of all rows use bin_table"
        fail(f"bin_tables needs by=, fold= or task=OneVsRestColumns(); {remedy}.", TypeError)
    chosen, second_pass = _grid(grid, task, exact=exact)
    plan = Plan(y_true, names, weight, (*keys, *_names(fold)), task, chosen)
    parts = shards(source, where, ReadOptions(hive, decimal))
    plans: dict[tuple[Hashable, ...], Plan] = {(): plan}
    if isinstance(task, OneVsRestColumns):
        labels = task.labels(names)
        plans = {
            (label,): replace(plan, y_prob=(name,), task=OneClass(label, labels))
            for label, name in zip(labels, names, strict=True)
        }
    found: Tables = {}
    with watching(len(parts) * len(plans), enabled=progress) as watch:
        for label, one in plans.items():
            tables = with_missing_named(_collected(parts, one, second_pass, max_invalid, watch))
            found |= {(*key[: len(keys)], *label, *key[len(keys) :]): table for key, table in tables.items()}
    single = not isinstance(by, list | tuple) and all(len(key) == 1 for key in found)
    return {key[0] if single else key: table for key, table in sorted(found.items(), key=_order)}


def _collected(
    parts: Sequence[Shard], plan: Plan, second_pass: Binning | None, max_invalid: float, watch: Watch
) -> Tables:
    """The valid tables of one plan, with exact bins where these were asked for."""
    if not 0 <= max_invalid <= 1:  # above all NaN, which no share of invalid rows exceeds
        fail(f"max_invalid must be a share, in [0, 1], got {max_invalid!r}.")
    if isinstance(plan.task, EventColumns) and plan.task.positive is not None:
        checks.require_two(_labels(parts, plan, watch), plan.task.positive, plan.y_true)
    found = []
    for part in parts:
        with watch.part(part.name):
            found.append(part.apply(partial(_of_part, plan=plan), plan.wanted, watch))
    tables = merged(found)
    require_valid(tables, max_invalid, parts, plan, watch)
    require_weights(tables, plan.weight)
    require_possible(tables)
    return tables if second_pass is None else exactly(tables, parts, plan, second_pass, watch)


def _of_part(columns: NamedFrame, plan: Plan) -> Tables:
    """The tables of one part, whose labels, if they are words, must be a pair such as yes and no."""
    plan.rows(columns)  # a column that cannot be used is the first thing to be said
    if plan.task == EventColumns() and checks.is_text(columns.kind(plan.y_true, "y_true")):
        checks.require_one_pair(some_labels(columns, plan.y_true), plan.y_true)
    return collected(columns, plan)


def _names(given: Names | None) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, NO_LISTS) and not isinstance(given, str):
        fail(f"Columns are given by a name, or by a list of names in their order, got {given!r}.")
    return (given,) if isinstance(given, str) else tuple(given)


def _grid(grid: Grid | None, task: ColumnMeaning, *, exact: bool | Binning) -> tuple[Grid, Binning | None]:
    """The grid, and the bins that need a second pass."""
    wanted = LogGrid if isinstance(task, GaussianColumns) else HybridGrid
    grid = wanted() if grid is None else grid
    if not isinstance(grid, wanted):
        fail(f"task={task!r} needs a {wanted.__name__}, got {grid!r}.", TypeError)
    if exact is True:
        return grid, EqualMass(15)
    if exact is False:
        return grid, None
    exact = as_binning(exact)
    if isinstance(exact, EqualWidth) and isinstance(grid, HybridGrid) and (exact.low, exact.high) == (0, 1):
        return replace(grid, equal_width=exact.n_bins), None
    return grid, exact


def _order(item: tuple[tuple[Any, ...], BinTable]) -> list[tuple[str, Any]]:
    """Groups of any mixture of types in a stable order: numbers by size, the rest as text."""
    return [("", value) if isinstance(value, (int, float)) else (type(value).__name__, str(value)) for value in item[0]]


def exactly(tables: Tables, parts: Sequence[Shard], plan: Plan, bins: Binning, watch: Watch) -> Tables:
    """The tables, with every cell that `bins` cut replaced by its distinct scores."""
    cut = {group: table.key[cut_cells(table, bins)[0]] for group, table in tables.items()}
    wanted = np.unique(np.concatenate(list(cut.values())))
    if len(wanted) == 0:
        return tables
    found = merged([part.apply(partial(refined, plan=plan, cells=wanted), plan.wanted, watch) for part in parts])
    return {group: _replaced(table, cut[group], found.get(group)) for group, table in tables.items()}


def _replaced(table: BinTable, cut: NDArray[Any], scores: BinTable | None) -> BinTable:
    if scores is None or len(cut) == 0:
        return table
    cell = table.key[np.searchsorted(table.low, scores.low, side="right") - 1]
    ours = np.isin(cell, cut)
    kept, new = table.take(~np.isin(table.key, cut)), replace(scores, key=cell).take(ours)
    low = np.concatenate([kept.low, new.low])
    order = np.argsort(low, kind="stable")
    return replace(
        table,
        key=np.concatenate([kept.key, new.key])[order],
        low=low[order],
        high=np.concatenate([kept.high, new.high])[order],
        sums=np.concatenate([kept.sums, new.sums], axis=1)[:, order],
    )
