"""Class labels and the columns they belong to: names of columns are honoured, labels that fit none are refused."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.validation import NO_LISTS, as_array, column_names, ends_in_null, fail, one_dimension
from calibrant.numerics.arrays import Codes

Labels = tuple[Hashable, ...]

#: How many labels a message lists.
#: Test: tests/data/test_labels.py::test_a_message_lists_five_labels.
SHOWN = 5


def class_codes(
    labels: NDArray[Any],
    columns: int,
    *,
    classes: Sequence[Hashable] | None = None,
    names: Labels | None = None,
    name: str = "y_true",
) -> tuple[Codes, Labels]:
    """The column number of each of `labels`, and the labels of the columns; `name` is for messages.

    The labels of the columns are `classes`; else the `names` of the columns, where these are the labels or hold them
    between a prefix and a suffix that all columns share (``p_cat, p_dog``, ``score_0, score_1``); else, for columns
    without names, 0 .. K-1, or the sorted labels where these are K texts.
    """
    if labels.dtype.kind == "c":
        fail(f"{name} must hold labels, got complex numbers.")
    if classes is None and names is None and labels.dtype.kind in "iu" and 0 <= labels.min() <= labels.max() < columns:
        return labels.astype(np.intp), tuple(range(columns))
    values, inverse = np.unique(labels, return_inverse=True)
    if classes is not None:
        known = given_classes(classes, columns, names)
    elif names is not None:
        known = _matched(values.tolist(), names, name)
    else:
        known = _unnamed(values.tolist(), columns, name)
    unreadable = next((label for label in known if ends_in_null(label)), None)  # another text in an array of labels
    if unreadable is not None:
        fail(f"The class {unreadable!r} ends in a null character, which no label in an array does: remove it.")
    code = {label: k for k, label in enumerate(known)}
    lookup = np.array([code.get(value, -1) for value in values.tolist()], dtype=np.intp)
    codes = lookup[inverse.reshape(-1)]
    if (lookup < 0).any():
        bad, unknown = codes < 0, values[lookup < 0].tolist()
        first, are = int(np.argmax(bad)), "is" if bad.sum() == 1 else "are"
        fail(
            f"{name} must be one of the {len(known)} classes {_listed(known)}, but {bad.sum()} of {len(labels)} rows "
            f"{are} not (first: {name}[{first}] = {labels[first].item()!r}). Unknown: {_listed(unknown)}."
        )
    return codes, known


def given_classes(classes: Sequence[Hashable], columns: int, names: Labels | None = None) -> Labels:
    """The given labels of the columns, which must be as many as these, distinct, and not contradict their names."""
    listed = isinstance(classes, Iterable) and not isinstance(classes, NO_LISTS)
    known = tuple(label.item() if isinstance(label, np.generic) else label for label in classes) if listed else ()
    if not listed or not all(isinstance(label, Hashable) for label in known):
        fail(f"classes must be a list of labels, one per column in their order, got {classes!r}.")
    if len(known) != columns or len(set(known)) != columns:
        fail(f"classes must name each of the {columns} columns once, got {list(known)}.")
    named = None if names is None else _reading(list(known), names)
    if named is not None and named != known and set(named) == set(known):
        fail(
            f"classes names the columns {_listed(known)}, but they are called {_listed(names or ())}: leave classes "
            "out to go by the names, or reorder the columns."
        )
    return known


def indicator_labels(
    own: Labels | None, columns: int, *, classes: Sequence[Hashable] | None, names: Labels | None
) -> Labels:
    """The labels of the columns where outcomes come as one column per class, whose names are `own`."""
    if classes is not None:
        return given_classes(classes, columns, names)
    if own is not None and names is not None:
        return _matched(list(own), names, "the columns of y_true")
    return given_classes(own or names or range(columns), columns)


def numbered(names: Sequence[Hashable]) -> tuple[int, ...] | None:
    """The numbers in names such as ``p0, p1, p2`` or ``class 2, class 0``; None where names differ in anything else."""
    found = [re.fullmatch(r"(\D*)(\d+)(\D*)", name) if isinstance(name, str) else None for name in names]
    parts = [match.groups() for match in found if match is not None]
    numbers = tuple(int(number) for _, number, _ in parts)
    alike = len(parts) == len(names) and len({(before, after) for before, _, after in parts}) == 1
    return numbers if alike and len(set(numbers)) == len(numbers) else None


def ordered_columns(values: Any, classes: Sequence[Hashable], *, name: str) -> Any:
    """A data frame whose columns are named by `classes`, as an array in their order; everything else as it is."""
    names = column_names(values)
    if names is None or len(names) != len(classes) or len(names) < 2:
        return values
    known = _reading(list(classes), names)
    if known is None:
        return values
    if set(known) != set(classes):
        fail(f"{name} has the columns {_listed(names)}, but the classes are {_listed(classes)}.")
    place = {label: k for k, label in enumerate(known)}
    return as_array(name, values)[:, [place[label] for label in classes]]


def positive_labels(name: str, values: ArrayLike, positive: Hashable, *, length: int) -> NDArray[np.int8]:
    """1 where the label is `positive` and 0 where it is the only other one."""
    labels = one_dimension(name, as_array(name, values), length)
    found = np.unique(labels)
    if len(found) > 2:
        fail(f"{name} must hold two labels, but it holds {len(found)}: {_listed(found.tolist())}. Use Multiclass.")
    if positive not in found.tolist():
        fail(f"positive={positive!r} is not a label of {name}, which holds {_listed(found.tolist())}.")
    return (labels == positive).astype(np.int8)


def _unnamed(found: list[Any], columns: int, name: str) -> Labels:
    """Labels of columns without names: numbers from 0, or the sorted texts."""
    if not isinstance(found[0], (str, bytes)):
        return tuple(range(columns))
    if len(found) != columns:
        fail(f"{name} holds {len(found)} different labels for {columns} columns: pass classes=[...].")
    if all(label.isdigit() for label in found) and found != sorted(found, key=int):
        fail(f"{name} holds numbers as text ({_listed(found)}), whose order is not clear: pass classes=[...].")
    return tuple(found)


def _matched(found: list[Any], names: Labels, name: str) -> Labels:
    """The labels of named columns, one per name."""
    known = _reading(found, names)
    if known is None:
        fail(
            f"The labels of {name} ({_listed(found)}) cannot be matched with the columns {_listed(names)}: pass "
            "classes=[...], the label of each column in order."
        )
    return known  # labels that are none of them are refused as unknown


def _reading(found: list[Any], names: Labels) -> Labels | None:
    """The names themselves where labels are among them, else the one way to read all labels out of the names."""
    if len(set(names)) < len(names):
        twice = next(label for label in names if names.count(label) > 1)
        fail(f"Two columns are called {twice!r}: rename them, or pass their values and classes=[...].")
    if any(label in names for label in found):
        return names
    candidates = {labels for labels in _readings(found, names) if set(found) <= set(labels)}
    return candidates.pop() if len(candidates) == 1 else None


def _readings(found: list[Any], names: Labels) -> list[Labels]:
    """Ways to read labels out of names that are not the labels themselves."""
    if not isinstance(found[0], str):
        numbers = numbered(names)
        return [] if numbers is None else [numbers]
    texts = tuple(str(label) for label in names)
    if not all(isinstance(label, str) for label in names):
        return [texts]
    first = found[0]
    ends = {
        (text[:at], text[at + len(first) :])
        for text in texts
        for at in range(len(text))
        if first and text.startswith(first, at)
    }
    between = (re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL) for before, after in ends)
    matches = ([pattern.fullmatch(text) for text in texts] for pattern in between)
    return [tuple(match[1] for match in some if match) for some in matches if all(some)]


def _listed(labels: Sequence[Any]) -> str:
    more = f", ... ({len(labels)} in all)" if len(labels) > SHOWN else ""
    return ", ".join(repr(label) for label in labels[:SHOWN]) + more
