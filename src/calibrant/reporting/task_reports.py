"""One pipeline from data to a report, and the tasks that it serves.

`built` collects the evidence of a task, makes its sections, judges all tests together, looks up the verdict in the
task's truth table, and puts numbers, findings and notes beside it. A task (binary, multiclass, forecasts,
positive-unlabeled) registers each of these in one class; nothing else differs between reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, get_args

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import fail
from calibrant.estimators.binned import debiased_ece, ece, sweep_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import auc, brier, log_loss
from calibrant.estimators.recommended import calibration_error
from calibrant.estimators.regression_coverage import interval_error, pit_error, quantile_error
from calibrant.estimators.regression_scores import crps, nll, pinball, sharpness
from calibrant.estimators.regression_spread import debiased_ence, std_dispersion, uce
from calibrant.estimators.smooth_errors import ks_error, smooth_ece
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.intervals import interval
from calibrant.numerics.rows import all_alike
from calibrant.reporting import contents, evidence
from calibrant.reporting.contents import CannotBuild, Number, Options, OverTime, Recalibration, Section, Verdict
from calibrant.reporting.evidence import Part
from calibrant.reporting.findings import of_classes, of_forecasts, of_probabilities, of_unlabeled
from calibrant.reporting.model import Finding, Measure, Report
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import above, count, mapped, percent, rounded, score
from calibrant.reporting.sections import groups, recalibration, reliability, task_sections
from calibrant.reporting.verdicts import binary, forecasts, multiclass, unlabeled
from calibrant.reporting.verdicts.evidence import Forecasts, Probabilities, ProbabilityVectors, Shared, Unlabeled, Words
from calibrant.reporting.verdicts.severity import Evidence, judged_together, limit, significant, small
from calibrant.reporting.verdicts.truth_table import TruthTable, period_range
from calibrant.results.estimate import Estimate, Interval, Significance, Value
from calibrant.table.binning import Distinct, EqualWidth
from calibrant.table.bintable import BinTable


class TaskReport(ABC, Generic[Evidence]):
    """What one task registers; `row` and `event` are what these are called, unless the user says."""

    kind: ClassVar[contents.Kind]
    row: ClassVar[str] = "row"
    event: ClassVar[str] = "event"
    table: ClassVar[TruthTable[Any]]
    findings: ClassVar[Callable[[Any, Verdict], tuple[Finding, ...]]]
    method: ClassVar[str] = ""
    part: Any
    #: What stands in the line of facts beside the number of rows, and where the evidence holds it.
    facts: ClassVar[Mapping[str, str]] = {}

    def __init__(self, data: Any, options: Options) -> None:
        self.data, self.options, self.made = data, options, contents.Assembly()
        self.after: Any = None  # the rows after the best map, which groups are tested on again
        words = Words(options.row or self.row, options.event or self.event, options.source or "")
        self.given: dict[str, Any] = {"words": words, "tolerance": options.tolerance}

    @property
    def test(self) -> Significance:
        """The test of the verdict; raises where the data allow none."""
        return self.part.test

    @abstractmethod
    def evidence(self) -> Evidence:
        """What is known of all rows."""

    def figures(self) -> dict[str, Callable[[], Section]]:
        """What makes each figure, by the name under which it may be left out."""
        return {}

    def recalibrated(self, known: Any) -> Recalibration:
        """Maps compared on rows they were not fitted on."""
        raise NotImplementedError

    def with_sections(self, known: Evidence) -> Evidence:
        """The evidence with every section, and what the verdict learns from it."""
        figures = tuple(self.made.attempt(name, make) for name, make in self.figures().items())
        time = self.time_section(self.part.data)
        maps = self.made.attempt("Recalibration", lambda: recalibration.with_readers_names(self.recalibrated(known)))
        return replace(known, figures=figures, over_time=time, recalibration=maps, groups=self.group_sections())

    def completed(self, known: Evidence) -> Evidence:
        """The evidence with what is only asked for once all tests are judged together."""
        return known

    @abstractmethod
    def numbers(self, known: Evidence) -> Iterator[Number]:
        """The three large numbers."""

    @abstractmethod
    def measures(self) -> list[Callable[[], Estimate | None]]:
        """Every estimate, the headline first; those that the data do not allow raise."""

    def tests(self, known: Evidence) -> tuple[Significance, ...]:
        """The test of the verdict first."""
        return () if known.test is None else (self.test,)

    def note(self, known: Evidence) -> str:
        """A note on the method."""
        return self.method

    def time_section(self, data: Any) -> OverTime | None:
        """Observed and expected in order of time, if the user gave the time of each row."""
        if self.options.time is None:
            return None
        column, values = self.options.time
        return self.made.attempt("Over time", lambda: groups.over_time_section(data, values, column=column or "time"))

    def group_sections(self) -> tuple[contents.Groups, ...]:
        """One section per column, or one of confirmed groups; columns that cannot be grouped say why."""
        if self.options.confirm:
            some = [grouping for _, grouping in self.options.by]
            found = [self.made.attempt("Groups", lambda: groups.confirmed_section(self.data, some))]
        else:
            make = partial(groups.group_section, self.data, after=self.after)
            named = [(column, partial(make, by, column=column or "group")) for column, by in self.options.by]
            found = [self.made.attempt(f"Groups by {column}" if column else "Groups", one) for column, one in named]
        return tuple(section for section in found if section is not None)


def built(task: TaskReport[Any]) -> Report:
    """The report of a task: evidence, sections, all tests judged together, verdict, and words."""
    known, wanted, options = task.evidence(), [], task.options
    if known.n > 0:
        known = task.completed(judged_together(task.with_sections(known)))
        wanted = task.measures()
    tried = [(task.made.attempt("", make), k == 0) for k, make in enumerate(wanted)]
    measures = tuple(Measure(estimate, headline) for estimate, headline in tried if estimate is not None)
    known = replace(known, numbers=tuple(task.numbers(known)))
    if options.audit is not None:
        from calibrant.reporting.audit_page import audit_section

        asked = partial(audit_section, task.data, options)
        known = replace(known, audited=task.made.attempt("Where, for whom", asked))
    found = task.table.verdict(known)
    made = (*known.figures, *known.groups, known.over_time, known.recalibration, known.audited)
    shown = sorted((one for one in made if one is not None), key=lambda one: get_args(Section).index(type(one)))
    facts = contents.Facts(
        rows=known.n,
        row=known.words.row,
        event=known.words.event,
        effective_rows=known.effective_n,
        clusters=known.clusters,
        period=None if known.over_time is None else period_range(known.over_time.periods),
        model=options.model,
        source=options.source,
        **{name: getattr(known, place) for name, place in task.facts.items() if known.n},
    )
    whole = contents.Contents(
        kind=task.kind,
        facts=facts,
        verdict=found,
        numbers=known.numbers,
        sections=tuple(with_note(section, found) for section in shown),
        omitted=tuple(task.made.omitted),
        notes=method_notes(known, task.note(known)),
    )
    return Report(options.title, whole, measures, task.tests(known), type(task).findings(known, found))


def _unflagged(one: Any) -> bool:
    return not one.flagged and one.ratio.excludes(getattr(one, "ideal", 1.0))


#: By kind of section: its parts, which of these have an interval that excludes its nominal value without a flag, what
#: that value is, and what allows for all of them.
_CALIBRATED = "the value of a calibrated model without being flagged", "adjusted p-values allow"
_EXCLUDING: dict[type, tuple[str, Callable[[Any], bool], str, str]] = {
    contents.Groups: ("rows", _unflagged, *_CALIBRATED),
    contents.Classes: ("rows", _unflagged, *_CALIBRATED),
    OverTime: ("periods", _unflagged, *_CALIBRATED),
    contents.Reliability: ("ranges", lambda one: one.off, "the mean prediction", "the test allows"),
    contents.Spread: (
        "coverage", lambda one: one.observed.excludes(one.nominal), "the nominal coverage", "the test allows"
    ),
    Recalibration: ("maps", lambda one: above(one.gain), "0", "the test of calibration allows"),
}  # fmt: skip


def with_note(section: Any, verdict: Verdict) -> Any:
    """The section with a word on intervals that exclude their nominal value, where that is not significant."""
    if type(section) not in _EXCLUDING:
        return section
    name, is_off, what, who = _EXCLUDING[type(section)]
    parts = getattr(section, name)
    off = sum(map(is_off, parts))
    if not off or (verdict.state != "not significant" and is_off is not _unflagged):
        return section
    text = (
        f"{count(off)} of {count(len(parts))} intervals {'excludes' if off == 1 else 'exclude'} {what}: each interval "
        f"is valid alone, while {who} for all {count(len(parts))}."
    )
    return replace(section, note=text)


def method_notes(known: Shared, *own: str) -> tuple[str, ...]:
    """Notes on the method: those of one kind of report, and how its tests were adjusted for each other."""
    if len(known.adjusted) < 2:
        return own
    together = (
        f"The {len(known.adjusted)} tests of this report are adjusted for each other (Holm), so that a calibrated "
        "model is called miscalibrated in at most 5 % of reports. P-values of groups include this adjustment; those of "
        "all rows and of a change over time are shown without it."
    )
    return (*own, together)


def require_forwards(known: Any) -> None:
    """Raise an error where scores run backwards: no map is fitted to them."""
    if known.backwards:
        fail("The scores run backwards. A map would only hide that the column or the class is wrong.", CannotBuild)


class BinaryReport(TaskReport[Probabilities]):
    """Probabilities of an event."""

    kind: ClassVar[contents.Kind] = "binary"
    table = binary.BINARY
    confidence: ClassVar[bool] = False
    method = (
        "One interval is given for the calibration error: of the true L1 error. The other L1 estimates aim at the same "
        "quantity; an estimate outside it is biased, or off by chance."
    )
    findings = of_probabilities
    facts: ClassVar[Mapping[str, str]] = {"events": "events", "base_rate": "base_rate", "mean_prediction": "predicted"}

    def __init__(self, data: Binary | BinTable, options: Options) -> None:
        super().__init__(data, options)
        self.part = Part(data, options.seed)

    def evidence(self) -> Probabilities:
        """Error, level and slope, and the test."""
        return evidence.collected(self.part, self.made, confidence=self.confidence, **self.given)

    def figures(self) -> dict[str, Callable[[], Section]]:
        """The diagram."""
        return {"Reliability": partial(reliability.reliability_section, self.part, threshold=self.options.threshold)}

    def recalibrated(self, known: Probabilities) -> Recalibration:
        """Six maps, and the rows after the best one."""
        require_forwards(known)
        made, after = recalibration.recalibrated(self.part, self.options.rows)
        self.after = after.data if isinstance(after.data, Binary) else None
        return made

    def with_sections(self, known: Probabilities) -> Probabilities:
        """Also the ECE by number of bins and, at a threshold, the net benefit."""
        known, at, worth = super().with_sections(known), self.options.threshold, None
        bins = self.made.attempt("ECE and the number of bins", lambda: reliability.bin_counts(self.part))
        if at is not None and not self.confidence:
            worth = self.made.attempt("Net benefit", lambda: reliability.net_benefit_section(self.part, at))
        known = replace(known, bin_counts=bins, figures=(*known.figures, bins, worth))
        return evidence.with_diagram(known, known.figures[0])

    def completed(self, known: Probabilities) -> Probabilities:
        """A map for the rows since a change, which becomes the advice; or the rows that would settle what is open."""
        made, wanted = known.recalibration, limit(known.rarer, known.tolerance)
        if not significant(known) and not small(known) and wanted > 0:
            from calibrant.simulate.sample_sizes import rows_to_rule_out

            return replace(known, needed=self.made.attempt("", lambda: rows_to_rule_out(wanted, self.part.sample)))
        if made is None:
            return known
        asked = partial(recalibration.with_recent_map, made, self.data, self.options, known.over_time)
        recent = self.made.attempt("", asked)
        return replace(known, recalibration=recent or made)

    def numbers(self, known: Probabilities) -> Iterator[Number]:
        """Error, slope, and observed : expected."""
        yield from number("Calibration error, L1", known.error, 0.0, *_FAR, _about_error(known))
        yield from number("Calibration slope", known.slope, 1.0, *_TILTED, _about_slope(known), known.levels[1])
        events = plural(known.words.event, known.events, kind="event")
        side = _side(known.ratio, "predictions are too high in total.", "predictions are too low in total.")
        text = f"{count(known.events)} {events} observed, {count(known.expected)} predicted. {side}"
        yield from number("Observed : expected", known.ratio, 1.0, *_OFF, text, known.levels[0])

    def measures(self) -> list[Callable[[], Estimate | None]]:
        """Every estimate on the same table."""
        return probability_measures(self.part)


class ConfidenceReport(BinaryReport):
    """Confidence in answers, and whether they were right: over- and under-confident."""

    kind = "top label"
    row = "answer"
    event = "right answer"
    table = multiclass.CONFIDENCE
    confidence = True
    facts: ClassVar[Mapping[str, str]] = {"base_rate": "base_rate", "mean_prediction": "predicted"}

    def numbers(self, known: Probabilities) -> Iterator[Number]:
        """Error, confidence less accuracy, and slope."""
        text = "Mean distance between the confidence and the true chance of being right."
        yield from number("Calibration error, L1", known.error, 0.0, *_FAR, text)
        yield from confidence_less_accuracy(known)
        ways = (
            "high confidences are too high and low ones too low.",
            "high confidences are too low and low ones too high.",
        )
        yield from number("Calibration slope", known.slope, 1.0, *_TILTED, _side(known.slope, *ways), known.levels[1])


_FAR = ("points", "", "farther off")
_TILTED = ("ratio", "too extreme", "too moderate")
_OFF = ("ratio", "too high", "too low")


def number(name: str, value: Value | None, *rest: Any) -> Iterator[Number]:
    """One of the large numbers, where it is known."""
    if value is not None:
        yield Number(name, value, *rest)


def confidence_less_accuracy(known: Probabilities) -> Iterator[Number]:
    """The mean gap of the confidence, where it is known."""
    rows = f"{count(known.n)} {plural(known.words.row)}"
    text = f"Mean confidence minus accuracy, over {rows}. Above 0: over-confident."
    sides = ("points", "under-confident", "over-confident")
    yield from number("Confidence − accuracy", known.gap, 0.0, *sides, text, known.levels[0])


def _about_error(known: Probabilities) -> str:
    what, error, rarer = "Mean distance between predicted and true probability.", known.error, known.rarer
    if error is None or error.low is None or error.high is None or not rarer > 0:
        return what
    relative = percent(mapped(error, lambda end: end / rarer))
    base = "base rate is" if known.base_rate <= 0.5 else "rarer outcome has a frequency of"
    share = f"{relative.ends} % of it" if error.low > 0 else f"at most {relative.high} % of it"
    return f"{what} The {base} {score(rarer)}, so the error is {share}."


def _side(value: Value | None, below: str, above: str) -> str:
    """What a ratio means on its side of 1, if its interval excludes 1."""
    if value is None or not value.excludes(1.0):
        return "1 if calibrated."
    return f"Above 1: {above}" if value.value > 1 else f"Below 1: {below}"


def _about_slope(known: Probabilities) -> str:
    ways = ("high scores are too high and low scores too low.", "high scores are too low and low scores too high.")
    what = "Below 0: higher scores go with fewer events." if known.backwards else _side(known.slope, *ways)
    if known.intercept is None:
        return what
    shift = rounded(known.intercept, least=2, apart=0.0)
    return f"{what} Calibration in the large: {shift.value}{shift.brackets()}, in log odds."


def probability_measures(part: Part, *, scores: bool = True) -> list[Callable[[], Estimate | None]]:
    """Estimates of one event, the headline first; with or without mean scores."""
    cells = part.cells
    binned = (partial(ece, bins=EqualWidth(15)), ece, partial(debiased_ece, norm=1), sweep_ece)
    return [
        lambda: part.headline,
        lambda: part.variational.error(1),
        *(partial(part.with_interval, estimator) for estimator in binned),
        lambda: smooth_ece(cells),
        lambda: ks_error(cells),
        lambda: part.slope,
        lambda: part.intercept,
        lambda: part.observed_expected,
        *(partial(with_own_interval, score, part.sample) for score in ((brier, log_loss, auc) if scores else ())),
    ]


def with_own_interval(estimator: Callable[..., Estimate], data: Any) -> Estimate:
    """A mean score or the AUC with its interval; without one where these rows have none."""
    try:
        return interval(estimator, data)
    except contents.IMPOSSIBLE:
        return estimator(data)


class MulticlassReport(TaskReport[ProbabilityVectors]):
    """Probability vectors: tested and recalibrated as a whole, with the confidence in the predicted class beside it."""

    kind = "classes"
    table = multiclass.MULTICLASS
    findings = of_classes
    method = "Recalibration maps act on the whole vector; the top label is judged as the probability of being right."
    facts: ClassVar[Mapping[str, str]] = {"classes": "number", "base_rate": "base_rate", "mean_prediction": "predicted"}

    def __init__(self, data: Multiclass, options: Options) -> None:
        super().__init__(data, options)
        self.part = Part(data.top_label(), options.seed)

    @cached_property
    def test(self) -> Significance:
        """Of whole vectors, with the number of simulations behind it; of weighted or dependent rows, of each class."""
        if self.data.group is not None or not all_alike(self.data.weight):
            return task_sections.each_class(self.data)[1]
        return calibration_test(self.data)

    def evidence(self) -> ProbabilityVectors:
        """The test of vectors, and all that is known of the top label."""
        data, top = self.data, evidence.collected(self.part, self.made, confidence=True, **self.given)
        probability = np.asarray(data.y_prob)
        decided = bool(np.all((probability == 0) | (probability == 1)))
        own = probability[np.arange(len(data)), np.asarray(data.y_true)]
        return ProbabilityVectors(
            n=len(data),
            number=len(data.classes),
            top=top,
            decisions=evidence.rate_interval(top.events, float(len(data))) if decided else None,
            impossible=int(np.sum(own == 0)),
            effective_n=top.effective_n,
            clusters=top.clusters,
            **self.given,
            **evidence.verdict_test(self.made, lambda: self.test),
        )

    def figures(self) -> dict[str, Callable[[], Section]]:
        """The diagram of the top label, and the classes."""
        diagram = partial(reliability.reliability_section, self.part, threshold=self.options.threshold)
        return {"Reliability": diagram, "Classes": partial(task_sections.classes_section, self.data)}

    def recalibrated(self, known: ProbabilityVectors) -> Recalibration:
        """Maps of whole vectors."""
        require_forwards(known.top)
        return recalibration.class_recalibration(self.data, seed=self.options.seed)

    def with_sections(self, known: ProbabilityVectors) -> ProbabilityVectors:
        """What the diagram says of the top label, too."""
        known = super().with_sections(known)
        diagram, classes = known.figures
        return replace(known, classes=classes, top=evidence.with_diagram(known.top, diagram))  # type: ignore[arg-type]

    def numbers(self, known: ProbabilityVectors) -> Iterator[Number]:
        """Top-label error, confidence less accuracy, and class-wise error."""
        top: Any = known.top
        text = "Mean distance between the confidence in the predicted class and its true chance of being right."
        yield from number("Top-label calibration error, L1", top.error, 0.0, *_FAR, text)
        value = evidence.of_error(self.made.attempt("", self._classwise_error))
        if known.decisions is None:
            yield from confidence_less_accuracy(top)
            text = f"Mean over {known.number} classes of the debiased error of each against the rest."
            yield from number("Class-wise calibration error", value, 0.0, *_FAR, text)

    def _classwise_error(self) -> Estimate:
        """The debiased class-wise error, with the interval of the true one where rows are independent."""
        estimator, data = partial(classwise, partial(debiased_ece, norm=1)), self.data
        return interval(estimator, data) if data.weight is None and data.group is None else estimator(data)

    def measures(self) -> list[Callable[[], Estimate | None]]:
        """Estimates of the top label and of all classes; scores are of the whole vector."""
        scores = (partial(with_own_interval, score, self.data) for score in (brier, log_loss))
        return [*probability_measures(self.part, scores=False), partial(classwise, ece, self.data), *scores]

    def tests(self, known: ProbabilityVectors) -> tuple[Significance, ...]:
        """Of whole vectors, and of the confidence."""
        confidence = self.made.attempt("", lambda: self.part.test)
        return (*super().tests(known), *(() if confidence is None else (confidence,)))


class ForecastReport(TaskReport[Forecasts]):
    """Predicted distributions of a number."""

    kind = "regression"
    row = "forecast"
    table = forecasts.FORECASTS
    findings = of_forecasts
    method = (
        "The interval of the error-to-spread ratio allows for heavy tails; ENCE is shown beside the range of a "
        "calibrated forecaster of the same size."
    )

    def __init__(self, data: Forecast | BinTable, options: Options) -> None:
        super().__init__(data, options)
        self.part = evidence.ForecastPart(data)

    def evidence(self) -> Forecasts:
        """Ratio, bias, spread of single rows, shape and coverage."""
        return evidence.forecast_evidence(self.part, self.made, **self.given)

    def figures(self) -> dict[str, Callable[[], Section]]:
        """Spread and error."""
        return {"Spread and error": partial(task_sections.spread_section, self.data)}

    def recalibrated(self, known: Forecasts) -> Recalibration:
        """Maps of the spread."""
        return recalibration.forecast_recalibration(self.data, seed=self.options.seed)

    def numbers(self, known: Forecasts) -> Iterator[Number]:
        """Error-to-spread ratio, coverage, and ENCE."""
        text = "Root mean squared standardised error, (y − mean) / std. Above 1: errors are larger than predicted."
        yield from number("Error-to-spread ratio", known.ratio, 1.0, "ratio", "too wide", "too narrow", text)
        level, sides = f"{100 * known.level:.4g} %", ("percent", "too narrow", "too wide")
        text = f"Share of outcomes inside the central {level} interval of each forecast."
        yield from number(f"Coverage of {level} intervals", known.coverage, known.level, *sides, text)
        if known.ence is not None and known.ence_null is not None:
            text = (
                "Mean relative gap between spread and error per bin of the spread. A calibrated forecaster of this "
                f"size would show {known.ence_when_calibrated} %."
            )
            yield Number("ENCE, 10 bins", Value(known.ence), 0.0, "percent", "", "farther off", text)
        if known.bias is not None and known.bias.excludes(0.0) and not known.dominated:
            text = "Mean of (y − mean) / std. Above 0: outcomes are higher than predicted."
            yield Number("Mean standardised error", known.bias, 0.0, "none", "too high", "too low", text)

    def measures(self) -> list[Callable[[], Estimate | None]]:
        """Estimates of forecasts; the headline is the ratio or, where there is no spread, the coverage."""
        part, beside = self.part, self._beside_range
        first = [lambda: part.ratio, lambda: beside(part.ence), lambda: part.coverage, lambda: part.bias]
        errors = (interval_error, quantile_error, pit_error)
        return [
            *(first[2:] if self.made.attempt("", first[0]) is None else first),
            *(lambda one=one: beside(one(part.data)) for one in errors),
            *(lambda one=one: one(part.cells) for one in (debiased_ence, uce)),
            *(lambda one=one: one(part.spread_data) for one in (std_dispersion, sharpness)),
            *(partial(one, part.data) for one in (crps, nll, pinball)),
        ]

    def _beside_range(self, estimate: Estimate) -> Estimate:
        """With the range of a calibrated forecaster of independent rows in place of an interval; its method says so."""
        null = estimate.details.get("null", {})
        if self.part.dependent or not null or null["low"] == null["high"]:
            return estimate
        how = f"range of a calibrated forecaster ({null['law']})"
        return estimate.with_interval(Interval(float(null["low"]), float(null["high"]), 0.95, how))


class UnlabeledReport(TaskReport[Unlabeled]):
    """Labelled positives and unlabeled rows: PU-ECE, a score test, and how much depends on the assumed share."""

    kind = "unlabeled"
    table = unlabeled.UNLABELED
    findings = of_unlabeled
    facts: ClassVar[Mapping[str, str]] = {"events": "positives", "base_rate": "prior", "mean_prediction": "predicted"}

    def __init__(self, data: PositiveUnlabeled | BinTable, options: Options) -> None:
        super().__init__(data, options)
        self.cells = data if isinstance(data, BinTable) else BinTable.of(data, Distinct())

    @cached_property
    def test(self) -> Significance:
        """The score test at the assumed share."""
        return calibration_test(self.cells)

    @cached_property
    def headline(self) -> Estimate | None:
        """PU-ECE with its interval."""
        return self.made.attempt("Calibration error", lambda: interval(calibration_error, self.cells))

    def evidence(self) -> Unlabeled:
        """The error at the assumed share and around it, and the largest share that the data allow."""
        why = "Groups of positive-unlabeled rows may differ in their share of positives: report on each by itself."
        for name, asked in (("Groups", self.options.by), ("Over time", self.options.time)):
            if asked:
                self.made.omit(name, why)
        shares = self.made.attempt("Shares of positives", lambda: task_sections.shares_section(self.data))
        error = evidence.of_error(self.headline)
        known = evidence.unlabeled_evidence(self.cells, self.made, shares, **self.given)
        tested = evidence.verdict_test(self.made, lambda: self.test)
        return replace(known, error=error, figures=(shares,), **tested)

    def with_sections(self, known: Unlabeled) -> Unlabeled:
        """None but the shares, which the evidence holds."""
        return known

    def numbers(self, known: Unlabeled) -> Iterator[Number]:
        """The error, observed : expected, and the largest share."""
        at = score(known.prior)
        text = "PU-ECE: mean distance between predicted probability and the share implied by the labelled positives."
        yield from number(f"Calibration error at {at}", known.error, 0.0, *_FAR, text)
        text = (
            f"Assumed share, {at}, over mean prediction, {score(known.predicted)}: proportional to the assumed share. "
            "The interval allows for sampling alone."
        )
        yield from number(f"Observed : expected at {at}", known.ratio, 1.0, *_OFF, text)
        largest = None if known.largest_prior is None else Value(known.largest_prior)
        sides, text = (
            ("percent", "below assumed", "above"),
            "Above it, some scores would need more positives than rows.",
        )
        yield from number("Largest share the data allow", largest, known.prior, *sides, text)

    def measures(self) -> list[Callable[[], Estimate | None]]:
        """The headline, other estimators and, where the table is exact, mean scores."""
        scores = () if isinstance(self.data, BinTable) else (brier, log_loss, auc)
        others = (ece, debiased_ece, sweep_ece, ks_error, *scores)
        return [lambda: self.headline, *(partial(one, self.cells) for one in others)]

    def note(self, known: Unlabeled) -> str:
        """On the assumption."""
        given = unlabeled.given_in_words(known)
        return f"The {given} of positives is an assumption; intervals allow for sampling alone."
