"""Columns under the names that the user gave (names or, for files and DuckDB, SQL), and rules for their rows.

A column that has the name wins over an expression that reads alike. Names that an engine takes for something else
(``*`` and ``^p.*$`` in Polars, dots and backticks in Spark) are replaced before any expression sees them. Rules say
which values and labels are valid, and how invalid rows are counted and described.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.data.labels import given_classes, numbered
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


#: How rows break a rule, where the remedy depends on it.
MISSING, OUTSIDE, NOT_BINARY, NO_CLASS = "missing", "outside [0, 1]", "not 0 or 1", "is not one of the classes"


@dataclass(frozen=True)
class Check:
    """A rule for the rows, by the role of the column it is about and how rows that break it are described."""

    role: str
    broken: str
    holds: nw.Expr
    column: str | None = None
    #: Whether a later rule fails too where this one does: it gives the reason its name, but finds no other rows.
    implied: bool = False

    @property
    def reason(self) -> str:
        """Under which words the rows are counted in a table."""
        return f"{self.role} {self.broken}"


def present(columns: NamedFrame, name: str, role: str, *, implied: bool = True) -> tuple[Check, ...]:
    """Null and NaN are both missing; backends do not tell them apart alike."""
    held = ~columns[name].is_null()
    if columns.kind(name, role).is_float():
        held = held & ~columns[name].is_nan()
    return (Check(role, MISSING, held, name, implied=implied),)


def finite(values: nw.Expr) -> nw.Expr:
    """Whether numbers are finite."""
    return (values > float("-inf")) & (values < float("inf"))


def finite_number(columns: NamedFrame, name: str, role: str) -> tuple[nw.Expr, tuple[Check, ...]]:
    """A column of finite numbers, and its rules."""
    values = columns.number(name, role).cast(nw.Float64)
    return values, (*present(columns, name, role), Check(role, "not finite", finite(values), name))


def probability(columns: NamedFrame, name: str) -> tuple[nw.Expr, tuple[Check, ...]]:
    """A column of probabilities, and its rules."""
    score = columns.number(name, "y_prob")
    inside = Check("y_prob", OUTSIDE, (score >= 0) & (score <= 1), name)
    return score, (*present(columns, name, "y_prob"), inside)


def weight_checks(columns: NamedFrame, name: str) -> tuple[Check, ...]:
    """Weights are finite and not negative."""
    values = columns.number(name, "weight").cast(nw.Float64)
    valid = Check("weight", "negative or not finite", (values >= 0) & finite(values), name)
    return (*present(columns, name, "weight"), valid)


def first_broken(checks: tuple[Check, ...]) -> nw.Expr:
    """The place of the first rule that a row breaks, -1 where it breaks none."""
    code: nw.Expr = nw.lit(-1)
    for place, check in reversed(list(enumerate(checks))):
        code = nw.when(check.holds).then(code).otherwise(nw.lit(place))
    return code.cast(nw.Int32)


def all_hold(checks: tuple[Check, ...]) -> nw.Expr:
    """Whether a row keeps every rule."""
    return reduce(lambda one, other: one & other, (check.holds for check in checks if not check.implied))


def named_reasons(checks: tuple[Check, ...]) -> dict[str, str]:
    """Each reason with the user's name of the column: ``y_prob 'score' missing``."""
    return {check.reason: f"{check.role} {check.column!r} {check.broken}" for check in checks if check.column}


def counted(reasons: Mapping[str, int], named: Mapping[str, str]) -> str:
    """Reasons and their rows, under their names: ``y_prob 'score' missing: 2``."""
    return ", ".join(f"{named.get(reason, reason)}: {count:,}" for reason, count in reasons.items())


#: Words for 1 and for 0, in any case; a column has those of one pair.
PAIRS = (("yes", "no"), ("true", "false"), ("y", "n"), ("t", "f"), ("1", "0"))
YES, NO = (tuple(words) for words in zip(*PAIRS, strict=True))
#: Distinct labels that are looked at, at most.
#: Derived: the positive one, three others that a message lists, and one that shows that there are more.
MOST = 5


def outcome(columns: NamedFrame, name: str, positive: Any = None) -> tuple[nw.Expr, tuple[Check, ...]]:
    """Whether the event occurred, as 0 and 1, and the rules for its labels."""
    kind, label = columns.kind(name, "y_true"), columns[name]
    there = present(columns, name, "y_true", implied=positive is None)
    if positive is not None:
        return (_comparable(columns, name) == fitting(positive, kind, name)).cast(nw.Float64), there
    if is_text(kind):
        word = _comparable(columns, name).str.to_lowercase()
        known = word.is_in([*YES, *NO])
        occurred = nw.when(known).then(word.is_in(YES).cast(nw.Float64))  # of any other word nobody knows
        return occurred, (*there, Check("y_true", NOT_BINARY, known, name))
    label = columns.number(name, "y_true")
    return label, (*there, Check("y_true", NOT_BINARY, (label == 0) | (label == 1), name))


