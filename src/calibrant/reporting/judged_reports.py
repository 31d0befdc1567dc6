"""The report of judged answers: few gold labels, a judge's score of every answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from calibrant.data.judged import Judged
from calibrant.data.predictions import Confidence
from calibrant.data.validation import fail
from calibrant.estimators.proper_scores import accuracy
from calibrant.estimators.recommended import averaged_error, calibration_error
from calibrant.estimators.validation_study import calibration_slope, observed_expected
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.groupings import Grouping, groupings
from calibrant.inference.intervals import interval
from calibrant.inference.judged import FEWEST_CLUSTERS, judged_groups, rarer_labels
from calibrant.numerics.arrays import Codes
from calibrant.reporting.contents import IMPOSSIBLE, Bin, CannotBuild, GroupRow, Groups, JudgeRow, Labels, Options
from calibrant.reporting.evidence import of_error, of_estimate, verdict_test
from calibrant.reporting.findings import of_judged
from calibrant.reporting.names import listed
from calibrant.reporting.rounding import count
from calibrant.reporting.sections.groups import FEWEST_EVENTS, from_too_high_to_too_low, texts
from calibrant.reporting.task_reports import ConfidenceReport, TaskReport
from calibrant.reporting.verdicts.evidence import ALPHA, JudgedAnswers
from calibrant.reporting.verdicts.multiclass import JUDGED
from calibrant.results.estimate import Estimate, Significance, Value

#: Ranges of the confidence, and the gold labels that each has at least.
#: Test: tests/reporting/test_judged_reports_labels.py::test_ranges_hold_ten_gold_labels.
RANGES, LABELS_PER_RANGE = 5, 10
#: Rows that the example labels next: as many as there are, but at most these.
#: Test: tests/reporting/test_judged_reports_labels.py::test_the_code_uses_the_users_names.
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


class JudgedReport(TaskReport[JudgedAnswers]):
    """Accuracy, confidence and groups from few gold labels, the judge itself, and what to label next."""

    kind = "judged"
    row = "answer"
    event = "right answer"
    table = JUDGED
    findings = of_judged
    facts: ClassVar[Mapping[str, str]] = {"labels": "gold", "base_rate": "base_rate", "mean_prediction": "predicted"}

    def __init__(self, data: Judged, options: Options) -> None:
        super().__init__(data, options)
        self.without: list[str] = []

    @cached_property
    def test(self) -> Significance:
        """Of level, slope and shape."""
        return calibration_test(self.data)

    def level(self, component: str) -> float:
        """The confidence of an interval, which excludes its ideal only where the test rejects."""
        try:
            parts = self.test.components
        except IMPOSSIBLE:
            return 1 - ALPHA
        return 1 - ALPHA * next((part.share for part in parts if part.name == component), 1.0)

    @cached_property
    def ratio(self) -> Estimate:
        """Observed over expected, at the confidence of the level."""
        return interval(observed_expected, self.data, level=self.level("level"))

    @cached_property
    def slope(self) -> Estimate:
        """The calibration slope, at its own confidence."""
        return interval(calibration_slope, self.data, level=self.level("slope"))

    @cached_property
    def headline(self) -> Estimate:
        """The L1 error, at least the mean gap where this is significant."""
        found, ratio = interval(calibration_error, self.data), self.made.attempt("", lambda: self.ratio)
        ends = found.interval
        if ends is None or np.isnan(found) or ratio is None or ratio.interval is None:
            return found
        mean = float(self.data.y_prob.mean(dtype=np.float64))
        least = 0.0 if 1.0 in ratio.interval else mean * abs(1 - float(ratio))
        return found.moved(min(max(float(found), least, ends.low), ends.high))

    def evidence(self) -> JudgedAnswers:
        """Accuracy, error, level and slope, and the test."""
        data, made = self.data, self.made
        if self.options.time is not None:
            made.omit("Over time", "Few answers of each period have a gold label: give it as by=.")
        right = made.attempt("", lambda: interval(accuracy, data))
        n = len(data)
        return JudgedAnswers(
            n=n,
            events=0.0 if right is None else float(right) * n,
            predicted=float(data.y_prob.mean(dtype=np.float64)),
            confidence=True,
            error=of_error(made.attempt("Calibration error", lambda: self.headline)),
            ratio=of_estimate(made.attempt("Observed : expected", lambda: self.ratio)),
            slope=of_estimate(made.attempt("Calibration slope", lambda: self.slope)),
            clusters=None if data.group is None else len(np.unique(data.group)),
            levels=(self.level("level"), self.level("slope")),
            gold=int(data.known.sum()),
            rarer_gold=rarer_labels(data),
            accuracy=of_estimate(right),
            sampled=data.sampled,
            **self.given,
            **verdict_test(made, lambda: self.test, "Test of the confidence"),
        )

    def with_sections(self, known: JudgedAnswers) -> JudgedAnswers:
        """Groups, and what is known of the labels."""
        groups = self.group_sections()
        labels = self.made.attempt("Labels", lambda: labels_section(self.data))
        return replace(known, groups=groups, figures=(labels,), unlabelled=tuple(self.without))

    def group_sections(self) -> tuple[Groups, ...]:
        """One section per column: those of the report or, without any, those in which the judge may be biased."""
        data: Judged = self.data
        columns = list(self.options.by)
        if not columns:
            named = {
                name: np.asarray([str(one) for one in names], dtype=object)[data.by_codes[:, k]]
                for k, (name, names) in enumerate(data.by_names.items())
            }
            columns = [(one.column, one) for one in groupings(named, length=len(data))] if named else []
        found = []
        for column, by in columns:
            make = partial(judged_group_section, data, by, column=column or "group")
            made = self.made.attempt(f"Groups by {column}" if column else "Groups", make)
            if made is not None:
                found.append(made[0])
                self.without += made[1]
        return tuple(found)

    numbers: Callable[..., Iterator[Any]] = ConfidenceReport.numbers

    def measures(self) -> list[Callable[[], Estimate | None]]:
        """The headline, the L2 error, accuracy, observed : expected and slope."""
        squares = partial(averaged_error, norm=2)
        return [
            lambda: self.headline,
            lambda: interval(squares, self.data),
            lambda: interval(accuracy, self.data),
            lambda: self.ratio,
            lambda: self.slope,
        ]

    def note(self, known: JudgedAnswers) -> str:
        """On what stands for the missing labels."""
        return (
            f"{count(known.gold)} of {count(known.n)} rows have a gold label. The judge's scores are recalibrated on "
            "some of these labels and corrected by the others, in turn (cross-fitting). Errors of the judge make "
            "intervals wider, not wrong."
        )
