"""The reports of the four tasks (binary, multiclass, forecasts, positive-unlabeled), and what they share.

Each collects evidence, makes its sections, judges all tests together, and words the verdict and the findings. Sections
on groups and time, the facts, and the reading order are common to all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass
from calibrant.estimators.binned import ece
from calibrant.estimators.cumulative import ks_error
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import auc, brier, log_loss
from calibrant.estimators.regression_coverage import interval_error, pit_error, quantile_error
from calibrant.estimators.regression_scores import crps, nll, pinball, sharpness
from calibrant.estimators.regression_spread import debiased_ence, std_dispersion, uce
from calibrant.estimators.smooth_errors import smooth_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.changes_over_time import periods
from calibrant.inference.intervals import interval
from calibrant.numerics.rows import all_alike
from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.contents import (
    BinCounts,
    CannotBuild,
    Classes,
    Contents,
    Facts,
    Groups,
    Number,
    Omitted,
    OverTime,
    Recalibration,
    Reliability,
    Section,
    Shares,
    Spread,
)
from calibrant.reporting.evidence import (
    ForecastPart,
    collected,
    forecast_evidence,
    of_error,
    rate_interval,
    verdict_test,
    with_diagram,
)
from calibrant.reporting.findings import of_classes, of_forecasts, of_probabilities, of_unlabeled
from calibrant.reporting.model import Measure, Report
from calibrant.reporting.names import name_of_map
from calibrant.reporting.part_results import Part
from calibrant.reporting.rounding import count, percent, rate, rounded, score
from calibrant.reporting.sections.groups import group_section
from calibrant.reporting.sections.over_time import over_time, since
from calibrant.reporting.sections.recalibration import binary_code, commands, recalibrated
from calibrant.reporting.sections.reliability import bin_counts, reliability_section
from calibrant.reporting.sections.task_recalibration import class_recalibration, forecast_recalibration
from calibrant.reporting.sections.task_sections import classes_section, each_class, shares_section, spread_section
from calibrant.reporting.verdicts.binary import binary_verdict
from calibrant.reporting.verdicts.evidence import Forecasts, Probabilities, SeveralClasses, Shared, Unlabeled, Words
from calibrant.reporting.verdicts.forecasts import forecast_verdict
from calibrant.reporting.verdicts.multiclass import multiclass_verdict
from calibrant.reporting.verdicts.severity import Evidence, changed, judged_together
from calibrant.reporting.verdicts.unlabeled import given_in_words, unlabeled_verdict
from calibrant.results.estimate import Estimate, Interval, Significance, Value
from calibrant.table.binning import Distinct, EqualMass, EqualWidth, PaperBins
from calibrant.table.bintable import BinTable, merge
from calibrant.table.task import Gaps, largest_prior

Given = TypeVar("Given")

#: As a reader meets them.
READING_ORDER = (Reliability, Spread, Shares, Classes, OverTime, Groups, Recalibration, BinCounts)


def in_reading_order(made: Assembly) -> tuple[Section, ...]:
    """The sections made, ordered for reading."""
    return tuple(sorted(made.sections, key=lambda section: READING_ORDER.index(type(section))))


def group_sections(made: Assembly, data: Any, options: Options, *, after: Any = None) -> tuple[Groups, ...]:
    """One section per column; columns that cannot be grouped say why."""
    found = []
    for column, by in options.by:
        name = f"Groups by {column}" if column else "Groups"
        section = made.add(name, partial(group_section, data, by, column=column or "group", after=after))
        if section is not None:
            found.append(section)
    return tuple(found)


def method_notes(known: Shared, *own: str) -> tuple[str, ...]:
    """Notes on the method: those of one kind of report, and how its tests were adjusted for each other."""
    if len(known.adjusted) < 2:
        return own
    together = (
        f"The {len(known.adjusted)} tests of this report are adjusted for each other (Holm), so that a calibrated "
        "model is called miscalibrated in at most 5 % of reports. P-values of groups hold that adjustment; those of "
        "all rows and of a change over time are shown without it."
    )
    return (*own, together)


def shared_facts(known: Shared, options: Options, **own: Any) -> Facts:
    """The line of facts that every kind of report has, with those of its own; what is not known is left out."""
    return Facts(
        rows=known.n,
        row=known.words.row,
        event=known.words.event,
        effective_rows=known.effective_n,
        clusters=known.clusters,
        period=period(known.over_time),
        model=options.model,
        source=options.source,
        **own,
    )


def period(time: OverTime | None) -> str | None:
    """The first and last period."""
    if time is None or not time.periods:
        return None
    first, last = time.periods[0].name, time.periods[-1].name
    return first if first == last else f"{first} to {last}"


def with_readers_names(made: Recalibration | None) -> Recalibration | None:
    """The section with the names of maps that readers know, not those of classes."""
    if made is None:
        return None
    maps = tuple(replace(one, name=name_of_map(one.name)) for one in made.maps)
    return replace(made, maps=maps)


def judged(known: Evidence, made: Assembly) -> Evidence:
    """The evidence, and the sections, after the tests of the report were adjusted for each other."""
    found = judged_together(known)
    kept = [*known.groups, known.over_time]
    new = [*found.groups, found.over_time]
    for old, section in zip(kept, new, strict=True):
        if old is not None and section is not None:
            made.sections = [section if one is old else one for one in made.sections]
    return found


def time_section(made: Assembly, data: Any, options: Options) -> OverTime | None:
    """Observed and expected events in order of time, if the user gave the time of each row."""
    if options.time is None:
        return None
    column, values = options.time
    return made.add("Over time", lambda: over_time(data, values, column=column or "time"))


def with_recent_map(made: Recalibration, data: Any, options: Options, time: OverTime | None) -> Recalibration:
    """The section with the best map fitted and judged on the rows since the change over time, if there was one.

    It is the one that readers are told to use, so that the command and the code fit it to those rows.
    """
    change = changed(time)
    if change is None or time is None or options.time is None:
        return made
    column, values = options.time
    if isinstance(values, Mapping):
        some: Any = merge(list(values.values())[change.first :])
    else:
        some = data.take(periods(values, name="time", length=len(data)).index >= change.first)
    best = recalibrated(Part(some, options.seed))[0].maps[0]
    start = since(column, values, change.first)
    return replace(
        made,
        recent=replace(best, name=name_of_map(best.name)),
        command=commands(best.name, "--prob p", since=start),
        code=binary_code(best.name, since=start),
    )


NOTES = (
    "One interval is given for the calibration error: of the true L1 error. The other L1 estimates aim at the same "
    "quantity; one that lies outside is biased, or off by chance.",
)


def probability_report(data: Binary | BinTable, options: Options) -> Report:
    """Verdict, numbers, sections and findings of one event."""
    part, made = Part(data, options.seed), Assembly()
    words = Words(options.row or "row", options.event or "event", options.source or "")
    known = collected(part, made, words=words, tolerance=options.tolerance)
    if known.n > 0:
        known = _with_probability_sections(known, part, made, options)
    found = binary_verdict(known)
    contents = Contents(
        kind="binary",
        facts=probability_facts(known, options),
        verdict=found,
        numbers=probability_numbers(known),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=method_notes(known, *NOTES),
    )
    tests = () if known.test is None else (part.test,)
    measured = probability_measures(part, made) if known.n > 0 else ()
    return Report(options.title, contents, measured, tests, of_probabilities(known, found))


def _with_probability_sections(known: Probabilities, part: Part, made: Assembly, options: Options) -> Probabilities:
    """Every section, and what the verdict learns from it."""
    diagram = made.add("Reliability", lambda: reliability_section(part, threshold=options.threshold))
    time = time_section(made, part.data, options)
    remade = made.attempt("Recalibration", lambda: recalibrated(_not_backwards(known, part)))
    after = None if remade is None or not isinstance(remade[1].data, Binary) else remade[1].data
    groups = group_sections(made, part.data, options, after=after)
    bins = made.add("ECE and the number of bins", lambda: bin_counts(part))
    known = judged(replace(with_diagram(known, diagram, bins), over_time=time, groups=groups), made)
    improved = None if remade is None else with_readers_names(remade[0])
    if improved is not None:
        section, time = improved, known.over_time
        improved = made.attempt("", lambda: with_recent_map(section, part.data, options, time)) or improved
        made.sections.append(improved)
    return replace(known, recalibration=improved)


def _not_backwards(known: Probabilities, given: Given) -> Given:
    """What a map would be fitted to, unless the scores run backwards."""
    if known.backwards:
        message = "The scores run backwards. A map would only hide that the column or the class is wrong."
        raise CannotBuild(message)
    return given


def probability_facts(known: Probabilities, options: Options) -> Facts:
    """The line of facts; what is not known is left out."""
    return shared_facts(
        known,
        options,
        events=known.events if known.n else None,
        base_rate=known.base_rate if known.n else None,
        mean_prediction=known.predicted if known.n else None,
    )


def probability_numbers(known: Probabilities) -> tuple[Number, ...]:
    """The three numbers: error, slope, and observed : expected."""
    found = []
    if known.error is not None:
        found.append(
            Number("Calibration error, L1", known.error, 0.0, "points", "", "farther off", _about_error(known))
        )
    if known.slope is not None:
        found.append(
            Number("Calibration slope", known.slope, 1.0, "ratio", "too extreme", "too moderate", _about_slope(known))
        )
    if known.ratio is not None:
        text = (
            f"{count(known.events)} events observed, {count(known.expected)} expected from the predictions. Below 1: "
            "predictions are too high in total."
        )
        found.append(Number("Observed : expected", known.ratio, 1.0, "ratio", "too high", "too low", text))
    return tuple(found)


def _about_error(known: Probabilities) -> str:
    what = "Mean distance between predicted and true probability."
    error = known.error
    if error is None or error.low is None or error.high is None or not known.rarer > 0:
        return what
    relative = percent(Value(error.value / known.rarer, error.low / known.rarer, error.high / known.rarer))
    base = (
        f"The base rate is {rate(known.base_rate)}"
        if known.base_rate <= 0.5
        else (f"The rarer outcome has a frequency of {rate(known.rarer)}")
    )
    share = f"{relative.ends} % of it" if error.low > 0 else f"at most {relative.high} % of it"
    return f"{what} {base}, so the error is {share}."


def _about_slope(known: Probabilities) -> str:
    what = "Below 1: high scores are too high and low scores too low."
    if known.backwards:
        what = "Below 0: higher scores go with fewer events."
    if known.intercept is None:
        return what
    shift = rounded(known.intercept, least=2, apart=0.0)
    ends = f" ({shift.ends})" if shift.ends else ""
    return f"{what} Calibration in the large {shift.value}{ends} on the log-odds scale."


def probability_measures(part: Part, made: Assembly) -> tuple[Measure, ...]:
    """Every estimate on the same table, the headline first; those that the data do not allow are left out."""
    cells = part.cells
    wanted: list[tuple[Callable[[], Estimate], bool]] = [
        (lambda: part.headline, True),
        (lambda: part.variational.error(1), False),
        *(
            (partial(part.with_interval, estimator), False)
            for estimator in (partial(ece, bins=EqualWidth(15)), ece, partial(debiased_ece, norm=1), sweep_ece)
        ),
        (lambda: smooth_ece(cells), False),
        (lambda: ks_error(cells), False),
        (lambda: part.slope, False),
        (lambda: part.intercept, False),
        (lambda: part.observed_expected, False),
        (lambda: part.brier, False),
        (lambda: part.log_loss, False),
        (lambda: auc(cells), False),
    ]
    found = [(made.attempt("", make), headline) for make, headline in wanted]
    return tuple(Measure(estimate, headline) for estimate, headline in found if estimate is not None)


def class_report(data: Multiclass, options: Options) -> Report:
    """Verdict, numbers, sections and findings of probability vectors."""
    made, words = Assembly(), Words(options.row or "row", options.event or "event", options.source or "")
    part = Part(data.top_label(), options.seed)
    top = collected(part, made, words=words, tolerance=options.tolerance, confidence=True)
    test, tested = verdict_test(made, lambda: vector_test(data))
    known = SeveralClasses(
        n=len(data),
        number=len(data.classes),
        words=words,
        tolerance=options.tolerance,
        decisions=_decisions(data, top),
        impossible=made.attempt("", lambda: _impossible(data)) or 0,
        effective_n=top.effective_n,
        clusters=top.clusters,
        **tested,
    )
    if known.n > 0:
        known = _with_class_sections(known, top, data, part, made, options)
    found = multiclass_verdict(known)
    contents = Contents(
        kind="classes",
        facts=_class_facts(known, options),
        verdict=found,
        numbers=_class_numbers(known, data, made),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=method_notes(
            known,
            "Recalibration maps act on the whole vector; the top label is judged as the probability of being right.",
        ),
    )
    tests = tuple(one for one in (test, made.attempt("", lambda: part.test)) if one is not None)
    return Report(options.title, contents, _class_measures(data, part, made), tests, of_classes(known, found))


def vector_test(data: Multiclass) -> Significance:
    """The test of whole vectors with the number of simulations behind it; of weighted or dependent rows, of classes."""
    if data.group is not None or not all_alike(data.weight):
        return each_class(data)[1]
    return calibration_test(data)


def _with_class_sections(
    known: SeveralClasses, top: Probabilities, data: Multiclass, part: Part, made: Assembly, options: Options
) -> SeveralClasses:
    diagram = made.add("Reliability", lambda: reliability_section(part, threshold=options.threshold))
    found = replace(
        known,
        top=with_diagram(top, diagram, None),
        classes=made.add("Classes", lambda: classes_section(data)),
        over_time=time_section(made, part.data, options),
        recalibration=made.add(
            "Recalibration",
            lambda: with_readers_names(class_recalibration(_not_backwards(top, data), seed=options.seed)),
        ),
        groups=group_sections(made, data, options),
    )
    return judged(found, made)


def _decisions(data: Multiclass, top: Probabilities) -> Value | None:
    """The share of right predictions, where vectors hold only 0 and 1."""
    probability = np.asarray(data.y_prob)
    if not len(data) or not np.all((probability == 0) | (probability == 1)):
        return None
    return rate_interval(top.events, float(len(data)))


def _impossible(data: Multiclass) -> int:
    """Rows of a class that was predicted with a probability of exactly 0."""
    rows = np.arange(len(data))
    return int(np.sum(np.asarray(data.y_prob)[rows, np.asarray(data.y_true)] == 0))


def _class_facts(known: SeveralClasses, options: Options) -> Facts:
    top = known.top
    return shared_facts(
        known,
        options,
        classes=known.number,
        base_rate=None if top is None else top.base_rate,
        mean_prediction=None if top is None else top.predicted,
    )


def _class_numbers(known: SeveralClasses, data: Multiclass, made: Assembly) -> tuple[Number, ...]:
    """Top-label error, temperature, and class-wise error."""
    found = []
    top = known.top
    if top is not None and top.error is not None:
        text = "Mean distance between the confidence in the predicted class and its true chance of being right."
        found.append(Number("Top-label calibration error, L1", top.error, 0.0, "points", "", "farther off", text))
    if top is not None and top.gap is not None and known.decisions is None:
        text = f"Mean confidence less accuracy, of {count(known.n)} predictions. Above 0: over-confident."
        found.append(Number("Confidence − accuracy", top.gap, 0.0, "points", "under-confident", "over-confident", text))
    value = of_error(made.attempt("", lambda: classwise_error(data)))
    if value is not None and known.decisions is None:
        text = f"Mean over {known.number} classes of the debiased error of each against the rest."
        found.append(Number("Class-wise calibration error", value, 0.0, "points", "", "farther off", text))
    return tuple(found)


def classwise_error(data: Multiclass) -> Estimate:
    """The debiased class-wise error, with the interval of the true one where rows are independent."""
    estimator = partial(classwise, partial(debiased_ece, norm=1))
    if data.weight is not None or data.group is not None:
        return estimator(data)
    return interval(estimator, data)


def _class_measures(data: Multiclass, part: Part, made: Assembly) -> tuple[Measure, ...]:
    """Estimates of the top label and of all classes; scores are of the whole vector."""
    kept = [m for m in probability_measures(part, made) if m.estimate.name not in ("Brier score", "Log loss", "AUC")]
    more = [
        made.attempt("", make) for make in (lambda: classwise(ece, data), lambda: brier(data), lambda: log_loss(data))
    ]
    return (*kept, *(Measure(estimate) for estimate in more if estimate is not None))


def forecast_report(data: Forecast | BinTable, options: Options) -> Report:
    """Verdict, numbers, sections and findings of predicted distributions."""
    part, made = ForecastPart(data, options.seed), Assembly()
    words = Words(options.row or "forecast", options.event or "event", options.source or "")
    known = forecast_evidence(part, made, words=words, tolerance=options.tolerance)
    if known.n > 0:
        made.add("Spread and error", lambda: spread_section(data))
        known = judged(
            replace(
                known,
                over_time=time_section(made, data, options),
                recalibration=made.add(
                    "Recalibration",
                    lambda: with_readers_names(forecast_recalibration(_forecast_rows(data), seed=options.seed)),
                ),
                groups=group_sections(made, data, options),
            ),
            made,
        )
    found = forecast_verdict(known)
    contents = Contents(
        kind="regression",
        facts=shared_facts(known, options),
        verdict=found,
        numbers=_forecast_numbers(known),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=method_notes(
            known,
            "The interval of the error-to-spread ratio allows for heavy tails; ENCE is shown beside the range of a "
            "calibrated forecaster of the same size.",
        ),
    )
    tests = () if known.test is None else (part.test,)
    return Report(options.title, contents, _forecast_measures(part, made), tests, of_forecasts(known, found))


def _forecast_rows(data: Forecast | BinTable) -> Forecast:
    if isinstance(data, BinTable):
        message = "A table of spreads has no rows to fit and judge maps on."
        raise CannotBuild(message)
    return data


def _forecast_numbers(known: Forecasts) -> tuple[Number, ...]:
    """Error-to-spread ratio, coverage, and ENCE."""
    found = []
    if known.ratio is not None:
        text = "Root mean squared standardised error, (y − mean) / std. Above 1: errors are larger than predicted."
        found.append(Number("Error-to-spread ratio", known.ratio, 1.0, "ratio", "too wide", "too narrow", text))
    if known.coverage is not None:
        level = f"{100 * known.level:.4g} %"
        text = f"Share of outcomes inside the central {level} interval of each forecast."
        name = f"Coverage of {level} intervals"
        found.append(Number(name, known.coverage, known.level, "percent", "too narrow", "too wide", text))
    if known.ence is not None and known.ence_null is not None:
        low, high = known.ence_null
        null = percent(Value((low + high) / 2, low, high)).ends
        text = (
            "Mean relative gap between spread and error per bin of the spread. A calibrated forecaster of this size "
            f"would show {null} %."
        )
        found.append(Number("ENCE, 10 bins", Value(known.ence), 0.0, "percent", "", "farther off", text))
    return tuple(found)


def _forecast_measures(part: ForecastPart, made: Assembly) -> tuple[Measure, ...]:
    """Those estimates that this kind of forecast allows; the first is the headline."""
    # The range is that of independent rows.
    with_range: Callable[[Estimate], Estimate] = (lambda found: found) if part.dependent else _with_reference_range
    wanted: tuple[Callable[[], Estimate], ...] = (
        lambda: part.ratio,
        lambda: with_range(part.ence),
        lambda: part.coverage,
        *(
            lambda estimator=estimator: with_range(estimator(part.data))
            for estimator in (interval_error, quantile_error, pit_error)
        ),
        lambda: debiased_ence(part.cells),
        lambda: uce(part.cells),
        *(lambda estimator=estimator: estimator(part.spread_data) for estimator in (std_dispersion, sharpness)),
        *(lambda estimator=estimator: estimator(part.data) for estimator in (crps, nll, pinball)),
    )
    found = [estimate for make in wanted if (estimate := made.attempt("", make)) is not None]
    return tuple(Measure(estimate, headline=k == 0) for k, estimate in enumerate(found))


def _with_reference_range(estimate: Estimate) -> Estimate:
    """The range of a calibrated forecaster in place of a confidence interval; its method says so."""
    null = estimate.details.get("null", {})
    if not null or null["low"] == null["high"]:
        return estimate
    how = f"range of a calibrated forecaster ({null['law']})"
    return estimate.with_interval(Interval(float(null["low"]), float(null["high"]), 0.95, how))


def unlabeled_report(data: PositiveUnlabeled | BinTable, options: Options) -> Report:
    """PU-ECE with its interval, a score test, and how much hangs on the share."""
    made = Assembly()
    cells = data if isinstance(data, BinTable) else BinTable.of(data, Distinct())
    for name, given in (("Groups", options.by), ("Over time", options.time)):
        if given:
            reason = (
                "Groups of positive-unlabeled rows may differ in their share of positives: report on each by itself."
            )
            made.omitted.append(Omitted(name, reason))
    shares = made.add("Shares of positives", lambda: shares_section(data))
    measures = _unlabeled_measures(cells, made, scores=not isinstance(data, BinTable))
    test, tested = verdict_test(made, lambda: calibration_test(cells))
    words = Words(options.row or "row", options.event or "event", options.source or "")
    error = of_error(measures[0].estimate) if measures else None
    known = replace(_unlabeled_evidence(cells, made, shares, words, error, options), **tested)
    found = unlabeled_verdict(known)
    contents = Contents(
        kind="unlabeled",
        facts=shared_facts(
            known, options, events=known.positives, base_rate=known.prior, mean_prediction=known.predicted
        ),
        verdict=found,
        numbers=_unlabeled_numbers(known),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=(f"The {given_in_words(known)} of positives is an assumption; intervals are of sampling only.",),
    )
    tests = () if test is None else (test,)
    return Report(options.title, contents, measures, tests, of_unlabeled(known, found))


def _unlabeled_evidence(
    cells: BinTable, made: Assembly, shares: Shares | None, words: Words, error: Value | None, options: Options
) -> Unlabeled:
    gaps = Gaps.of(cells)
    predicted = float(gaps.predicted.sum())
    squares = float(gaps.predicted_squares.sum())
    variance = max(squares - predicted**2, 0.0) if math.isfinite(squares) else 0.25
    reach = 1.96 * math.sqrt(variance / max(gaps.n_unlabeled, 1.0))
    ratio = None
    if predicted - reach > 0:
        ratio = Value(gaps.prior / predicted, gaps.prior / (predicted + reach), gaps.prior / (predicted - reach))
    coarse = cells.coarsen(EqualMass(15)) if cells.fine else cells
    return Unlabeled(
        n=round(gaps.n_positive + gaps.n_unlabeled),
        words=words,
        tolerance=options.tolerance,
        positives=round(gaps.n_positive),
        unlabeled=round(gaps.n_unlabeled),
        prior=gaps.prior,
        largest_prior=made.attempt("", lambda: float(largest_prior(coarse))),
        predicted=predicted,
        ratio=ratio,
        error=error,
        priors=() if shares is None else shares.priors,
        errors=() if shares is None else shares.errors,
        impossible=0 if shares is None else sum((one.observed.low or 0.0) > 1 for one in shares.implied),
        ranges=0 if shares is None else len(shares.implied),
        frequency=gaps.frequency if gaps.known_frequency else None,
    )


def _unlabeled_numbers(known: Unlabeled) -> tuple[Number, ...]:
    """The error, observed : expected, and the largest share."""
    at = score(known.prior)
    found = []
    if known.error is not None:
        text = "PU-ECE: mean distance between predicted probability and the share implied by the labelled positives."
        found.append(Number(f"Calibration error at {at}", known.error, 0.0, "points", "", "farther off", text))
    if known.ratio is not None:
        text = (
            f"Assumed share {at} over mean prediction {score(known.predicted)}; the interval is of sampling only. "
            "It moves in proportion to the assumed share."
        )
        found.append(Number(f"Observed : expected at {at}", known.ratio, 1.0, "ratio", "too high", "too low", text))
    if known.largest_prior is not None:
        text = "Above it, some scores would need more positives than rows."
        largest = Value(known.largest_prior)
        found.append(Number("Largest share the data allow", largest, known.prior, "percent", "impossible", "", text))
    return tuple(found)


def _unlabeled_measures(cells: BinTable, made: Assembly, *, scores: bool) -> tuple[Measure, ...]:
    """The headline, other estimators and, where the table is exact, mean scores."""
    headline = made.attempt("Calibration error", lambda: interval(partial(ece, bins=PaperBins()), cells))
    wanted = (ece, debiased_ece, sweep_ece, ks_error, *((brier, log_loss, auc) if scores else ()))
    more = [partial(one, cells) for one in wanted]
    others = [estimate for make in more if (estimate := made.attempt("", make)) is not None]
    return tuple(Measure(one, headline=one is headline) for one in (headline, *others) if one is not None)
