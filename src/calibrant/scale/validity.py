"""What is refused before a table is given away: invalid rows, labels that are no two, weights beyond all numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from calibrant.data.validation import InvalidPredictions
from calibrant.scale.checks import counted, named_reasons
from calibrant.scale.columns import EventColumns
from calibrant.scale.group_by import Plan, Tables, extreme_weights
from calibrant.scale.labels import require_two, some_labels, unknown_labels
from calibrant.scale.named_columns import NamedFrame
from calibrant.scale.progress import Watch
from calibrant.scale.sources import Shard
from calibrant.table.unlabeled import Unlabeled

#: The square of the sum of weights must be a number, and the sum of squares one that has all its digits.
LARGEST_TOTAL, SMALLEST_SQUARES = 1e150, 1e-290


def require_known_labels(parts: Sequence[Shard], plan: Plan, watch: Watch) -> None:
    """Where one label was named the event, there is one other."""
    if isinstance(plan.task, EventColumns) and plan.task.positive is not None:
        require_two(_labels(parts, plan, watch), plan.task.positive, plan.y_true)


def require_valid(tables: Tables, max_invalid: float, parts: Sequence[Shard], plan: Plan, watch: Watch) -> None:
    """Refuse more invalid rows than are tolerated, and sources that have no others."""
    rows = sum(table.n for table in tables.values())
    invalid = sum((Counter(table.invalid) for table in tables.values()), Counter[str]())
    bad = invalid.total()
    if bad > max_invalid * (rows + bad):
        are = "is" if bad == 1 else "are"
        share = f"a share of {bad / (rows + bad):.3g}; max_invalid={max_invalid:g} allows no more than that"
        message = (
            f"{bad:,} of {rows + bad:,} rows {are} invalid ({_described(invalid, parts, plan, watch)}), {share}. "
            f"Raise it to leave such rows out and count them.{_remedy(invalid, parts, plan, watch)}"
        )
        raise InvalidPredictions(message)
    if rows == 0:
        reason = f" ({_described(invalid, parts, plan, watch)})" if invalid else ""
        message = f"The source has no valid rows{reason}: {', '.join(part.name for part in parts)}."
        raise InvalidPredictions(message)


def require_share(max_invalid: float) -> None:
    """Refuse NaN above all, which no share of invalid rows exceeds."""
    if not 0 <= max_invalid <= 1:
        message = f"max_invalid must be a share, in [0, 1], got {max_invalid!r}."
        raise InvalidPredictions(message)


def require_weight(tables: Tables, column: str | None) -> None:
    """Refuse weights that are all zero."""
    if column is not None and not any(table.weight.any() for table in tables.values()):
        rows = sum(table.n for table in tables.values())
        message = f"{column} must not be all zero, but all {rows} values are."
        raise InvalidPredictions(message)


def require_possible(tables: Tables) -> None:
    """Refuse a label frequency by which more than all rows would be positive."""
    for group, table in tables.items():
        frequency = table.task.label_frequency if isinstance(table.task, Unlabeled) else None
        share = float(table.observed.sum()) / table.total if frequency is not None and table.n else 0.0
        if frequency is not None and not share < frequency:
            where = f" of group {group}" if group else ""
            message = (
                f"label_frequency is {frequency:g}, but {share:g} of all rows{where} are labelled: more "
                "than all rows would be positive."
            )
            raise InvalidPredictions(message)


def require_squares(tables: Tables, column: str | None) -> None:
    """Refuse weights whose squares vanish, or whose sum has no square: effective numbers of rows need both."""
    if column is None:
        return
    for table in tables.values():
        with np.errstate(over="ignore"):
            total, squares = table.population
        if total > LARGEST_TOTAL:
            raise InvalidPredictions(extreme_weights(column, "large"))
        if total > 0 and squares < SMALLEST_SQUARES:
            raise InvalidPredictions(extreme_weights(column, "small"))


def _labels(parts: Sequence[Shard], plan: Plan, watch: Watch) -> set[Any]:
    """Some of the distinct labels, enough to tell two from more."""
    work = partial(_some_labels, name=plan.y_true, positive=getattr(plan.task, "positive", None))
    wanted = {plan.y_true: "y_true"}
    return set[Any]().union(*(part.apply(work, wanted, watch, _union) for part in parts))


def _some_labels(columns: NamedFrame, name: str, positive: Any, *, counted: bool) -> set[Any]:
    return some_labels(columns, name, positive)


def _union(found: Sequence[set[Any]]) -> set[Any]:
    return set[Any]().union(*found)


def _described(invalid: Counter[str], parts: Sequence[Shard], plan: Plan, watch: Watch) -> str:
    """Reasons with their rows and columns, and the first row where the source is a file."""
    checks = parts[0].apply(partial(_checks, plan=plan), plan.wanted, watch, _first)
    first = next((found for part in parts if (found := part.first_invalid(plan)) is not None), None)
    return counted(invalid, checks) + (f"; first: {first}" if first else "")


def _checks(columns: NamedFrame, plan: Plan, *, counted: bool) -> dict[str, str]:
    return named_reasons(plan.rows(columns).checks)


def _first(found: Sequence[Any]) -> Any:
    return found[0]


def _remedy(invalid: Counter[str], parts: Sequence[Shard], plan: Plan, watch: Watch) -> str:
    """Where words are labels: which they are, and how to say which of them is the event."""
    if "y_true not 0 or 1" not in invalid or not isinstance(plan.task, EventColumns):
        return ""
    words = unknown_labels(label for label in _labels(parts, plan, watch) if isinstance(label, str))
    said = f" Column {plan.y_true!r} holds {words}: name the event's label with EventColumns(positive=...)."
    return said if words else ""