def is_text(kind: Any) -> bool:
    """Whether labels of this type are words."""
    return isinstance(kind, (nw.String, nw.Categorical, nw.Enum))


def fitting(positive: Any, kind: Any, name: str) -> Any:
    """`positive` as a value of the column's type; an error where it cannot be one."""
    if is_text(kind) != isinstance(positive, str):
        holds = "text" if is_text(kind) else "booleans" if kind == nw.Boolean else "numbers"
        fail(f"positive is {positive!r}, but column {name!r} holds {holds}: give one of its values.")
    return positive


def some_labels(columns: NamedFrame, name: str, positive: Any = None) -> set[Any]:
    """At most `MOST` of the distinct values in a column, which `positive` must be able to be; not the missing ones."""
    if positive is not None:
        fitting(positive, columns.kind(name, "y_true"), name)
    (check,) = present(columns, name, "y_true")
    values = columns.frame.filter(check.holds).select(_comparable(columns, name).alias("label"))
    return set(values.unique().head(MOST).collect()["label"].to_list())


def require_two(labels: Iterable[Any], positive: Any, name: str) -> None:
    """Refuse labels of which `positive` is none, or which have more than one value beside it."""
    found = set(labels)
    others = sorted(found - {positive}, key=str)
    if positive not in found and len(found) < MOST:
        fail(f"No row of column {name!r} is {positive!r}, the positive label; it holds {_listed(others)}.")
    if len(others) > 1:
        fail(
            f"Column {name!r} has more than two labels: beside the positive {positive!r} there are {_listed(others)}. "
            "Filter the rows, or give a column of probabilities for each class."
        )


def require_one_pair(labels: Iterable[Any], name: str) -> None:
    """Refuse words of several pairs, such as yes and false, of which nobody knows what they mean together."""
    words = {str(label).lower() for label in labels}
    if words <= {*YES, *NO} and not any(words <= set(pair) for pair in PAIRS):
        fail(
            f"Column {name!r} mixes the labels {_listed(sorted(map(str, labels)))}: use one pair of words, or name the "
            "event's label with EventColumns(positive=...)."
        )


def unknown_labels(labels: Iterable[Any]) -> str:
    """What to say where words are labels and nobody said which of them is the event; empty where all are known."""
    others = sorted((label for label in labels if str(label).lower() not in (*YES, *NO)), key=str)
    return _listed(others) if others else ""


def _comparable(columns: NamedFrame, name: str) -> nw.Expr:
    kind = columns.kind(name, "y_true")
    return columns[name].cast(nw.String) if is_text(kind) else columns[name]


def _listed(labels: list[Any]) -> str:
    return ", ".join([*map(repr, labels[:3]), *(["..."] if len(labels) > 3 else [])]) or "no label at all"


def labels_of_columns(classes: Sequence[Hashable] | None, y_prob: Sequence[str]) -> tuple[Hashable, ...]:
    """The given labels; else the numbers in the names of the columns (``p2, p0, p1``); else their numbers from 0."""
    if len(y_prob) < 2 or (classes is not None and len(classes) != len(y_prob)):
        given = len(y_prob) if classes is None else len(classes)
        many = f"got {len(y_prob)} columns and {given} classes"
        fail(f"Multiclass data need one column of y_prob per class, {many}.", TypeError)
    if classes is not None:
        return given_classes(classes, len(y_prob), tuple(y_prob))
    return numbered(y_prob) or tuple(range(len(y_prob)))


def label_column(column: nw.Expr, kind: Any, labels: Sequence[Hashable], *, name: str) -> nw.Expr:
    """The column `name` of type `kind`, to be compared with `labels`; refused where nothing could be equal."""
    text = is_text(kind)
    if kind == nw.Boolean and not any(isinstance(label, (bool, str)) for label in labels):
        return column.cast(nw.Int8)
    if {text} != {isinstance(label, str) for label in labels}:
        listed = ", ".join(repr(label) for label in labels[:5])
        fail(
            f"y_true, column {name!r}, holds {kind} values, but the classes are {listed}: pass classes=(...), the "
            "label of each column of y_prob in order."
        )
    return column.cast(nw.String) if text else column
