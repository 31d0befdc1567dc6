"""A verdict is the first row of its task's truth table that fits; and the rows and sentences that all tasks share.

Rows see evidence, never data. One rule holds for every task: without a test there is neither a rejection nor a pass, so
below the rows that need no test comes "cannot be judged", whatever the rows after it would say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log
from typing import Generic, NamedTuple

from calibrant.data.groups import are_numbers
from calibrant.reporting.contents import Direction, GroupRow, Groups, Period, Severity, State, Verdict
from calibrant.reporting.names import listed, plural
from calibrant.reporting.rounding import bound, count, out_of, points, rates, ratio
from calibrant.reporting.verdicts.evidence import Forecasts, Probabilities, Shared, Words
from calibrant.reporting.verdicts.severity import Evidence, changed, flagged_groups
from calibrant.results.estimate import Value, printable


class Row(NamedTuple):
    """One row of a truth table that fits; without a severity it has that of the evidence."""

    rule: str
    state: State
    direction: Direction | None
    sentence: str
    severity: Severity | None = None

    @property
    def judged(self) -> bool:
        """Whether calibration was judged."""
        return self.state not in ("too few", "cannot be judged")


@dataclass(frozen=True)
class TruthTable(Generic[Evidence]):
    """The verdict of one task: rows that need no test, then rows that take one for granted, of which the last fits.

    `severity` is that of rows that do not say so, `second` the most important exception to the first sentence, and
    `missing` the name of the row for a missing test.
    """

    untested: tuple[Callable[[Evidence], Row | None], ...]
    tested: tuple[Callable[[Evidence], Row | None], ...]
    severity: Callable[[Evidence], Severity]
    how_sure: Callable[[Evidence], str]
    what_it_means: Callable[[Evidence, Row], str]
    what_to_do: Callable[[Evidence, Row], str]
    second: Callable[[Evidence, Row], str]
    missing: str = "BU"

    def row(self, e: Evidence) -> Row:
        """The first row that fits."""
        if e.empty:
            return Row("B0", "cannot be judged", None, nothing_to_judge(e.words.source), "caution")
        rules = (*self.untested, self._without_test, *self.tested)
        return next(found for rule in rules if (found := rule(e)) is not None)

    def verdict(self, e: Evidence) -> Verdict:
        """The row that fits, in words."""
        row, found = self.row(e), e.audited
        features = found.sentence if found is not None and (found.significant or found.segments) else ""
        severity = row.severity or self.severity(e)
        advice = self.what_to_do(e, row)
        return Verdict(
            rule=row.rule,
            state=row.state,
            severity="caution" if features and severity == "note" else severity,
            direction=row.direction,
            sentence=row.sentence,
            second=f"{self.second(e, row)} {features}".strip(),
            how_sure=self.how_sure(e),
            what_it_means=self.what_it_means(e, row),
            what_to_do=with_features(e) if features and row.state == "not significant" else advice,
        )

    def _without_test(self, e: Evidence) -> Row | None:
        """A test that failed or has no p-value: what is known of the error is said."""
        if e.test is not None:
            return None
        size, error = "", e.mean_error
        if error is not None and error.high is not None:
            found = points(error)
            size = f" An error of up to {bound(error.high)} points cannot be ruled out."
            if error.low is not None and error.low > 0:
                size = f" The estimated error is {found.points} (95 % interval {found.ends})."
        sentence = f"Calibration cannot be judged. {missing_test(e)}{size}"
        return Row(self.missing, "cannot be judged", None, sentence, "caution")


def nothing_to_judge(source: str) -> str:
    """The sentence for no rows; `source` says which filter or column left none."""
    return f"Nothing to judge: no row has both a prediction and an outcome{f' ({source})' if source else ''}."


def missing_test(e: Shared) -> str:
    """The sentence for a test that did not run, with the reason."""
    return f"The test could not be computed{f': {e.untested}' if e.untested else ''}."


def only_parts(e: Shared, start: str, letter: str) -> Row | None:
    """The test of all rows does not reject, as `start` says, but there is a change over time, or there are groups."""
    if e.rejects:
        return None
    if told := change_in_words(e):
        return Row(f"{letter}C", "not calibrated", "mixed", f"{start}, but {told[0].lower()}{told[1:]}")
    directions = {row.direction for row in flagged_groups(e.groups)}
    if not directions:
        return None
    direction = directions.pop() if len(directions) == 1 else "mixed"
    return Row(f"{letter}G", "not calibrated", direction, f"{start}, but {flagged_in_words(e.groups)}.")


def interval_at(level: float) -> str:
    """The name of an interval, with its confidence: "98.75 % interval "."""
    return f"{100 * level:.6g} % interval "


#: Groups that one sentence names.
#: Test: tests/reporting/verdicts/test_truth_table.py::test_up_to_eight_groups_are_named_strongest_evidence_first.
NAMED = 8

_PAIRS = ("too high", "too low"), ("too extreme", "too moderate"), ("too narrow", "too wide")
_OPPOSITE = dict([*_PAIRS, *(pair[::-1] for pair in _PAIRS)])
_OPPOSITE |= {"over-confident": "too low", "under-confident": "too high"}


def exception(e: Shared, direction: Direction | None) -> str:
    """A change over time, else the largest group against the direction of the whole, else ""."""
    opposed = [row for row in flagged_groups(e.groups) if row.direction == _OPPOSITE.get(direction or "")]
    told = change_in_words(e)
    return told or (_group_in_words(max(opposed, key=lambda row: row.n), e.words) if opposed else "")


def opposed_directions(rows: tuple[GroupRow, ...]) -> bool:
    """Whether two of the groups err in opposite directions."""
    found = {row.direction for row in rows}
    return any(_OPPOSITE.get(one) in found for one in found)


def _group_in_words(row: GroupRow, words: Words) -> str:
    """What holds in a group that differs from the rest."""
    found, name = ratio(row.ratio), printable(row.name)
    brackets = found.brackets()
    if row.ideal != 1:
        inside, level = rates(row.ratio, row.ideal), f"{100 * row.ideal:.4g} %"
        held = f"{level} intervals hold {inside.value} %{inside.brackets(' %')}"
        return f"{name} differs from the rest: there, forecasts are {row.direction}, and {held}."
    if row.direction in ("too high", "too low") and row.observed is None:
        return f"{name} differs from the rest: there, forecasts are {row.direction}."
    if row.direction in ("too high", "too low"):
        return (
            f"{name} differs from the rest: there, predictions are {row.direction}, with {found.value} times as many "
            f"{plural(words.event, kind='event')} as predicted{brackets}."
        )
    if row.direction in ("too narrow", "too wide"):
        errors = f"and errors are {found.value} times as large{brackets}"
        return f"{name} differs from the rest: there, the spread is {row.direction}, {errors}."
    slope = "" if row.slope is None else f" (slope {ratio(row.slope).value})"
    return f"{name} differs from the rest: there, predictions are {row.direction}{slope}."


def change_in_words(e: Shared) -> str:
    """What held before the change over time, and since; "" where there was none."""
    change = changed(e.over_time)
    if e.over_time is None or change is None:
        return ""
    before, after = e.over_time.periods[: change.first], e.over_time.periods[change.first :]
    first, last = (printable(one.name) for one in (after[0], before[-1]))
    if isinstance(e, Forecasts):
        told = [f"{found.value} times it{found.brackets()}" for found in map(ratio, (change.before, change.after))]
        start = f"Errors changed against the predicted spread from {first} on: until {last} they were "
        return f"{start}{told[0]}, since then {told[1]}."
    told = [_totals_in_words(*side, e.words) for side in ((before, change.before), (after, change.after))]
    return f"Calibration changed from {first} on: until {last}, {told[0]}; since then, {told[1]}."


def _totals_in_words(some: tuple[Period, ...], value: Value, words: Words) -> str:
    found = ratio(value)
    size = f"({found.value}{f', {found.ends}' if found.ends else ''})"
    if not value.excludes(1.0) and value.low is not None:
        return f"totals agree {size}"
    observed, expected = (count(sum(getattr(one, name) for one in some)) for name in ("observed", "expected"))
    return f"{observed} {plural(words.event, kind='event')} occurred where {expected} were predicted {size}"


def with_features(e: Shared) -> str:
    """What to do where predictions are off given the features, and nothing else is significant."""
    if e.audited is not None and not e.audited.significant:
        return f'Look at the segments under "Where, for whom" again on new {plural(e.words.row)}.'
    own = ", or fit a map with them: audit(...).repair()" if isinstance(e, Probabilities) else ""
    return f'"Where, for whom" shows what all {plural(e.words.row)} together hide. Give the model these features{own}.'


def period_range(periods: tuple[Period, ...]) -> str:
    """The first and last period of a run."""
    names = [printable(one.name) for one in periods]
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def flagged_in_words(groups: tuple[Groups, ...]) -> str:
    """How many groups of how many are miscalibrated, which ones, and in which direction."""
    flagged = flagged_groups(groups)
    number = sum(len(grouping.rows) for grouping in groups)
    column = groups[0].column if len(groups) == 1 else ""
    what = plural(printable(column), kind="group") if column and "×" not in column else "groups"
    verb = "is" if len(flagged) == 1 else "are"
    start = f"{out_of(len(flagged), number)} {what} {verb} miscalibrated after adjustment"
    common = {row.direction for row in flagged}
    if len(flagged) > 1 and len(common) == 1 and "mixed" not in common:
        every = "both" if len(flagged) == 2 else "all"
        return f"{start}, {every} {common.pop()}: {group_names(flagged, direction=False)}"
    return f"{start}: {group_names(flagged)}"


def group_names(rows: tuple[GroupRow, ...], *, direction: bool = True) -> str:
    """Up to eight groups with their directions and how many more, strongest evidence first or, if numbers, in order."""
    in_order = len(rows) <= NAMED and are_numbers([row.name for row in rows])
    ordered = list(rows) if in_order else sorted(rows, key=lambda row: row.p_value)
    named = [
        f"{printable(row.name)} ({row.direction})" if direction else printable(row.name) for row in ordered[:NAMED]
    ]
    more = len(ordered) - NAMED
    return f"{', '.join(named)} and {more} more" if more > 0 else ", ".join(named)


def largest_gap_classes(rows: tuple[GroupRow, ...], most: int = 4) -> str:
    """The classes whose totals are farthest from those predicted, with their ratios."""
    sizes = [(-abs(log(row.ratio.value)) if row.ratio.value > 0 else -inf, row) for row in rows if row.flagged]
    off = [row for _, row in sorted(sizes, key=lambda pair: pair[0])[:most]]
    return listed([f"{printable(row.name)} ({ratio(row.ratio).value})" for row in off])
