"""Special cases of a verdict (no rows, one outcome, one score), and its second sentence: the most important exception.

The exception is a change over time, a group, or the worst of few scores.
"""

from __future__ import annotations

from typing import NamedTuple

from calibrant.reporting.contents import Direction, GroupRow, Groups, OverTime, Period, Severity, State
from calibrant.reporting.names import had_the_event, listed, plural
from calibrant.reporting.rounding import bound, count, points, rate, rates, ratio, score
from calibrant.reporting.verdicts.evidence import Probabilities, Shared, Words
from calibrant.reporting.verdicts.severity import changed, flagged_groups
from calibrant.results.estimate import Value, printable

#: Fewer events, other outcomes or rows than these are too few to judge.
FEW_EVENTS, FEW_ROWS = 10, 50


class Row(NamedTuple):
    """One row of a truth table that fits."""

    rule: str
    state: State
    direction: Direction | None
    sentence: str
    severity: Severity | None = None


def nothing(e: Probabilities) -> Row | None:
    """No row with an outcome (B0)."""
    if e.n > 0:
        return None
    return Row("B0", "cannot be judged", None, nothing_to_judge(e.words.source), "caution")


def nothing_to_judge(source: str) -> str:
    """The sentence for no rows; `source` says which filter or column left none."""
    because = f" ({source})" if source else ""
    return f"Nothing to judge: no row has both a prediction and an outcome{because}."


def one_outcome(e: Probabilities) -> Row | None:
    """Only one outcome was observed (B1)."""
    if 0 < e.events < e.n or e.n == 0 or e.test is None:
        return None
    expected, limits = count(e.expected), e.observed
    if e.events <= 0:
        most = "" if limits is None or limits.high is None else _bound_of_rate(limits.high, "most")
        sentence = f"No {e.words.event} was observed among {rows_in_words(e)}, where {expected} were predicted{most}."
    else:
        least = "" if limits is None or limits.low is None else _bound_of_rate(limits.low, "least")
        sentence = (
            f"Every one of {rows_in_words(e)} {had_the_event(e.words.event)}, where {expected} "
            f"{plural(e.words.event, kind='event')} were predicted{least}."
        )
    rejects = e.test is not None and e.test.rejects
    state: State = "not calibrated" if rejects else "too few"
    direction: Direction | None = None if not rejects else ("too high" if e.events <= 0 else "too low")
    return Row("B1", state, direction, sentence, "problem" if rejects else "caution")


def _bound_of_rate(end: float, which: str) -> str:
    return f"; the true frequency is at {which} {rate(end)} (95 % bound)"


def one_score(e: Probabilities) -> Row | None:
    """All scores are equal (B3)."""
    if e.only_score is None or e.only_score in (0.0, 1.0) or e.test is None:
        return None
    found = rates(e.observed or Value(e.base_rate))
    interval = f" (95 % interval {found.ends} %)" if found.ends else ""
    sentence = (
        f"Every {e.words.row} has the same predicted probability, {score(e.only_score)}; the observed frequency is "
        f"{found.value} %{interval}. {plural(e.words.row).capitalize()} cannot be told apart, so only the total can be "
        "checked."
    )
    rejects = e.test is not None and e.test.rejects
    return Row("B3", "not calibrated" if rejects else "not significant", level(e) if rejects else None, sentence)


def decisions(e: Probabilities) -> Row | None:
    """Scores are only 0 and 1 (B4)."""
    made = e.decisions
    if made is None:
        return None
    parts: list[str] = []
    for number, predicted, observed in ((made.ones, 1, made.rate_of_ones), (made.zeros, 0, made.rate_of_zeros)):
        if observed is None or number == 0:
            continue
        found = rates(observed)
        brackets = f" ({found.ends} %)" if found.ends else ""
        what = had_the_event(e.words.event) if not parts else "had it"
        rows = plural(e.words.row, number)
        parts.append(f"of {count(number)} {rows} predicted {predicted}, {found.value} % {what}{brackets}")
    sentence = f"The predictions are decisions, not probabilities: {'; '.join(parts)}."
    return Row("B4", "cannot be judged", None, sentence, "caution")


def too_few(e: Probabilities) -> Row | None:
    """Too few to judge; where even so few suffice for the test to reject, the rows below say what was found."""
    fewest = min(e.events, e.n - e.events)
    if (fewest >= FEW_EVENTS and e.n >= FEW_ROWS) or (e.test is not None and e.test.rejects):
        return None
    others = e.n - e.events < e.events
    if fewest >= FEW_EVENTS:
        start = f"Too few {plural(e.words.row)} to judge: {count(e.n)}."
    elif e.confidence:
        start = (
            f"Too few {'wrong' if others else 'right'} predictions to judge: {count(fewest)} among {rows_in_words(e)}."
        )
    else:
        what = f"non-{plural(e.words.event, kind='event')}" if others else plural(e.words.event, kind="event")
        start = f"Too few {what} to judge: {count(fewest)} among {rows_in_words(e)}."
    most = None if e.error is None else e.error.high
    more = "" if most is None else f" An error of up to {bound(most)} points cannot be ruled out."
    return Row("B2", "too few", None, start + more, "caution")


def backwards(e: Probabilities) -> Row | None:
    """Higher scores go with fewer events: most likely the wrong column or class (BB)."""
    return Row("BB", "not calibrated", "backwards", backwards_in_words(e), "problem") if e.backwards else None


def backwards_in_words(e: Probabilities) -> str:
    """That scores, or confidences, run backwards, with the slope and the likely cause."""
    found = ratio(e.slope or Value(0.0))
    ends = f", 95 % interval {found.ends}" if found.ends else ""
    if e.confidence:
        start = "confidence runs backwards: predictions of higher confidence are less often right"
        cause = "Are the columns in the order of the classes?"
    else:
        start = f"scores run backwards: higher scores go with fewer {plural(e.words.event, kind='event')}"
        cause = "Wrong column, or wrong positive class?"
    return f"The {start} (slope {found.value}{ends}). {cause}"


def untested(e: Shared, error: Value | None = None) -> Row:
    """A test that did not run, of any task: neither a rejection nor a pass. What is known of the error is said (BU)."""
    size = ""
    if error is not None and error.high is not None:
        found = points(error)
        size = f" An error of up to {bound(error.high)} points cannot be ruled out."
        if error.low is not None and error.low > 0:
            size = f" The estimated error is {found.value} points (95 % interval {found.ends})."
    return Row("BU", "cannot be judged", None, f"Calibration cannot be judged. {missing_test(e)}{size}", "caution")


def missing_test(e: Shared) -> str:
    """The sentence for a test that did not run, with the reason."""
    return f"The test could not be computed{f': {e.untested}' if e.untested else ''}."


def untested_probabilities(e: Probabilities) -> Row | None:
    """The same for predicted probabilities, with their error."""
    return untested(e, e.error) if e.test is None else None


def level(e: Probabilities) -> Direction | None:
    """Too high or too low on the whole, where the interval of observed : expected excludes 1."""
    if e.ratio is None or not e.ratio.excludes(1.0):
        return None
    return "too high" if e.ratio.value < 1 else "too low"


def rows_in_words(e: Probabilities) -> str:
    """Their number, as the user calls them."""
    return f"{count(e.n)} {plural(e.words.row, e.n)}"


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
            f"predicted {plural(words.event, kind='event')} occurred{ends}."
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
    event = plural(words.event, kind="event")
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
    what = plural(printable(column), kind="group") if column and "×" not in column else "groups"
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
