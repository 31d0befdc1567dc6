"""From what a user gives (rows or a table) to the table that an estimator needs, of all rows or of each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.groups import group_texts
from calibrant.data.predictions import Binary, Column, Predictions, binary
from calibrant.data.validation import fail
from calibrant.numerics.binned_sums import checked_equal_width_sums
from calibrant.table.binning import Binning, Distinct, EqualWidth, as_binning
from calibrant.table.bintable import BinTable
from calibrant.table.from_rows import of_bins
from calibrant.table.task import Spread, Unlabeled

Data = Predictions | BinTable | Column
"""What an estimator takes first: predictions, a table, or y_true (with y_prob second); None where it comes by name."""


def binned(
    data: Data,
    y_prob: ArrayLike | None,
    bins: Binning,
    *,
    squares: bool = True,
    needed_by: str | None = None,
    linear: bool = False,
) -> tuple[BinTable, str]:
    """The table of `data` in `bins`, and the words for it. A table that has bins already is taken as it is.

    `needed_by` names an estimator of probabilities; without it tables of spreads will do as well. A `linear` one needs
    no more than sums of outcomes, so that these may be probabilities.
    """
    bins = as_binning(bins)
    if isinstance(data, BinTable):
        require_rows(data)
    if (made := _in_one_pass(data, y_prob, bins)) is not None:
        table, words = made, repr(bins)
    elif not isinstance(data, BinTable):
        task = binary(data, y_prob)
        rows = task.linear_rows() if linear and isinstance(task, Binary) and task.outcomes is None else task
        table, words = BinTable.of(rows, bins, squares=squares), repr(bins)
    elif data.fine:
        table, words = data.coarsen(bins), repr(bins)
    else:
        table, words = data, f"{len(data)} given bins"
    if needed_by is not None:
        require_kind(table, needed_by=needed_by)
    table.task.warn(table)
    return table, words


def _in_one_pass(data: Data, y_prob: ArrayLike | None, bins: Binning) -> BinTable | None:
    """The table of two plain arrays in bins of equal width, checked and summed in one pass; None if it takes more."""
    if type(data) is not np.ndarray or type(y_prob) is not np.ndarray or not isinstance(bins, EqualWidth):
        return None
    sums = checked_equal_width_sums(data, y_prob, bins.edges)
    return None if sums is None else BinTable(*of_bins(bins.edges, sums))


def fine(data: Data, y_prob: ArrayLike | None, *, needed_by: str, spread: bool = False) -> BinTable:
    """The exact table of `data`, without cells that hold nothing; a fine table is taken as it is."""
    if not isinstance(data, BinTable):
        data = BinTable.of(binary(data, y_prob), Distinct())
    require_fine(data, needed_by=needed_by, spread=spread)
    some = (data.weight > 0) | (data.observed > 0)  # cells of labelled positives alone weigh nothing, but count
    return data if some.all() else data.take(some)


def outcome_cells(data: Data, *, needed_by: str) -> BinTable:
    """The exact table of `data`, whose rows must have an outcome each."""
    cells = fine(data, None, needed_by=needed_by)
    if isinstance(cells.task, Unlabeled):
        fail(f"Positive-unlabeled tables have no outcomes per row, which {needed_by} needs.", ValueError)
    return cells


def require_rows(table: BinTable) -> None:
    """Refuse a table without rows that weigh anything, and one of positive-unlabeled data without positives."""
    if len(table) == 0 or not table.total > 0:
        left_out = f" ({sum(table.invalid.values()):_} invalid ones were left out)" if table.invalid else ""
        fail(f"The table holds no rows with a positive weight{left_out}, so there is nothing to measure.")
    if isinstance(table.task, Unlabeled) and not table.observed.sum() > 0:
        fail("The table holds no labelled positives, so nothing is known about the outcomes.")


def require_kind(table: BinTable, *, needed_by: str, spread: bool = False) -> None:
    """Refuse a table of spreads where probabilities are needed, the reverse, and tables of nothing."""
    require_rows(table)
    if isinstance(table.task, Spread) == spread:
        return
    if spread:
        message = (
            f"{needed_by} needs predicted spreads and errors, but this table holds probabilities and outcomes: use "
            "ece, debiased_ece or variational_error, or make the table of Gaussian(y_true, mean, std)."
        )
    else:
        message = (
            f"{needed_by} needs probabilities and outcomes, but this table holds predicted spreads and squared errors: "
            "use ence, debiased_ence or mean_squared_z, or make the table of Binary(y_true, y_prob)."
        )
    raise ValueError(message)


def require_fine(table: BinTable, *, needed_by: str, spread: bool = False) -> None:
    """Refuse a table of bins where cells are needed, and one of the wrong kind."""
    require_kind(table, needed_by=needed_by, spread=spread)
    if not table.fine:
        fail(f"{needed_by} needs a fine table (or the predictions); this one has only {len(table)} bins.", ValueError)


#: Groups beyond these, the largest first, are left out.
#: Test: tests/table/test_of_data.py::test_a_report_shows_the_largest_groups_and_a_gate_sees_all.
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
        fail("A table has no rows to group; give one table per group, e.g. from scale.bin_tables(..., by=...).")
    names, index = data.row_groups(by)
    sizes, order = np.bincount(index), np.argsort(index, kind="stable")
    ends, texts = np.cumsum(sizes), group_texts(names, taken=ALL_ROWS)
    chosen = np.argsort(-sizes, kind="stable")[:most]
    return {texts[k]: data.take(order[ends[k] - sizes[k] : ends[k]]) for k in chosen}


def number_of_rows(part: Predictions | BinTable) -> int:
    """The rows behind a table, or those of predictions."""
    return part.n if isinstance(part, BinTable) else len(part)
