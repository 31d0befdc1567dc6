"""What the labels of an event may be: 0 and 1, truth values, yes and no, or any two values one of which is named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.data.validation import InvalidPredictions
from calibrant.scale.checks import Check, present
from calibrant.scale.named_columns import NamedFrame

#: Words for 1 and for 0, in any case.
YES, NO = ("true", "yes"), ("false", "no")
#: Distinct labels that are looked at, at most.
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
        return occurred, (*there, Check("y_true", "not 0 or 1", known, name))
    label = columns.number(name, "y_true")
    return label, (*there, Check("y_true", "not 0 or 1", (label == 0) | (label == 1), name))


def is_text(kind: Any) -> bool:
    """Whether labels of this type are words."""
    return kind == nw.String or kind == nw.Categorical or kind == nw.Enum


def fitting(positive: Any, kind: Any, name: str) -> Any:
    """`positive` as a value of the column's type; an error where it cannot be one."""
    if is_text(kind) == isinstance(positive, str):
        return positive
    holds = "text" if is_text(kind) else "truth values" if kind == nw.Boolean else "numbers"
    message = f"positive is {positive!r}, but column {name!r} holds {holds}: give one of its values."
    raise InvalidPredictions(message)


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
        message = f"No row of column {name!r} is {positive!r}, the positive label; it holds {_listed(others)}."
        raise InvalidPredictions(message)
    if len(others) > 1:
        message = (
            f"Column {name!r} has more than two labels: beside the positive {positive!r} there are {_listed(others)}. "
            "Filter the rows, or measure several classes."
        )
        raise InvalidPredictions(message)


def unknown_labels(labels: Iterable[Any]) -> str:
    """What to say where words are labels and nobody said which of them is the event; empty where all are known."""
    others = sorted((label for label in labels if str(label).lower() not in (*YES, *NO)), key=str)
    return _listed(others) if others else ""


def _comparable(columns: NamedFrame, name: str) -> nw.Expr:
    kind = columns.kind(name, "y_true")
    return columns[name].cast(nw.String) if is_text(kind) else columns[name]


def _listed(labels: list[Any]) -> str:
    return ", ".join(map(repr, labels[:3])) + (", ..." if len(labels) > 3 else "") if labels else "no label at all"
