"""The columns of a frame under the names that the user gave: columns or, for files and DuckDB, SQL expressions.

A column that has the name wins over an expression that reads alike. Names that an engine takes for something else
(``*`` and ``^p.*$`` in Polars, dots and backticks in Spark) are replaced before any expression sees them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.data.validation import InvalidPredictions, fail
from calibrant.scale.duckdb_files import FILE_ROW, TEXT, first_line, quoted, unusable

Frame = nw.LazyFrame[Any]
_HELD = "_calibrant_held_"
#: A name and nothing else: SQL would find it whatever its case, so it is never taken for an expression.
_NAME = re.compile(r"\w+")


class NotNumbers(InvalidPredictions):
    """A column of text where numbers are needed: what it is for, its name and its type."""

    def __init__(self, role: str, name: str, kind: Any) -> None:
        commas = " A file with decimal commas needs decimal=','; other text must be made numbers first."
        remedy = commas if kind == nw.String else ""
        super().__init__(f"{role} must hold numbers, but column {name!r} holds {kind} values.{remedy}")
        self.role, self.name = role, name

    def at(self, value: str, where: str, count: int) -> str:
        """The same for the first of `count` values that are not numbers."""
        more = f", the first of {count:,} such rows" if count > 1 else ""
        return f"{self.role} must hold numbers, but column {self.name!r} holds {value!r} in {where}{more}."


@dataclass(frozen=True)
class NamedFrame:
    """A frame and, for names that are not those of its own columns, under which name it has them."""

    frame: Frame
    held: Mapping[str, str] = field(default_factory=dict)
    #: Whether counting the rows costs nothing.
    counted: bool = False

    def __getitem__(self, name: str) -> nw.Expr:
        return nw.col(self.held.get(name, name))

    def with_columns(self, **columns: nw.Expr) -> NamedFrame:
        """The same with further columns."""
        return replace(self, frame=self.frame.with_columns(**columns))

    def filter(self, condition: nw.Expr) -> NamedFrame:
        """The rows that fit the condition."""
        return replace(self, frame=self.frame.filter(condition))

    def as_text(self, name: str) -> str:
        """The column that holds the text of a column of a CSV file; where there is none, the name itself."""
        return f"{TEXT}{name}" if f"{TEXT}{name}" in self.frame.collect_schema() else name

    def kind(self, name: str, role: str) -> Any:
        """The type of a column, which must be there."""
        schema = self.frame.collect_schema()
        held = self.held.get(name, name)
        if held not in schema:
            fail(absent(name, role, list(schema)))
        return schema[held]

    def number(self, name: str, role: str) -> nw.Expr:
        """A column that can be computed with; booleans become 0 and 1."""
        kind = self.kind(name, role)
        if kind == nw.Boolean:
            return self[name].cast(nw.Float64)
        if not kind.is_numeric():
            raise NotNumbers(role, name, kind)
        return self[name] if kind in (nw.Float32, nw.Float64) or kind.is_integer() else self[name].cast(nw.Float64)


def absent(name: str, role: str, names: Sequence[str], why: str = "") -> str:
    """What to say of a column that is not there."""
    names = [column for column in names if not column.startswith(TEXT)]
    listed = ", ".join(repr(column) for column in names[:20]) + (", ..." if len(names) > 20 else "")
    close = [column for column in names if column.lower() == name.lower()]
    hint = f" Did you mean {close[0]!r}?" if close else ""
    if f"{name}_1" in names and close:  # how DuckDB reads two names that differ only in case
        hint = f" Names that differ only in case are told apart by a number: {close[0]!r} and '{name}_1'."
    return f"{role} names the column {name!r}, which the source does not have{why}. It has {listed}.{hint}"


def bound(frame: Frame, wanted: Mapping[str, str], refused: Mapping[str, str] | None = None) -> NamedFrame:
    """The frame with every column of `wanted` (name to role) as its engine names it; `refused` ones raise an error."""
    for name in wanted:
        if refused and name in refused:
            fail(refused[name])
    if frame.implementation.is_duckdb():
        return _with_expressions(frame, wanted, refused or {})
    if frame.implementation.is_polars():
        held = _held(name for name in wanted if name == "*" or (name.startswith("^") and name.endswith("$")))
        renamed = nw.from_native(frame.to_native().rename(held, strict=False)) if held else frame
        return NamedFrame(renamed, held)
    if frame.implementation.is_pyspark():
        return _of_spark(frame, wanted)
    if frame.implementation.is_pandas():
        return _of_pandas(frame, wanted)
    return NamedFrame(frame)


def _with_expressions(frame: Frame, wanted: Mapping[str, str], refused: Mapping[str, str]) -> NamedFrame:
    """Names that are no column are SQL on the columns, and become columns of their own."""
    import duckdb

    relation = frame.to_native()
    columns = list(relation.columns)
    held = _held(name for name in wanted if name not in columns)
    for name in held:
        role = wanted[name]
        if _NAME.fullmatch(name.strip()) or not name.strip():
            fail(absent(name, role, columns))
        try:
            relation.project(f"*, ({name}) AS {held[name]}")
        except duckdb.Error as error:
            why = f" and which is no SQL expression of its columns either ({first_line(error)})"
            fail(unusable(name, refused) or absent(name, role, columns, why), cause=error)
    if not held:
        return NamedFrame(frame)
    added = ", ".join(f"({name}) AS {column}" for name, column in held.items())
    return NamedFrame(nw.from_native(relation.project(f"*, {added}")), held)


def _of_spark(frame: Frame, wanted: Mapping[str, str]) -> NamedFrame:
    """Spark parses names and ignores case; columns that it would not find by name are renamed by their place."""
    native = frame.to_native()
    lower = Counter(name.lower() for name in native.columns)
    needed = (name for name in native.columns if name in wanted)
    held = _held(name for name in needed if set(name) & set(".`") or lower[name.lower()] > 1)
    if not held:
        return NamedFrame(frame)
    return NamedFrame(nw.from_native(native.toDF(*(held.get(name, name) for name in native.columns))).lazy(), held)


def _of_pandas(frame: Frame, wanted: Mapping[str, str]) -> NamedFrame:
    """Columns of Python objects, such as truth values some of which are None, under the type of their values."""
    schema = frame.collect_schema()
    loose = [name for name in wanted if schema.get(name) == nw.Object]
    if loose:
        native = frame.collect().to_native()
        converted = native.assign(**{name: native[name].convert_dtypes() for name in loose})
        frame = nw.from_native(converted).lazy()
    return NamedFrame(frame)


def _held(names: Any) -> dict[str, str]:
    return {name: f"{_HELD}{place}" for place, name in enumerate(names)}


def first_text(columns: NamedFrame, name: str) -> tuple[str, int, int] | None:
    """The first value of a DuckDB column that is no number, the number of its row, and how many such rows there are."""
    column = quoted(columns.held.get(name, name))
    words = columns.frame.to_native().filter(f"{column} IS NOT NULL AND TRY_CAST({column} AS DOUBLE) IS NULL")
    found = words.aggregate(f"arg_min({column}, {FILE_ROW}), min({FILE_ROW}), count(*)").fetchall()[0]
    return (str(found[0]), int(found[1]), int(found[2])) if found[2] else None


def text_remedy(
    value: str,
    name: str,
    *,
    percent: str = ' Percentages are numbers as "{}".',
    other: str = ' Other text is missing as "{}".',
) -> str:
    """What to do about a text that is no number; `percent` and `other` are sentences about SQL of the column."""
    column = name if _NAME.fullmatch(name) else quoted(name)
    if value == name:
        return " The row repeats the header: leave it out of the file."
    if re.fullmatch(r"\s*[-+]?\d*,\d+\s*", value):
        return " A file with decimal commas needs decimal=','."
    if value.strip().endswith("%"):
        return percent.format(f"CAST(rtrim({column}, '% ') AS DOUBLE) / 100")
    return other.format(f"TRY_CAST({column} AS DOUBLE)")
