"""The report on positive-unlabeled data: what the positives and the prior say about the predicted probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.estimators.binned import ece
from calibrant.estimators.cumulative import ks_error
from calibrant.estimators.debiased import debiased_ece
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.ranking import auc
from calibrant.estimators.sweep import sweep_ece
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.intervals import interval as with_interval
from calibrant.pu.inference import reliability
from calibrant.reporting.model import Finding, Measure, Report
from calibrant.reporting.text import p_in_words, points
from calibrant.results.estimate import Significance
from calibrant.table.binning import Distinct, EqualMass, PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.unlabeled import Gaps, Unlabeled, largest_prior

#: How far the prior is varied in the band.
PRIOR_RANGE = 0.2


def unlabeled_report(data: PositiveUnlabeled | BinTable, *, title: str) -> Report:
    """Measure PU-ECE with its interval, a score test, and how much hangs on the prior."""
    cells = data if isinstance(data, BinTable) else BinTable.of(data, Distinct())
    prior = Gaps.of(cells).prior
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rates above 1 become a finding below
        measures = tuple(_measures(cells, scores=not isinstance(data, BinTable)))
        test = calibration_test(cells)
        curve = reliability(cells, bins=EqualMass(15))
        headline = measures[0].estimate
        band = _over_priors(cells if headline.bins is None else headline.bins, prior)
    most = float(largest_prior(cells.coarsen(EqualMass(15)) if cells.fine else cells))
    interval = headline.interval
    found = "" if interval is None else f" (95 % interval {points(max(interval.low, 0))} to {points(interval.high)})"
    state = "Miscalibrated by" if test.p_value < 0.05 else "No miscalibration can be shown: the estimate is"
    return Report(
        title=title,
        task=f"Positive and unlabeled rows, prior {prior:g}",
        n=data.n if isinstance(data, BinTable) else len(data),
        verdict=(
            f"{state} {points(headline)} points{found} if the share of positives is {prior:g}; "
            f"{points(min(band))} to {points(max(band))} for priors within a fifth of that."
        ),
        measures=measures,
        tests=(test,),
        findings=tuple(_findings(test, curve, prior, most)),
        charts={"kind": "unlabeled", "curves": [_curve(curve)]},
    )


def _over_priors(table: BinTable, prior: float) -> list[float]:
    """The headline for priors around the given one, in the same bins."""
    nested = isinstance(table.task, Unlabeled) and table.task.nested
    priors = np.clip(prior * np.linspace(1 - PRIOR_RANGE, 1 + PRIOR_RANGE, 9), 1e-6, 1 - 1e-6)
    return [ece(replace(table, task=Unlabeled(float(other), nested=nested))).clipped for other in priors]


def _measures(cells: BinTable, *, scores: bool) -> Iterator[Measure]:
    """The headline, other estimators and, where the table is exact, mean scores."""
    yield Measure(with_interval(partial(ece, bins=PaperBins()), cells), headline=True)
    for estimator in (ece, debiased_ece, sweep_ece, ks_error, *((brier, log_loss, auc) if scores else ())):
        yield Measure(estimator(cells))


def _curve(curve: Any) -> dict[str, Any]:
    return {
        "title": "Share of positives implied by the labelled ones, with 95 % intervals; dashed: predicted",
        "across": "predicted probability",
        "up": "share of positives",
        "bars": True,
        "x": curve.predicted,
        "observed": curve.rate,
        "expected": curve.predicted,
        "low": curve.low,
        "high": np.minimum(curve.high, 1.5),
    }


def _findings(test: Significance, curve: Any, prior: float, most: float) -> Iterator[Finding]:
    if test.p_value < 0.05:
        yield Finding(
            "CAL201", "problem", f"The predictions are not calibrated ({test.method}, {p_in_words(test.p_value)})."
        )
    else:
        yield Finding("CAL202", "note", f"No miscalibration can be shown at this size ({p_in_words(test.p_value)}).")
    if np.any(curve.low > 1):
        text = "Some bins imply a share of positives above 1: the prior is too large, or positives are no fair sample."
        yield Finding("CAL701", "problem", text)
    if prior > most:
        yield Finding(
            "CAL702", "caution", f"The largest prior these data allow is about {most:.3f}; {prior:g} was given."
        )
