"""The report on several classes: whole vectors first, then every class, then the top label."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from calibrant.data.predictions import Multiclass
from calibrant.estimators.binned import ece
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.multiclass import classwise
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.intervals import interval
from calibrant.inference.several_classes.vector_test import default_draws
from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.class_findings import of_classes
from calibrant.reporting.contents import Contents, Facts, Number, Value
from calibrant.reporting.evidence import collected, of_error, of_test, rate_interval, with_diagram
from calibrant.reporting.model import Measure, Report
from calibrant.reporting.part import Part
from calibrant.reporting.probabilities import measures
from calibrant.reporting.rounding import count
from calibrant.reporting.sections.class_recalibration import class_recalibration
from calibrant.reporting.sections.classes import classes_section
from calibrant.reporting.sections.reliability import reliability_section
from calibrant.reporting.shared_sections import (
    group_sections,
    in_reading_order,
    judged,
    method_notes,
    shared_facts,
    time_section,
    with_readers_names,
)
from calibrant.reporting.verdicts.evidence import Probabilities, SeveralClasses, Words
from calibrant.reporting.verdicts.several_classes import verdict
from calibrant.results.estimate import Estimate, Significance


def class_report(data: Multiclass, options: Options) -> Report:
    """Verdict, numbers, sections and findings of probability vectors."""
    made, words = Assembly(), Words(options.row or "row", options.event or "event", options.source or "")
    part = Part(data.top_label(), options.seed)
    top = collected(part, made, words=words, tolerance=options.tolerance, confidence=True)
    test = made.attempt("Test of the whole vector", lambda: vector_test(data))
    known = SeveralClasses(
        n=len(data),
        number=len(data.classes),
        words=words,
        tolerance=options.tolerance,
        test=None if test is None else of_test(test),
        decisions=_decisions(data, top),
        impossible=made.attempt("", lambda: _impossible(data)) or 0,
        effective_n=top.effective_n,
        clusters=top.clusters,
    )
    if known.n > 0:
        known = _with_sections(known, top, data, part, made, options)
    found = verdict(known)
    contents = Contents(
        kind="classes",
        facts=_facts(known, options),
        verdict=found,
        numbers=_numbers(known, data, made),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=method_notes(
            known,
            "Recalibration maps act on the whole vector; the top label is judged as the probability of being right.",
        ),
    )
    tests = tuple(one for one in (test, made.attempt("", lambda: part.test)) if one is not None)
    return Report(options.title, contents, _measures(data, part, made), tests, of_classes(known, found))


def vector_test(data: Multiclass) -> Significance:
    """The test of whole vectors, with the number of simulations behind it."""
    found = calibration_test(data)
    return replace(found, details={**found.details, "draws": default_draws(len(data))})


def _with_sections(
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
            lambda: with_readers_names(class_recalibration(data, seed=options.seed)),
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


def _facts(known: SeveralClasses, options: Options) -> Facts:
    top = known.top
    return shared_facts(
        known,
        options,
        classes=known.number,
        base_rate=None if top is None else top.base_rate,
        mean_prediction=None if top is None else top.predicted,
    )


def _numbers(known: SeveralClasses, data: Multiclass, made: Assembly) -> tuple[Number, ...]:
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


def _measures(data: Multiclass, part: Part, made: Assembly) -> tuple[Measure, ...]:
    """Estimates of the top label and of all classes; scores are of the whole vector."""
    kept = [m for m in measures(part, made) if m.estimate.name not in ("Brier score", "Log loss", "AUC")]
    more = [
        made.attempt("", make) for make in (lambda: classwise(ece, data), lambda: brier(data), lambda: log_loss(data))
    ]
    return (*kept, *(Measure(estimate) for estimate in more if estimate is not None))
