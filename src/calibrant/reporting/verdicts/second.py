"""The second sentence of a verdict: the most important exception. A change over time, a group, or few scores."""

from __future__ import annotations

from calibrant.reporting.contents import Direction, GroupRow, Groups, OverTime, Period, Value
from calibrant.reporting.names import listed, plural
from calibrant.reporting.rounding import count, rates, ratio, score
from calibrant.reporting.verdicts.evidence import Probabilities, Shared, Words
from calibrant.reporting.verdicts.severity import changed, flagged_groups
from calibrant.results.printable import printable

#: Groups that one sentence names.
NAMED = 8
#: With at most so many distinct scores, the largest gap is named.
FEW_SCORES = 20

_OPPOSITE: dict[str, tuple[str, ...]] = {
    "too high": ("too low",),
    "too low": ("too high",),
    "too extreme": ("too moderate",),
    "too moderate": ("too extreme",),
    "too narrow": ("too wide",),
    "too wide": ("too narrow",),
}


def second_sentence(evidence: Probabilities, direction: Direction | None) -> str:
    """A change over time, else a group against the direction of the whole, else the worst of few scores, else ""."""
    if changed(evidence.over_time) is not None:
        return change_in_words(evidence.over_time, evidence.words)
    exception = against_the_whole(evidence, direction)
    if exception is not None:
        return exception_in_words(exception, evidence.words)
    worst = evidence.largest_gap
    if worst is not None and evidence.distinct is not None and evidence.test is not None and evidence.test.rejects:
        found = rates(worst.observed)
        ends = f", {found.ends} %" if found.ends else ""
        return (
            f"Only {evidence.distinct} distinct scores: the largest gap is at {score(worst.predicted)} "
            f"(observed {found.value} %{ends})."
        )
    return ""


def against_the_whole(evidence: Shared, direction: Direction | None) -> GroupRow | None:
    """The flagged group with the most rows whose direction is opposite to that of all rows."""
    opposite = _OPPOSITE.get(direction or "", ())
    found = [row for row in flagged_groups(evidence.groups) if row.direction in opposite]
    return max(found, key=lambda row: row.n) if found else None


def exception_in_words(row: GroupRow, words: Words) -> str:
    """What holds in a group that runs against the rest."""
    found, name = ratio(row.ratio), printable(row.name)
    ends = f" ({found.ends})" if found.ends else ""
    if row.direction in ("too high", "too low"):
        return (
            f"{name} runs against the rest, with predictions that are {row.direction}: {found.value} times the "
            f"predicted {plural(words.event)} occurred{ends}."
        )
    if row.direction in ("too narrow", "too wide"):
        errors = f"errors are {found.value} times it{ends}"
        return f"{name} runs against the rest: there the spread is {row.direction}, {errors}."
    slope = "" if row.slope is None else f" (slope {ratio(row.slope).value})"
    return f"{name} runs against the rest: there the predictions are {row.direction}{slope}."


def change_in_words(over_time: OverTime | None, words: Words) -> str:
    """What held before the change, and since."""
    change = changed(over_time)
    if over_time is None or change is None:
        return ""
    before, after = over_time.periods[: change.first], over_time.periods[change.first :]
    event = plural(words.event)
    told = []
    for some, value in ((before, change.before), (after, change.after)):
        found = ratio(value)
        ends = f", {found.ends}" if found.ends else ""
        if value.excludes(1.0) or value.low is None:
            observed, expected = sum(one.observed for one in some), sum(one.expected for one in some)
            told.append(
                f"{count(observed)} {event} occurred where {count(expected)} were predicted ({found.value}{ends})"
            )
        else:
            told.append(f"totals agree ({found.value}{ends})")
    return (
        f"Calibration changed from {_name(after[0])} on: until {_name(before[-1])}, {told[0]}; since then, {told[1]}."
    )


def spread_change_in_words(over_time: OverTime | None) -> str:
    """The ratio of errors to predicted spread before the change, and since."""
    change = changed(over_time)
    if over_time is None or change is None:
        return ""
    before, after = over_time.periods[: change.first], over_time.periods[change.first :]
    told = [
        f"{found.value} times it{f' ({found.ends})' if found.ends else ''}"
        for found in (ratio(change.before), ratio(change.after))
    ]
    return (
        f"Errors changed against the predicted spread from {_name(after[0])} on: until {_name(before[-1])} they were "
        f"{told[0]}, since then {told[1]}."
    )


def period_range(periods: tuple[Period, ...]) -> str:
    """The first and last period of a run."""
    names = [_name(one) for one in periods]
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def flagged_in_words(groups: tuple[Groups, ...]) -> str:
    """How many groups of how many are miscalibrated, which ones, and in which direction."""
    flagged = flagged_groups(groups)
    number = sum(len(grouping.rows) for grouping in groups)
    column = groups[0].column if len(groups) == 1 else ""
    what = plural(printable(column)) if column and "×" not in column else "groups"
    verb = "is" if len(flagged) == 1 else "are"
    return f"{len(flagged)} of {count(number)} {what} {verb} miscalibrated after adjustment: {group_names(flagged)}"


def group_names(rows: tuple[GroupRow, ...]) -> str:
    """Up to eight groups with their directions, strongest evidence first, and how many more."""
    ordered = sorted(rows, key=lambda row: row.p_value)
    named = [f"{printable(row.name)} ({row.direction})" for row in ordered[:NAMED]]
    more = len(ordered) - NAMED
    return f"{', '.join(named)} and {more} more" if more > 0 else ", ".join(named)


def largest_gap_classes(rows: tuple[GroupRow, ...], most: int = 4) -> str:
    """The classes whose totals are farthest from those predicted, with their ratios."""
    off = sorted((row for row in rows if row.flagged), key=lambda row: -abs(_log_distance(row.ratio)))[:most]
    return listed([f"{printable(row.name)} ({ratio(row.ratio).value})" for row in off])


def _log_distance(value: Value) -> float:
    from math import inf, log

    return log(value.value) if value.value > 0 else -inf


def _name(period: Period) -> str:
    return printable(period.name)
