"""The types of the columns of several files: compared, widened where they are numbers, refused where they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: DuckDB's types of whole numbers, and of floating-point ones.
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
WHOLE = (*SIGNED, "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT")
FLOATING = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Part:
    """Files whose columns have the same names and types: what to read them by, and what is in them.

    `absent_is_missing` says that a column which is not there has missing values, as in JSON.
    """

    scan: str
    types: dict[str, str]
    first: str
    absent_is_missing: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns that all parts share, by type, and why others cannot be used."""

    types: dict[str, str]
    refused: dict[str, str] = field(default_factory=dict)


def common_schema(parts: Sequence[Part], is_empty: Callable[[Part, str], bool]) -> Schema:
    """The columns of all parts under one type each.

    Whole and floating-point numbers are widened. A column with any other mixture of types, or that some files lack,
    is refused once somebody asks for it; `is_empty` tells whether a part has no value at all in a column, which then
    fits every type.
    """
    types: dict[str, str] = {}
    refused: dict[str, str] = {}
    for column in dict.fromkeys(column for part in parts for column in part.types):
        holders = [part for part in parts if column in part.types]
        lacking = [part for part in parts if column not in part.types and not part.absent_is_missing]
        if lacking:
            refused[column] = (
                f"Cannot read {lacking[0].first!r}: it has no column {column!r}, which {holders[0].first!r} has; its "
                f"columns are {', '.join(map(repr, lacking[0].types))}."
            )
            continue
        kind = widened([part.types[column] for part in holders])
        if kind is None:
            filled = [part for part in holders if not is_empty(part, column)] or holders[:1]
            kind = widened([part.types[column] for part in filled])
            if kind is None:
                refused[column] = _mixed(column, filled)
                continue
        types[column] = kind
    return Schema(types, refused)


def widened(kinds: Sequence[str]) -> str | None:
    """One type for all values of these types without loss, None where there is none."""
    found = set(kinds)
    if len(found) == 1:
        return kinds[0]
    if found <= {*WHOLE, *FLOATING} and found & set(FLOATING):
        return "DOUBLE"
    if found <= set(WHOLE):
        return max(found, key=SIGNED.index) if found <= set(SIGNED) else "HUGEINT"
    return None


def _mixed(column: str, parts: Sequence[Part]) -> str:
    first = parts[0]
    other = next(part for part in parts if widened([part.types[column], first.types[column]]) is None)
    return (
        f"Cannot read {other.first!r}: column {column!r} is of type {other.types[column]} there and of type "
        f"{first.types[column]} in {first.first!r}. Write both files with one type; only numbers are widened."
    )
