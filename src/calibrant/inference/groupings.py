"""The columns that rows are grouped by: one or several, each by itself and crossed with others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.groups import are_numbers, group_names, missing_name, quantile_groups
from calibrant.data.validation import fail, require_same_index

#: Up to this many combinations of groups have a place in a table; of more, those that occur are searched for.
#: Speed: the table has 8 MB, and a lookup costs less than a sort; no result depends on it.
_MOST_COMBINATIONS = 1_000_000


@dataclass(frozen=True, eq=False)
class Grouping:
    """One way to divide the rows: the name of its column ("" if it has none), the groups, and the group of each row.

    `parts` are the numbers of each row's group in each column that is crossed, `combinations` the group of each
    combination of them (-1 if it does not occur; None for one column). `ordered`: the groups are numbers or ranges of
    them.
    """

    column: str
    names: Sequence[Hashable]
    parts: tuple[NDArray[np.intp], ...]
    combinations: NDArray[np.intp] | None = None
    ordered: bool = False

    @property
    def index(self) -> NDArray[np.intp]:
        """The number of each row's group."""
        return self.parts[0] if self.combinations is None else self.combinations[self.parts]

    def rows(self) -> list[NDArray[np.intp]]:
        """The numbers of the rows of each group."""
        index = self.index
        order = np.argsort(index, kind="stable")
        return np.split(order, np.cumsum(np.bincount(index, minlength=len(self.names)))[:-1])

    def require_all(self, weighted: NDArray[np.bool_]) -> None:
        """Refuse a group whose rows all have weight 0."""
        if not weighted.all():
            name = self.names[int(np.argmin(weighted))]
            fail(f"All rows of group {name!r} have weight 0, so nothing is known about it; leave them out.")

    def take(self, rows: NDArray[np.intp]) -> Grouping:
        """The same for some of the rows; groups without rows are left out."""
        kept, index = np.unique(self.index[rows], return_inverse=True)
        return Grouping(self.column, [self.names[k] for k in kept], (index.reshape(-1),), ordered=self.ordered)


def groupings(
    by: Any, *, length: int, depth: int = 1, quantiles: int | None = None, check: Callable[..., None] | None = None
) -> list[Grouping]:
    """The groupings of an array, of a list, mapping or frame of columns, and of all crosses of up to `depth` of them.

    Numbers with more distinct values are divided at `quantiles`; `check` is called with each column under its name.
    """
    columns = _columns(by, length)
    if check is not None:
        for name, values in columns:
            check(**{name or "by": values})
    require_same_index((name or "by", values) for name, values in columns)
    if not columns:
        fail("by has no columns.")
    found = []
    for name, values in columns:
        shown = "by" if name == "" else f"by[{name!r}]"
        ranges = None if quantiles is None else quantile_groups(values, quantiles, name=shown, length=length)
        names, index = ranges or group_names(values, name=shown, length=length)
        ordered = ranges is not None or are_numbers(names)
        found.append(Grouping(name, names, (index,), ordered=ordered and missing_name(names[:-1]) != names[-1]))
    crosses = [_crossed(some) for size in range(2, depth + 1) for some in combinations(found, size)]
    return [*found, *crosses]


def _columns(by: Any, length: int) -> list[tuple[str, Any]]:
    if isinstance(by, Mapping):
        return [(str(name), values) for name, values in by.items()]
    if hasattr(by, "__len__") and hasattr(by, "columns"):  # not lazy frames, whose columns cost a query
        keys = list(getattr(by, "column_names", by.columns))  # of pandas, Polars or PyArrow
        names = [str(key) for key in keys]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            fail(f"by has several columns named {repeated[0]!r}; their names must differ.")
        return [(name, by[key]) for name, key in zip(names, keys, strict=True)]
    if isinstance(by, list | tuple) and by and all(_is_column(part, length) for part in by):
        return [(str(getattr(part, "name", None) or f"by[{k}]"), part) for k, part in enumerate(by)]
    if isinstance(by, np.ndarray) and by.ndim == 2 and by.shape[1] > 1:
        return [(f"by[:, {k}]", by[:, k]) for k in range(by.shape[1])]
    return [(str(getattr(by, "name", None) or ""), by)]


def _is_column(part: Any, length: int) -> bool:
    return not isinstance(part, str | bytes) and hasattr(part, "__len__") and np.ndim(part) == 1 and len(part) == length


def _crossed(found: Sequence[Grouping]) -> Grouping:
    """One grouping whose names are tuples: the combinations that occur."""
    column = " x ".join(one.column for one in found)
    parts, shape = tuple(one.index for one in found), tuple(len(one.names) for one in found)
    if np.prod(shape, dtype=np.float64) <= _MOST_COMBINATIONS:
        occurs = np.bincount(np.ravel_multi_index(parts, shape), minlength=int(np.prod(shape))) > 0
        numbers = np.where(occurs, np.cumsum(occurs) - 1, -1).reshape(shape)
        lines = np.argwhere(occurs.reshape(shape))
    else:
        lines, index = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)
        parts, numbers = (index.reshape(-1),), None
    names = [tuple(one.names[k] for one, k in zip(found, line, strict=True)) for line in lines.tolist()]
    return Grouping(column, names, parts, numbers)


@dataclass(frozen=True, eq=False)
class GroupEvidence:
    """One group of one grouping with its test and p-values: by itself, adjusted, and adjusted where it was found."""

    grouping: Grouping
    number: int
    method: str
    statistic: float
    p_value: float
    adjusted: float
    found: float | None = None
    of_cells: Any = None
    """Coverage by group, where that was tested."""
