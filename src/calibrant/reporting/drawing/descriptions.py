"""What figures show, in words: titles, one sentence with numbers, and texts for readers who do not see the figure."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Literal

from calibrant.reporting.contents import Bin, Classes, GroupRow, Groups, Recalibration
from calibrant.reporting.names import listed, map_in_sentence, plural
from calibrant.reporting.rounding import above, out_of, percent, rates, ratio, score, span

Relation = Literal["above", "below", "within chance"]


def score_range(low: float, high: float, *, of: str = "") -> str:
    """A range of scores: "below 0.2 %", "1 to 5 %", "above 20 %"; `of` stands before a range with two ends."""
    if low == high:
        return f"{of}{score(low)}"
    if low <= 0 and high < 1:
        return f"below {score(high)}"
    if high >= 1 and low > 0:
        return f"above {score(low)}"
    return f"{of}{span(low, high)}"


def range_name(b: Bin, ranges: Sequence[Bin], *, of: str = "") -> str:
    """The name of one of several ranges that hold all rows: the first is "below", the last "above"."""
    first, last = b is ranges[0], b is ranges[-1]
    low = 0.0 if first and not last else b.low
    high = 1.0 if last and not first else b.high
    return score_range(low, high, of=of)


def relation(b: Bin) -> Relation:
    """How the observed frequency lies to the prediction."""
    if not b.off:
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


def observed_share(b: Bin) -> tuple[str, str]:
    """The observed share of a bin in percent, and its interval, or nothing."""
    found = rates(b.observed, b.predicted)
    return f"{found.value} %", f"{found.ends} %" if found.ends else ""


def groups_title(section: Groups, event: str, *, spread: bool = False) -> str:
    """The one group that differs from the rest, or how many are flagged and in which direction."""
    noun = section.column.replace("_", " ")
    flagged = [row for row in section.rows if row.flagged]
    if not flagged:
        tested = not all(isnan(row.p_value) for row in section.rows)
        return f"No {noun} {'differs beyond chance' if tested else 'could be tested'}"
    lone = _against_the_rest(flagged)
    if lone is not None and lone.ideal == 1:
        size = ratio(lone.ratio).value
        if spread and lone.direction in ("too high", "too low"):
            return f"{lone.name} differs from the rest: forecasts are {lone.direction} there"
        if spread:
            return f"{lone.name} differs from the rest: errors are {size} times the predicted spread"
        return f"{lone.name} differs from the rest: {size} times as many {plural(event, kind='event')} as predicted"
    many = f"{out_of(len(flagged), len(section.rows))} {plural(noun, kind='group')}"
    directions = {row.direction for row in flagged}
    common = directions.pop() if len(directions) == 1 and "mixed" not in directions else None
    if spread and common in ("too narrow", "too wide"):
        return f"The spread is {common} in {many}"
    if common is not None:
        return f"{'Forecasts' if spread else 'Predictions'} are {common} in {many}"
    return f"{many[0].upper()}{many[1:]} {'is' if len(flagged) == 1 else 'are'} miscalibrated"


def _against_the_rest(flagged: list[GroupRow]) -> GroupRow | None:
    for pair in (("too high", "too low"), ("too narrow", "too wide")):
        sides = [[row for row in flagged if row.direction == way] for way in pair]
        for one, others in (sides, sides[::-1]):
            if len(one) == 1 and len(others) >= 2:
                return one[0]
    return None


def groups_text(section: Groups, *, spread: bool = False) -> str:
    """Which groups are flagged, with ratio and direction; which are not."""
    rows = section.rows
    held = spread and rows[0].ideal != 1
    what = "coverage" if held else "error-to-spread ratio" if spread else "ratio of observed to expected"
    lowest, highest = min(rows, key=lambda r: r.ratio.value), max(rows, key=lambda r: r.ratio.value)
    ends = f"lowest for {lowest.name} ({_size(lowest)}) and highest for {highest.name} ({_size(highest)})"
    flagged = [f"{row.name} ({row.direction})" for row in rows if row.flagged]
    after = f"Flagged after adjustment: {some_of(flagged)}." if flagged else "No group is flagged."
    return f"The {what} is {ends}. {after}"


def _size(row: GroupRow) -> str:
    return ratio(row.ratio).value if row.ideal == 1 else f"{rates(row.ratio, row.ideal).value} %"


def classes_title(section: Classes, label: str = "class", *, rejected: bool = False) -> str:
    """How many classes are flagged, and which total is off most; `rejected` where whole vectors are miscalibrated."""
    flagged = [row for row in section.rows if row.flagged]
    if not flagged and all(isnan(row.p_value) for row in section.rows):
        return f"No {label} could be tested"
    if not flagged:
        spread = ": the error is spread over all of them" if rejected else ""
        return f"No {label} {'by itself ' if rejected else ''}differs beyond chance{spread}"
    many = f"{out_of(len(flagged), len(section.rows))} {plural(label)} {'is' if len(flagged) == 1 else 'are'}"
    many = f"{many[0].upper()}{many[1:]} miscalibrated"
    off = [row for row in flagged if row.ratio.excludes(1.0)]
    if not off:
        return many
    worst = max(off, key=lambda row: max(row.ratio.value, 1 / max(row.ratio.value, 1e-9)))
    return f"{many}; {worst.name}: {ratio(worst.ratio).value} times as frequent as predicted"


def classes_text(section: Classes) -> str:
    """Which classes are too frequent and too rare, and where the strip is off."""
    high = [row.name for row in section.rows if row.flagged and row.direction == "too high"]
    low = [row.name for row in section.rows if row.flagged and row.direction == "too low"]
    parts = [f"Predicted too high in total: {some_of(high)}."] if high else []
    parts += [f"Predicted too low in total: {some_of(low)}."] if low else []
    parts = parts or ["No total of a class differs beyond chance."]
    return " ".join([*parts, "Every number of the figure is printed in the table above."])


def recalibration_title(section: Recalibration, row: str) -> str:
    """By how much the best map lowers the loss, where its interval excludes 0."""
    recent = section.recent
    if recent is not None and above(recent.gain):
        name = map_in_sentence(recent.name, start=True)
        return f"{name} on recent {plural(row)} lowers {section.loss} by {percent(recent.gain).with_ends(' %')}"
    best = next((m for m in section.maps if m.effect == "best"), None)
    if best is not None:
        return f"{map_in_sentence(best.name, start=True)} lowers {section.loss} by {percent(best.gain).with_ends(' %')}"
    if section.maps and all(m.effect == "makes it worse" for m in section.maps):
        return f"Every map tried makes {section.loss} worse"
    return "Recalibration may not help"


def some_of(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return listed([*names[:most], f"{more} more"]) if more > 0 else listed(tuple(names))
