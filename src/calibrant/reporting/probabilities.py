"""The report on predicted probabilities of an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from calibrant.data.predictions import Binary
from calibrant.estimators.binned import ece
from calibrant.estimators.cumulative import ks_error
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.ranking import auc
from calibrant.estimators.smooth import smooth_ece
from calibrant.estimators.sweep import sweep_ece
from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.contents import Contents, Facts, Number, Value
from calibrant.reporting.evidence import collected, with_diagram
from calibrant.reporting.findings import of_probabilities
from calibrant.reporting.model import Measure, Report
from calibrant.reporting.part import Part
from calibrant.reporting.rounding import count, percent, rate, rounded
from calibrant.reporting.sections.bin_counts import bin_counts
from calibrant.reporting.sections.recalibration import recalibrated
from calibrant.reporting.sections.reliability import reliability_section
from calibrant.reporting.shared_sections import (
    group_sections,
    in_reading_order,
    judged,
    method_notes,
    shared_facts,
    time_section,
    with_readers_names,
    with_recent_map,
)
from calibrant.reporting.verdicts.evidence import Probabilities, Words
from calibrant.reporting.verdicts.probabilities import verdict
from calibrant.results.estimate import Estimate
from calibrant.table.binning import EqualWidth
from calibrant.table.bintable import BinTable

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
        known = _with_sections(known, part, made, options)
    found = verdict(known)
    contents = Contents(
        kind="binary",
        facts=facts(known, options),
        verdict=found,
        numbers=numbers(known),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=method_notes(known, *NOTES),
    )
    tests = () if known.test is None else (part.test,)
    measured = measures(part, made) if known.n > 0 else ()
    return Report(options.title, contents, measured, tests, of_probabilities(known, found))


def _with_sections(known: Probabilities, part: Part, made: Assembly, options: Options) -> Probabilities:
    """Every section, and what the verdict learns from it."""
    diagram = made.add("Reliability", lambda: reliability_section(part, threshold=options.threshold))
    time = time_section(made, part.data, options)
    remade = made.attempt("Recalibration", lambda: recalibrated(part))
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


def facts(known: Probabilities, options: Options) -> Facts:
    """The line of facts; what is not known is left out."""
    return shared_facts(
        known,
        options,
        events=known.events if known.n else None,
        base_rate=known.base_rate if known.n else None,
        mean_prediction=known.predicted if known.n else None,
    )


def numbers(known: Probabilities) -> tuple[Number, ...]:
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
    if known.intercept is None:
        return what
    shift = rounded(known.intercept, least=2, apart=0.0)
    ends = f" ({shift.ends})" if shift.ends else ""
    return f"{what} Calibration in the large {shift.value}{ends} on the log-odds scale."


def measures(part: Part, made: Assembly) -> tuple[Measure, ...]:
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
