"""Rules that the rows of a source must keep, and the words in which rows that break them are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import narwhals.stable.v2 as nw

from calibrant.scale.named_columns import NamedFrame


@dataclass(frozen=True)
class Check:
    """A rule for the rows, by the role of the column it is about and how rows that break it are described.

    `implied` rules fail only where a later one fails too: they give the reason its name but need not be asked
    to find the invalid rows.
    """

    role: str
    broken: str
    holds: nw.Expr
    column: str | None = None
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
    return (Check(role, "missing", held, name, implied=implied),)


def finite(values: nw.Expr) -> nw.Expr:
    """Whether numbers are finite."""
    return (values > float("-inf")) & (values < float("inf"))


def probability(columns: NamedFrame, name: str) -> tuple[nw.Expr, tuple[Check, ...]]:
    """A column of probabilities, and its rules."""
    score = columns.number(name, "y_prob")
    inside = Check("y_prob", "outside [0, 1]", (score >= 0) & (score <= 1), name)
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
