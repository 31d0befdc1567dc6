"""Judged answers: accuracy by confidence, groups, whether the judge is calibrated, and what to label next."""

from __future__ import annotations

import json

import numpy as np

from calibrant.data.judged import Judged
from calibrant.data.predictions import Confidence
from calibrant.data.validation import fail
from calibrant.estimators.proper_scores import accuracy
from calibrant.estimators.recommended import calibration_error
from calibrant.estimators.validation_study import observed_expected
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.groupings import Grouping
from calibrant.inference.intervals import interval
from calibrant.inference.judged import FEWEST_CLUSTERS, judged_groups, rarer_labels
from calibrant.numerics.arrays import Codes
from calibrant.reporting.contents import IMPOSSIBLE, Bin, CannotBuild, GroupRow, Groups, JudgeRow, Labels
from calibrant.reporting.names import listed
from calibrant.reporting.sections.groups import FEWEST_EVENTS, from_too_high_to_too_low, texts
from calibrant.reporting.verdicts.evidence import ALPHA
from calibrant.results.estimate import Value

#: Ranges of the confidence, and the gold labels that each has at least.
#: Test: tests/reporting/sections/test_labels.py::test_ranges_hold_ten_gold_labels.
RANGES, LABELS_PER_RANGE = 5, 10
#: Rows that the example labels next: as many as there are, but at most these.
#: Test: tests/reporting/sections/test_labels.py::test_the_code_uses_the_users_names.
NEXT = 100


def labels_section(data: Judged) -> Labels:
    """All but the groups."""
    judges = tuple(_judge(data, k) for k in range(data.scores.shape[1]))
    return Labels(_ranges(data), judges, int(data.known.sum()), _gain(data), code(data), _silent(judges))


def _silent(judges: tuple[JudgeRow, ...]) -> str:
    some = [one.name for one in judges if one.mean is None]
    if not some:
        return ""
    verb = "are" if len(some) > 1 else "is"
    return (
        f"Scores of {listed(some)} {verb} not probabilities, or have too few gold labels, so whether they are "
        "calibrated is not asked. Every other number holds for scores on any scale."
    )


def _gain(data: Judged) -> float | None:
    """How wide the interval of the accuracy is, compared with that of the gold labels alone."""
    both = (interval(accuracy, some).interval for some in (data, data.labelled()))
    own, alone = (np.nan if one is None else one.high - one.low for one in both)
    return float(own / alone) if alone > 0 else None


def _judge(data: Judged, k: int) -> JudgeRow:
    name, given = data.names["judge"][k], int((data.known & ~np.isnan(data.scores[:, k])).sum())
    try:
        scores = data.judge(k)
        weight = np.ones(len(scores)) if scores.weight is None else scores.weight
        mean = float(np.average(scores.y_prob, weights=weight))
        rows = {"weight": scores.weight, "group": scores.group}
        right = Value.of(interval(accuracy, Confidence.borrowing(scores.y_true, scores.y_prob, **rows)))
        error = Value.of(interval(calibration_error, scores), 0.0)
        return JudgeRow(name, given, mean, right, error, float(calibration_test(scores).p_value))
    except IMPOSSIBLE:
        return JudgeRow(name, given)


def _ranges(data: Judged) -> tuple[Bin, ...]:
    """Accuracy by range of confidence, each with enough gold labels for an interval."""
    p = data.y_prob.astype(np.float64)
    number = min(RANGES, int(data.known.sum()) // LABELS_PER_RANGE)
    if number < 2:
        return ()
    edges = np.unique(np.quantile(p[data.known], np.linspace(0, 1, number + 1)[1:-1]))
    found = []
    for rows in _filled(np.searchsorted(edges, p, side="left"), data):
        part, own = data.take(rows), p[rows]
        right = Value.of(interval(accuracy, part))
        size = (float(own.min()), float(own.max()), float(len(rows)), right.value * len(rows), float(own.mean()))
        found.append(Bin(*size, observed=right))
    return tuple(found)


def _filled(index: Codes, data: Judged) -> list[Codes]:
    """The rows of each range; one with fewer gold labels than it needs joins the one below."""
    found: list[Codes] = []
    for k in np.unique(index):
        rows = np.flatnonzero(index == k)
        few = int(data.known[rows].sum()) < LABELS_PER_RANGE
        if found and (few or data.known[found[-1]].sum() < LABELS_PER_RANGE):
            found[-1] = np.concatenate([found[-1], rows])
        else:
            found.append(rows)
    return found if len(found) > 1 else []


def code(data: Judged) -> str:
    """What to run to label more, with the names of the columns."""
    names = data.names
    more = "".join(f", {key}={_columns([names[key]])}" for key in ("weight", "group") if names[key])
    more += f", by={_columns(list(data.by_names))}" if data.by_names else ""
    gold, p, judge = (_columns(some) for some in ([names["gold"]], [names["p"]], names["judge"]))
    k = min(NEXT, len(data) - int(data.known.sum())) or 1
    return (
        f"data = cal.Judged({gold}, {p}, judge={judge}{more})\n"
        f"found = data.next_labels({k})\n"
        "table.iloc[found.rows]  # label these\n"
        f"{_columns([names['weight'] or 'label_weight'])} = found.weight  # then pass it as weight="
    )


def _columns(names: list[str]) -> str:
    quoted = ", ".join(json.dumps(str(name), ensure_ascii=False) for name in names)
    return f"table[{quoted}]" if len(names) == 1 else f"table[[{quoted}]]"


def judged_group_section(data: Judged, grouping: Grouping, *, column: str) -> tuple[Groups, tuple[str, ...]]:
    """Every group with a gold label, and the names of those without one, of which there is no number."""
    names = texts(grouping)
    if len(names) < 2:
        fail(f"All rows are in one group of {column}.", CannotBuild)
    found, without = [], []
    for name, rows, one in zip(names, grouping.rows(), judged_groups(data, [grouping]), strict=True):
        part = data.take(rows)
        if part.known.any():
            found.append(_group(name, part, one.adjusted))
        else:
            without.append(name)
    said = f"No gold label, so no number: {', '.join(without)}." if without else ""
    return Groups(column, tuple(sorted(found, key=from_too_high_to_too_low)), said), tuple(without)


def _group(name: str, part: Judged, p_value: float) -> GroupRow:
    n, p = len(part), part.y_prob.astype(np.float64)
    rate = float(interval(accuracy, part))
    ratio = Value.of(interval(observed_expected, part)) if p.any() else Value(np.nan)
    flagged = p_value < ALPHA
    enough = part.known.sum() >= FEWEST_CLUSTERS
    error = Value.of(interval(calibration_error, part), 0.0) if enough else Value(np.nan)
    return GroupRow(
        name=name,
        n=n,
        ratio=ratio,
        error=error,
        direction=("too high" if ratio.value < 1 else "too low") if flagged else "not flagged",
        p_value=p_value,
        flagged=flagged,
        judged=flagged or (not np.isnan(p_value) and rarer_labels(part) >= FEWEST_EVENTS),
        observed=n * rate,
        expected=n * float(p.mean()),
    )
