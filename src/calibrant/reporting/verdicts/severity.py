"""How serious an error is, and the tests of one report judged together.

Holm's adjustment over all tests keeps the share of reports that accuse a calibrated model at 5 % or below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isnan
from typing import Any, TypeVar

from calibrant.inference.multiplicity import holm
from calibrant.reporting.contents import Change, GroupRow, Groups, OverTime, Severity, Threshold
from calibrant.reporting.sections.groups import enough_events
from calibrant.reporting.verdicts.evidence import ALPHA, Probabilities, Shared
from calibrant.results.estimate import Value

#: The one limit, as a share of the rarer outcome's frequency: an error that is surely above is a problem, one that is
#: surely below is small, significant or not, and one that may lie on either side calls for more rows.
#: Test: tests/reporting/verdicts/test_severity.py::test_severity.
LIMIT = 0.05
#: Observed : expected, and slopes, whose whole interval lies outside are problems.
#: Test: tests/reporting/verdicts/test_severity.py::test_severity.
RATIOS, SLOPES = (0.90, 1.11), (0.85, 1.18)
#: Coverage that is surely off by more than this is a problem.
#: Test: tests/reporting/verdicts/test_forecasts.py::test_limits_of_severity.
COVERAGE = 0.02


def of_probabilities(evidence: Probabilities) -> Severity:
    """Severity of the calibration error of all rows, its groups and periods."""
    if not significant(evidence):
        return "note" if small(evidence) and not evidence.looks else "caution"
    if small(evidence) and not _decision_wrong(evidence.threshold) and not _parts_wrong(evidence):
        return "note"
    return "problem" if _problem(evidence) else "caution"


def significant(evidence: Probabilities) -> bool:
    """Whether anything was rejected: for all rows, a group, or over time, each adjusted for its own search."""
    return evidence.rejects or bool(flagged_groups(evidence.groups)) or changed(evidence.over_time) is not None


def limit(rarer: float, tolerance: float | None) -> float:
    """An error that counts: a share of the rarer outcome's frequency, or the user's tolerance."""
    return LIMIT * rarer if tolerance is None else tolerance


def small(evidence: Probabilities) -> bool:
    """Whether the error is surely below the limit, or within the tolerance."""
    return evidence.most is not None and evidence.most < limit(evidence.rarer, evidence.tolerance)


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


def far(row: GroupRow) -> bool:
    """Whether the ratio of a group is surely off by more than a tenth, or its coverage by more than two points."""
    return outside(row.ratio, RATIOS if row.ideal == 1 else (row.ideal - COVERAGE, row.ideal + COVERAGE))


def group_severity(row: GroupRow, tolerance: float | None = None) -> Severity:
    """Severity of a flagged group: its ratio, its slope, or its error relative to its own base rate."""
    if tolerance is not None and row.error.high is not None and row.error.high < tolerance:
        return "note"
    if far(row) or outside(row.slope, SLOPES):
        return "problem"
    low = row.error.low or 0.0
    if not low > 0 or row.observed is None or not row.n > 0:
        return "caution"
    return "problem" if low >= limit(min(row.observed, row.n - row.observed) / row.n, tolerance) else "caution"


def _problem(evidence: Probabilities) -> bool:
    low = 0.0 if evidence.error is None else evidence.error.low or 0.0
    return (
        (low > 0 and low >= limit(evidence.rarer, evidence.tolerance))
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


Evidence = TypeVar("Evidence", bound=Shared)

_ALL, _CHANGE = "all rows", "change over time"


def judged_together(evidence: Evidence) -> Evidence:
    r"""The evidence after Holm's adjustment over all rows, every column of groups, and the change over time.

    Each of these tests holds its own level; together they would accuse a calibrated model three times as often. With
    :math:`p_{(1)} \le \dots \le p_{(m)}` the p-values of the families of hypotheses (the smallest one of a column of
    groups, which are adjusted for their number already),

    .. math:: \tilde p_{(k)} = \max_{j \le k} \, (m + 1 - j) \, p_{(j)}.

    Groups are multiplied by the factor of their column. What is shown of the test of all rows and of the change is
    their own p-value; whether they reject is decided by the adjusted one. See Holm (1979), A simple sequentially
    rejective multiple test procedure.
    """
    own = _families(evidence)
    if len(own) < 2:
        return evidence
    adjusted = dict(zip(own, holm(list(own.values())), strict=True))
    test = evidence.test
    if test is not None and _ALL in adjusted:
        test = replace(test, adjusted=adjusted[_ALL], tests=len(adjusted))
    changes: dict[str, Any] = {
        "adjusted": adjusted,
        "test": test,
        "groups": tuple(_groups(one, k, own, adjusted) for k, one in enumerate(evidence.groups)),
        "over_time": _over_time(evidence.over_time, adjusted, len(own)),
    }
    return replace(evidence, **changes)


def _families(e: Shared) -> dict[str, float]:
    """The p-value of every test that was made."""
    found = {_ALL: None if e.test is None else e.test.p_value}
    for k, grouping in enumerate(e.groups):
        found[_name(grouping, k)] = min((row.p_value for row in grouping.rows if not isnan(row.p_value)), default=None)
    change = None if e.over_time is None else e.over_time.change
    found[_CHANGE] = None if change is None else change.p_value
    return {name: p for name, p in found.items() if p is not None and not isnan(p)}


def _name(grouping: Groups, k: int) -> str:
    return f"groups by {grouping.column}, {k}"


def _groups(grouping: Groups, k: int, own: Mapping[str, float], adjusted: Mapping[str, float]) -> Groups:
    name = _name(grouping, k)
    if name not in own:
        return grouping
    factor = adjusted[name] / own[name] if own[name] > 0 else 1.0
    return replace(grouping, rows=tuple(_group(row, min(row.p_value * factor, 1.0)) for row in grouping.rows))


def _group(row: GroupRow, p_value: float) -> GroupRow:
    if isnan(p_value) or not row.flagged or p_value < ALPHA:
        return replace(row, p_value=p_value)
    judged = row.judged and enough_events(row)
    return replace(
        row, p_value=p_value, flagged=False, direction="not flagged", slope=None, flagged_after=None, judged=judged
    )


def _over_time(section: OverTime | None, adjusted: Mapping[str, float], tests: int) -> OverTime | None:
    """The change by its adjusted p-value; periods, which no verdict rests on, by Bonferroni's rule."""
    if section is None:
        return None
    adjusted_periods = (replace(one, p_value=min(tests * one.p_value, 1.0)) for one in section.periods)
    periods = tuple(replace(one, flagged=one.flagged and one.p_value < ALPHA) for one in adjusted_periods)
    change = section.change
    if change is not None and _CHANGE in adjusted:
        change = replace(change, significant=adjusted[_CHANGE] < ALPHA)
    return replace(section, periods=periods, change=change)
