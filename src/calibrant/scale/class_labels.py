"""Which label belongs to which column of class probabilities, and whether a column of outcomes can hold such labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.data.labels import given_classes, numbered
from calibrant.data.validation import InvalidPredictions


def labels_of_columns(classes: Sequence[Hashable] | None, y_prob: Sequence[str]) -> tuple[Hashable, ...]:
    """The given labels; else the numbers in the names of the columns (``p2, p0, p1``); else their numbers from 0.

    >>> labels_of_columns(None, ["p2", "p0", "p1"]), labels_of_columns(None, ["cat", "dog"])
    ((2, 0, 1), (0, 1))
    """
    if len(y_prob) < 2 or (classes is not None and len(classes) != len(y_prob)):
        given = len(y_prob) if classes is None else len(classes)
        message = f"Several classes need one column of y_prob each, got {len(y_prob)} columns and {given} classes."
        raise TypeError(message)
    if classes is not None:
        return given_classes(classes, len(y_prob), tuple(y_prob))
    return numbered(y_prob) or tuple(range(len(y_prob)))


def label_column(column: nw.Expr, kind: Any, labels: Sequence[Hashable], *, name: str) -> nw.Expr:
    """The column `name` of type `kind`, to be compared with `labels`; refused where nothing could be equal."""
    text = isinstance(kind, (nw.String, nw.Categorical, nw.Enum))
    if kind == nw.Boolean and not any(isinstance(label, (bool, str)) for label in labels):
        return column.cast(nw.Int8)
    if text == all(isinstance(label, str) for label in labels) and text == any(isinstance(x, str) for x in labels):
        return column.cast(nw.String) if text else column
    listed = ", ".join(repr(label) for label in labels[:5])
    message = (
        f"y_true, column {name!r}, holds {kind} values, but the classes are {listed}: pass classes=(...), the label of "
        "each column of y_prob in order."
    )
    raise InvalidPredictions(message)
