"""The columns that rows are grouped by: one or several, each by itself or all of them crossed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.groups import group_names
from calibrant.data.validation import InvalidPredictions


@dataclass(frozen=True, eq=False)
class Grouping:
    """One way to divide the rows: the name of its column ("" if it has none), the groups, and the group of each row.

    >>> one = groupings({"place": ["b", "a", "b"]}, length=3)[0]
    >>> one.column, one.names, one.index
    ('place', ['a', 'b'], array([1, 0, 1]))
    """

    column: str
    names: Sequence[Hashable]
    index: NDArray[np.intp]

    def rows(self) -> list[NDArray[np.intp]]:
        """The numbers of the rows of each group."""
        order = np.argsort(self.index, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.index, minlength=len(self.names)))[:-1])


def groupings(by: Any, *, length: int, cross: bool = False, check: Callable[..., None] | None = None) -> list[Grouping]:
    """The groupings of an array, of a list, mapping or frame of columns; crossed into one where that is wanted.

    `check` is called with each column under its name, e.g. to compare its index with that of the predictions.

    >>> [one.column for one in groupings([["x", "y"], [1, 2]], length=2)]
    ['by[0]', 'by[1]']
    >>> groupings({"a": ["x", "y"], "b": [1, 2]}, length=2, cross=True)[0].names
    [('x', 1), ('y', 2)]
    """
    columns = _columns(by, length)
    if check is not None:
        for name, values in columns:
            check(**{name or "by": values})
    if not columns:
        message = "by has no columns."
        raise InvalidPredictions(message)
    found = [
        Grouping(name, *group_names(values, name="by" if name == "" else f"by[{name!r}]", length=length))
        for name, values in columns
    ]
    return [_crossed(found)] if cross and len(found) > 1 else found


def _columns(by: Any, length: int) -> list[tuple[str, Any]]:
    if isinstance(by, Mapping):
        return [(str(name), values) for name, values in by.items()]
    if hasattr(by, "__len__") and hasattr(by, "columns"):  # not lazy frames, whose columns cost a query
        return _frame_columns(by)
    if isinstance(by, list | tuple) and by and all(_is_column(part, length) for part in by):
        return [(str(getattr(part, "name", None) or f"by[{k}]"), part) for k, part in enumerate(by)]
    if isinstance(by, np.ndarray) and by.ndim == 2 and by.shape[1] > 1:
        return [(f"by[:, {k}]", by[:, k]) for k in range(by.shape[1])]
    return [(str(getattr(by, "name", None) or ""), by)]


def _frame_columns(by: Any) -> list[tuple[str, Any]]:
    """The columns of a pandas, Polars or PyArrow frame."""
    names = [str(name) for name in getattr(by, "column_names", by.columns)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        message = f"by has several columns named {repeated[0]!r}; their names must differ."
        raise InvalidPredictions(message)
    keys = getattr(by, "column_names", by.columns)
    return [(str(key), by[key]) for key in keys]


def _is_column(part: Any, length: int) -> bool:
    return not isinstance(part, str | bytes) and hasattr(part, "__len__") and np.ndim(part) == 1 and len(part) == length


def _crossed(found: list[Grouping]) -> Grouping:
    """One grouping whose names are tuples: the combinations that occur."""
    pairs = np.stack([one.index for one in found], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    names = [tuple(one.names[k] for one, k in zip(found, line, strict=True)) for line in distinct.tolist()]
    return Grouping(" x ".join(one.column for one in found), names, index.reshape(-1))
