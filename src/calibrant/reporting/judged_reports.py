"""The report of judged answers: few gold labels, a judge's score of every answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from calibrant.data.judged import Judged
from calibrant.estimators.proper_scores import accuracy
from calibrant.estimators.recommended import averaged_error, calibration_error
from calibrant.estimators.validation_study import calibration_slope, observed_expected
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.groupings import groupings
from calibrant.inference.intervals import interval
from calibrant.inference.judged import rarer_labels
from calibrant.reporting.contents import IMPOSSIBLE, Groups, Number, Omitted, Options
from calibrant.reporting.evidence import of_error, of_estimate, verdict_test
from calibrant.reporting.findings import of_judged
from calibrant.reporting.rounding import count
from calibrant.reporting.sections.labels import judged_group_section, labels_section
from calibrant.reporting.task_reports import ConfidenceReport, TaskReport
from calibrant.reporting.verdicts.evidence import ALPHA, JudgedAnswers
from calibrant.reporting.verdicts.judged import JUDGED
from calibrant.results.estimate import Estimate, Significance


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
            made.omitted.append(Omitted("Over time", "Few answers of each period have a gold label: give it as by=."))
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

    numbers: Callable[..., Iterator[Number]] = ConfidenceReport.numbers

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
