"""The report on predicted distributions: does the predicted spread match the errors?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calibrant.data.forecasts import Forecast
from calibrant.estimators.dispersion import std_dispersion
from calibrant.estimators.regression_coverage import interval_error, pit_error, quantile_error
from calibrant.estimators.regression_scores import crps, nll, pinball, sharpness
from calibrant.estimators.regression_spread import debiased_ence, uce
from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.contents import Contents, Number, Value
from calibrant.reporting.forecast_evidence import ForecastPart, forecast_evidence
from calibrant.reporting.forecast_findings import of_forecasts
from calibrant.reporting.model import Measure, Report
from calibrant.reporting.rounding import percent
from calibrant.reporting.sections.forecast_recalibration import forecast_recalibration
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.spread import spread_section
from calibrant.reporting.shared_sections import (
    group_sections,
    in_reading_order,
    judged,
    method_notes,
    shared_facts,
    time_section,
    with_readers_names,
)
from calibrant.reporting.verdicts.evidence import Forecasts, Words
from calibrant.reporting.verdicts.forecasts import verdict
from calibrant.results.estimate import Estimate, Interval
from calibrant.table.bintable import BinTable


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
                    lambda: with_readers_names(forecast_recalibration(_rows(data), seed=options.seed)),
                ),
                groups=group_sections(made, data, options),
            ),
            made,
        )
    found = verdict(known)
    contents = Contents(
        kind="regression",
        facts=shared_facts(known, options),
        verdict=found,
        numbers=_numbers(known),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=method_notes(
            known,
            "The interval of the error-to-spread ratio allows for heavy tails; ENCE is shown beside the range of a "
            "calibrated forecaster of the same size.",
        ),
    )
    tests = () if known.test is None else (part.test,)
    return Report(options.title, contents, _measures(part, made), tests, of_forecasts(known, found))


def _rows(data: Forecast | BinTable) -> Forecast:
    if isinstance(data, BinTable):
        message = "A table of spreads has no rows to fit and judge maps on."
        raise CannotBuild(message)
    return data


def _numbers(known: Forecasts) -> tuple[Number, ...]:
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


def _measures(part: ForecastPart, made: Assembly) -> tuple[Measure, ...]:
    """Those estimates that this kind of forecast allows; the first is the headline."""
    data = part.spread_data
    wanted: tuple[Callable[[], Estimate], ...] = (
        lambda: part.ratio,
        lambda: _with_reference_range(part.ence),
        lambda: part.coverage,
        *(
            lambda estimator=estimator: _with_reference_range(estimator(part.data))
            for estimator in (interval_error, quantile_error, pit_error)
        ),
        lambda: debiased_ence(part.cells),
        lambda: uce(part.cells),
        *(lambda estimator=estimator: estimator(data) for estimator in (std_dispersion, sharpness)),
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
