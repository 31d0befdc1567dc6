"""How serious an error is: relative to the base rate, to the decision and to the user's tolerance."""

from __future__ import annotations

from calibrant.reporting.contents import Change, GroupRow, Groups, OverTime, Severity, Threshold, Value
from calibrant.reporting.verdicts.evidence import Probabilities

#: Shares of the rarer outcome's frequency: an error of at least this is a problem, below this small, and where nothing
#: is significant, up to this is little.
PROBLEM, SMALL, UNRULED = 0.05, 0.02, 0.10
#: Observed : expected, and slopes, whose whole interval lies outside are problems.
RATIOS, SLOPES = (0.90, 1.11), (0.85, 1.18)


def of_probabilities(evidence: Probabilities) -> Severity:
    """Severity of the calibration error of all rows, its groups and periods."""
    if not significant(evidence):
        return "note" if not unruled(evidence) else "caution"
    if small(evidence) and not _decision_wrong(evidence.threshold) and not _parts_wrong(evidence):
        return "note"
    return "problem" if _problem(evidence) else "caution"


def significant(evidence: Probabilities) -> bool:
    """Whether anything was rejected: for all rows, a group, or over time, each adjusted for its own search."""
    overall = evidence.test is not None and evidence.test.rejects
    return overall or bool(flagged_groups(evidence.groups)) or changed(evidence.over_time) is not None


def limit(evidence: Probabilities, share: float) -> float:
    """An error that counts: a share of the rarer outcome's frequency, or the user's tolerance."""
    return share * evidence.rarer if evidence.tolerance is None else evidence.tolerance


def small(evidence: Probabilities) -> bool:
    """Whether the error is surely below 2 % of the base rate, or within the tolerance."""
    high = None if evidence.error is None else evidence.error.high
    return high is not None and high < limit(evidence, SMALL)


def unruled(evidence: Probabilities) -> bool:
    """Whether an error of 10 % of the base rate (or above the tolerance) cannot be ruled out."""
    high = None if evidence.error is None else evidence.error.high
    return high is None or high >= limit(evidence, UNRULED)


def flagged_groups(groups: tuple[Groups, ...]) -> tuple[GroupRow, ...]:
    """Every group that its adjusted test rejects."""
    return tuple(row for grouping in groups for row in grouping.rows if row.flagged)


def changed(over_time: OverTime | None) -> Change | None:
    """The change over time, where its test rejects."""
    if over_time is None or over_time.change is None or not over_time.change.significant:
        return None
    return over_time.change


def outside(value: Value | None, limits: tuple[float, float]) -> bool:
    """Whether the whole interval lies outside the limits."""
    if value is None:
        return False
    return (value.high is not None and value.high < limits[0]) or (value.low is not None and value.low > limits[1])


def group_severity(row: GroupRow, tolerance: float | None = None) -> Severity:
    """Severity of a flagged group: its ratio, its slope, or its error relative to its own base rate."""
    if tolerance is not None and row.error.high is not None and row.error.high < tolerance:
        return "note"
    if outside(row.ratio, RATIOS) or outside(row.slope, SLOPES):
        return "problem"
    low = row.error.low
    if low is not None and row.observed is not None and row.n > 0:
        rarer = min(row.observed, row.n - row.observed) / row.n
        return "problem" if low > 0 and low >= (PROBLEM * rarer if tolerance is None else tolerance) else "caution"
    return "caution"


def _problem(evidence: Probabilities) -> bool:
    low = None if evidence.error is None else evidence.error.low
    return (
        (low is not None and low > 0 and low >= limit(evidence, PROBLEM))
        or outside(evidence.ratio, RATIOS)
        or outside(evidence.slope, SLOPES)
        or _decision_wrong(evidence.threshold)
        or _parts_wrong(evidence)
    )


def _decision_wrong(threshold: Threshold | None) -> bool:
    """Whether the frequency observed around the threshold differs from what is predicted there."""
    around = None if threshold is None else threshold.around
    return around is not None and around.observed.excludes(around.predicted)


def _parts_wrong(evidence: Probabilities) -> bool:
    """Whether a flagged group or period, or a side of the change, is itself a problem."""
    change = changed(evidence.over_time)
    periods = () if evidence.over_time is None else evidence.over_time.periods
    return (
        any(group_severity(row, evidence.tolerance) == "problem" for row in flagged_groups(evidence.groups))
        or any(period.flagged and outside(period.ratio, RATIOS) for period in periods)
        or (change is not None and (outside(change.before, RATIOS) or outside(change.after, RATIOS)))
    )
