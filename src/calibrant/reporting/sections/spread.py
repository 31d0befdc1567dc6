"""Forecasts: predicted spread against errors, coverage of central intervals, and where outcomes fall."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.regression_coverage import coverage
from calibrant.estimators.regression_curves import pit_histogram
from calibrant.inference.intervals import interval
from calibrant.inference.reliability import reliability_curve
from calibrant.reporting.contents import Coverage, Spread, SpreadBin, Value
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.table.binning import EqualMass, EqualWidth
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread as SpreadTask

#: Groups of similar spread, and how many forecasts each needs.
BINS, ROWS_PER_BIN = 14, 10
#: Nominal coverages of central intervals.
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
#: Classes of F(y).
PIT_BINS = 20


def spread_section(data: Forecast | BinTable, *, unit: str = "") -> Spread:
    """What the data allow: quantiles have no spread, and tables no distribution; `unit` is that of the outcome.

    Intervals of errors and of coverages are those of `reliability_curve` and `interval`; ranges of a calibrated
    forecaster allow for the kurtosis of the errors.
    """
    if isinstance(data, BinTable) and not isinstance(data.task, SpreadTask):
        message = "Probabilities have no spread."
        raise CannotBuild(message)
    bins, covered = _bins(data), _coverage(data)
    pit, null = _pit(data)
    if not bins and not covered:
        message = "These predictions have neither a spread nor intervals."
        raise CannotBuild(message)
    return Spread(unit, bins, covered, pit, null)


def _bins(data: Any) -> tuple[SpreadBin, ...]:
    n = data.n if isinstance(data, BinTable) else len(data)
    try:
        curve = reliability_curve(data, bins=EqualMass(int(np.clip(n // ROWS_PER_BIN, 1, BINS))))
    except (InvalidPredictions, TypeError, ValueError):  # quantiles, or a spread of 0
        return ()
    columns = (
        curve.predicted, curve.n * curve.share, curve.observed, curve.confidence_low, curve.confidence_high,
        curve.consistency_low, curve.consistency_high,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(SpreadBin(s, n, Value(error, low, high), (a, b)) for s, n, error, low, high, a, b in rows)


def _coverage(data: Any) -> tuple[Coverage, ...]:
    if not isinstance(data, Forecast):
        return ()
    found = []
    for nominal in NOMINAL:
        try:
            estimate = interval(partial(coverage, nominal=nominal), data)
        except (InvalidPredictions, TypeError, ValueError):  # quantiles without this interval
            continue
        if estimate.details["null"]["mean"] < nominal:  # wider than the range of an ensemble
            continue
        limits = estimate.interval
        ends = (None, None) if limits is None else (float(limits.low), float(limits.high))
        found.append(Coverage(nominal, Value(float(estimate), *ends)))
    return tuple(found)


def _pit(data: Any) -> tuple[tuple[float, ...], tuple[float, float]]:
    """Rows per class of F(y), and the range of their number for a calibrated forecaster."""
    if not isinstance(data, Forecast):
        return (), (0.0, 0.0)
    try:
        curve = pit_histogram(data, bins=EqualWidth(PIT_BINS))
    except (InvalidPredictions, TypeError, ValueError):  # quantiles that are too few
        return (), (0.0, 0.0)
    each = curve.n / PIT_BINS
    return tuple((each * curve.observed).tolist()), (each * float(curve.low[0]), each * float(curve.high[0]))
