"""The report on positive and unlabeled rows: what the positives and an assumed share say about the predictions."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.estimators.binned import ece
from calibrant.estimators.cumulative import ks_error
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.ranking import auc
from calibrant.estimators.sweep import sweep_ece
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.intervals import interval
from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.contents import Contents, Number, Omitted, Shares, Value
from calibrant.reporting.evidence import of_error, of_test
from calibrant.reporting.model import Measure, Report
from calibrant.reporting.rounding import score
from calibrant.reporting.sections.shares import shares_section
from calibrant.reporting.shared_sections import in_reading_order, shared_facts
from calibrant.reporting.unlabeled_findings import of_unlabeled
from calibrant.reporting.verdicts.evidence import Unlabeled, Words
from calibrant.reporting.verdicts.unlabeled import verdict
from calibrant.table.binning import Distinct, EqualMass, PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.unlabeled import Gaps, largest_prior


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
    measures = _measures(cells, made, scores=not isinstance(data, BinTable))
    test = made.attempt("Test", lambda: calibration_test(cells))
    words = Words(options.row or "row", options.event or "event", options.source or "")
    error = of_error(measures[0].estimate) if measures else None
    known = _evidence(cells, made, shares, words, error, options)
    known = known if test is None else replace(known, test=of_test(test))
    found = verdict(known)
    contents = Contents(
        kind="unlabeled",
        facts=shared_facts(
            known, options, events=known.positives, base_rate=known.prior, mean_prediction=known.predicted
        ),
        verdict=found,
        numbers=_numbers(known),
        sections=in_reading_order(made),
        omitted=tuple(made.omitted),
        notes=("The share of positives is an assumption; intervals are of sampling only.",),
    )
    tests = () if test is None else (test,)
    return Report(options.title, contents, measures, tests, of_unlabeled(known, found))


def _evidence(
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
    )


def _numbers(known: Unlabeled) -> tuple[Number, ...]:
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


def _measures(cells: BinTable, made: Assembly, *, scores: bool) -> tuple[Measure, ...]:
    """The headline, other estimators and, where the table is exact, mean scores."""
    headline = made.attempt("Calibration error", lambda: interval(partial(ece, bins=PaperBins()), cells))
    wanted = (ece, debiased_ece, sweep_ece, ks_error, *((brier, log_loss, auc) if scores else ()))
    more = [partial(one, cells) for one in wanted]
    others = [estimate for make in more if (estimate := made.attempt("", make)) is not None]
    return tuple(Measure(one, headline=one is headline) for one in (headline, *others) if one is not None)
