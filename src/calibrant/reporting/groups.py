"""The groups of a report: the rows or the table of each, under names that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.groups import group_texts
from calibrant.data.predictions import Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.table.bintable import BinTable

#: Groups beyond these, the largest first, are left out.
MOST_GROUPS = 50
#: What the figures call all rows.
ALL_ROWS = "all rows"


def group_tables(
    data: Any, by: ArrayLike | Mapping[Any, BinTable | ArrayLike] | None, *, most: int | None = MOST_GROUPS
) -> dict[str, Any]:
    """The rows, or the table, of each group; the largest come first and at most `most` of each grouping."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        tables = {name: table for name, table in by.items() if isinstance(table, BinTable)}
        parts: dict[str, Any] = dict(zip(group_texts(tables, taken=ALL_ROWS), tables.values(), strict=True))
        groupings = {
            name: group_tables(data, some, most=most) for name, some in by.items() if not isinstance(some, BinTable)
        }
        rows = {f"{name} = {group}": part for name, some in groupings.items() for group, part in some.items()}
        return dict(sorted(parts.items(), key=lambda pair: -number_of_rows(pair[1]))[:most]) | rows
    if isinstance(data, BinTable):
        message = "A table has no rows to group; give one table per group, e.g. from scale.bin_tables(..., by=...)."
        raise InvalidPredictions(message)
    names, index = data.row_groups(by)
    chosen = np.argsort(-np.bincount(index), kind="stable")[:most]
    texts = group_texts(names, taken=ALL_ROWS)
    return {texts[k]: data.take(index == k) for k in chosen}


def number_of_rows(part: Predictions | BinTable) -> int:
    """The rows behind a table, or those of predictions."""
    return part.n if isinstance(part, BinTable) else len(part)
