"""The rows of files that the options select, with columns for every role and for every grouping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.cli.columns import Columns
from calibrant.cli.patterns import separated
from calibrant.data.groups import MISSING
from calibrant.data.validation import InvalidPredictions
from calibrant.scale.checks import all_hold, present
from calibrant.scale.group_by import LARGEST_WHOLE
from calibrant.scale.named_columns import NamedFrame, bound
from calibrant.scale.relations import FileTable, filtered
from calibrant.scale.scans import literal, quoted
from calibrant.scale.schemas import FLOATING

_GROUP, LABEL = "_calibrant_group_", "_calibrant_label"


@dataclass(frozen=True)
class Selection:
    """The chosen rows: their columns by the users' names, and the names of the columns of groups by grouping."""

    columns: NamedFrame
    groups: dict[str, str]

    @property
    def relation(self) -> Any:
        """The rows as a DuckDB relation."""
        return self.columns.frame.to_native()

    def held(self, name: str) -> str:
        """The column of the relation that has a name or an expression of the user's."""
        return self.columns.held.get(name, name)


def selected(table: FileTable, relation: Any, columns: Columns) -> Selection:
    """The rows of a relation that fit the condition, probabilities in percent as shares, groups under their names."""
    if columns.where:
        relation = filtered(relation, columns.where, table.refused)
    crossings = {by: separated(by, relation.columns, "--by") for by in columns.by}
    wanted = {name: "--by" for names in crossings.values() for name in names} | columns.roles
    named = bound(nw.from_native(relation), wanted, table.refused)
    chosen = Selection(named, {})
    if columns.percent:
        chosen = _with(chosen, {chosen.held(name): _share(chosen, name) for name in columns.probabilities}, new=False)
    groups = {by: f"{_GROUP}{place}" for place, by in enumerate(crossings)}
    labels = {groups[by]: _label(chosen, names) for by, names in crossings.items()}
    if columns.labelled is not None:
        labels[LABEL] = _text(chosen, columns.truth or "")
    return replace(_with(chosen, labels, new=True), groups=groups)


def without_missing(selection: Selection, columns: Columns) -> tuple[Selection, str | None]:
    """The rows that have a value in every column of the task, and what to say of those left out."""
    checks = [
        check for name, role in columns.roles.items() for check in present(selection.columns, name, role, implied=False)
    ]
    frame = selection.columns.frame
    counts = [check.holds.cast(nw.Int64).sum().alias(f"held_{k}") for k, check in enumerate(checks)]
    every = all_hold(tuple(checks)).cast(nw.Int64).sum().alias("every")
    found = frame.select(nw.len().alias("rows"), every, *counts).collect().row(0)
    rows, kept = int(found[0]), int(found[1] or 0)
    if kept == rows:
        return selection, None
    reasons = [
        f"{check.role} {check.column!r}: {rows - int(held or 0):,}"
        for check, held in zip(checks, found[2:], strict=True)
        if int(held or 0) < rows
    ]
    note = f"Left out {rows - kept:,} of {rows:,} rows with missing values ({', '.join(reasons)})."
    return replace(selection, columns=selection.columns.filter(all_hold(tuple(checks)))), note


def _text(selection: Selection, name: str) -> str:
    """SQL of a column's values as text, whole numbers without a decimal point; null where they are missing."""
    column, kind = quoted(selection.held(name)), _kind(selection, name)
    if kind not in FLOATING:
        return f"CAST({column} AS VARCHAR)"
    is_whole = f"{column} = floor({column}) AND abs({column}) < {LARGEST_WHOLE:.0f}"
    number = f"CASE WHEN {is_whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE CAST({column} AS VARCHAR) END"
    return f"CASE WHEN NOT isnan({column}) THEN {number} END"


def _with(selection: Selection, columns: dict[str, str], *, new: bool) -> Selection:
    if not columns:
        return selection
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    chosen = selection.relation.project(f"*, {listed}" if new else f"* REPLACE ({listed})")
    return replace(selection, columns=replace(selection.columns, frame=nw.from_native(chosen)))


def _share(selection: Selection, name: str) -> str:
    """SQL of a share in percent, a number or a text that may end in a sign for percent, as a share."""
    column = quoted(selection.held(name))
    if _kind(selection, name) == "VARCHAR":
        column = f"rtrim({column}, '% ')"
    return f"CAST({column} AS DOUBLE) / 100"


def _label(selection: Selection, names: Sequence[str]) -> str:
    """SQL of the name of a group, null where it is missing.

    Where columns are crossed, missing parts are named, and a backslash marks what could be taken for something else
    within the parts (commas, backslashes, the name of missing parts), so that no two crosses have one name.
    """
    for name in names:
        _require_told_apart(selection, name)
    values = [_text(selection, name) for name in names]
    if len(values) == 1:
        return values[0]
    missing, alike = literal(MISSING), literal(rf"\{MISSING}")
    marked = (rf"replace(replace({value}, '\', '\\'), ',', '\,')" for value in values)
    return " || ', ' || ".join(
        f"CASE {value} WHEN {missing} THEN {alike} ELSE coalesce({value}, {missing}) END" for value in marked
    )


def _require_told_apart(selection: Selection, name: str) -> None:
    if _kind(selection, name) not in FLOATING:
        return
    column = quoted(selection.held(name))
    largest = selection.relation.aggregate(f"max(abs({column})) FILTER (NOT isnan({column}))").fetchall()[0][0]
    if largest is not None and largest >= LARGEST_WHOLE:
        message = (
            f"Column {name!r} (--by) holds {largest:.17g} in double precision, which cannot be told from its "
            "neighbours. Write such groups as text, or as whole numbers to a Parquet file."
        )
        raise InvalidPredictions(message)


def _kind(selection: Selection, name: str) -> str:
    relation = selection.relation
    return dict(zip(relation.columns, map(str, relation.types), strict=True))[selection.held(name)]
