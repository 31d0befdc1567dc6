"""Ranges of scores in words, and how the observed frequency lies to the prediction in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from calibrant.reporting.contents import Bin
from calibrant.reporting.rounding import score

Relation = Literal["above", "below", "within chance"]


def score_range(low: float, high: float, *, of: str = "") -> str:
    r"""A range of scores: "below 0.2 %", "1 to 5 %", "above 20 %"; `of` stands before a range with two ends.

    Examples
    --------
    >>> score_range(0.0, 0.002), score_range(0.01, 0.05, of="of "), score_range(0.2, 1.0), score_range(0.3, 0.3)
    ('below 0.2 %', 'of 1 to 5 %', 'above 20 %', '30 %')
    """
    if low == high:
        return f"{of}{score(low)}"
    if low <= 0 and high < 1:
        return f"below {score(high)}"
    if high >= 1 and low > 0:
        return f"above {score(low)}"
    return f"{of}{score(low).removesuffix(' %')} to {score(high)}"


def range_name(b: Bin, ranges: Sequence[Bin], *, of: str = "") -> str:
    """The name of one of several ranges that hold all rows: the first is "below", the last "above"."""
    first, last = b is ranges[0], b is ranges[-1]
    low = 0.0 if first and not last else b.low
    high = 1.0 if last and not first else b.high
    return score_range(low, high, of=of)


def outside(b: Bin) -> bool:
    """Whether the interval of the observed frequency excludes the mean prediction."""
    return b.observed.excludes(b.predicted)


def relation(b: Bin) -> Relation:
    """How the observed frequency lies to the prediction."""
    if not outside(b):
        return "within chance"
    return "above" if b.observed.value > b.predicted else "below"


def runs(bins: Sequence[Bin]) -> list[tuple[Relation, float, float]]:
    """Neighbouring ranges with the same relation, joined: relation, low end, high end; the outer ends are 0 and 1."""
    found: list[tuple[Relation, float, float]] = []
    for b in bins:
        kind = relation(b)
        low, high = 0.0 if b is bins[0] else b.low, 1.0 if b is bins[-1] else b.high
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1], high)
        else:
            found.append((kind, low, high))
    return found
