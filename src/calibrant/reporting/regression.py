"""The report on predicted distributions: does the predicted spread match the errors?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.forecasts import Forecast, Gaussian
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.dispersion import mean_squared_z, std_dispersion
from calibrant.estimators.regression_coverage import coverage, interval_error, pit_error, quantile_error
from calibrant.estimators.regression_curves import (
    ForecastCurve,
    ence_curve,
    interval_curve,
    pit_histogram,
    spread_curve,
)
from calibrant.estimators.regression_scores import crps, nll, sharpness
from calibrant.estimators.regression_spread import debiased_ence, ence, uce
from calibrant.inference.regression_tests import MeanSquaredZ
from calibrant.numerics.folds import fold_of_rows
from calibrant.reporting.groups import group_tables, number_of_rows
from calibrant.reporting.model import Finding, Group, Measure, Repair, Report
from calibrant.reporting.text import number, p_in_words
from calibrant.results.estimate import Estimate, Interval, Significance
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable

FOLDS = 5
_TITLES = {
    "spread": (
        "Spread against error: root mean squared error per bin of the predicted spread",
        "predicted spread",
        "error",
    ),
    "pit": ("Where outcomes fall in the predicted distribution: flat if calibrated", "F(y)", "density"),
    "interval": ("Central intervals: observed against nominal coverage", "nominal coverage", "observed coverage"),
    "ence": ("ENCE against the number of bins, and what a perfect forecaster would show", "number of bins", "ENCE"),
}


def forecast_report(
    data: Forecast | BinTable,
    *,
    by: ArrayLike | Mapping[Any, BinTable | ArrayLike] | None,
    title: str,
    seed: int,
) -> Report:
    """Measure spread, intervals and scores, each with the range of a perfect forecaster at this size."""
    cells = _cells(data)
    measures = tuple(_measures(data, cells))
    test = _test(data, measures)
    tried = _repairs(data, _named(measures, "CRPS"), seed)
    groups = _groups(data, by)
    headline = next(m.estimate for m in measures if m.headline)
    names = {"Gaussian": "Predicted means and standard deviations", "Quantiles": "Predicted quantiles"}
    kind = type(data).__name__
    return Report(
        title=title,
        task=names.get(kind, "Predicted distributions"),
        n=number_of_rows(data),
        verdict=_verdict(measures, test, tried),
        measures=measures,
        tests=(test,),
        repairs=tried,
        groups=groups,
        findings=tuple(_findings(headline, measures, test, groups)),
        charts={"kind": "forecasts", "curves": list(_curves(data, cells))},
        interval_label="if perfect",
    )


def _cells(data: Forecast | BinTable) -> Forecast | BinTable:
    """The fine table that the estimators over bins share; the rows where these measure more than the pooled sums."""
    if isinstance(data, Gaussian) and data.y_true.ndim == 1:
        return BinTable.of(data, Distinct())
    return data


def _measures(data: Forecast | BinTable, cells: Forecast | BinTable) -> Iterator[Measure]:
    """Those measures that this kind of forecast allows; the first is the headline."""
    first = True
    wanted: tuple[Callable[..., Estimate], ...]
    wanted = (ence, debiased_ence, mean_squared_z, interval_error, quantile_error, coverage, pit_error, uce)
    for estimator in (*wanted, std_dispersion, sharpness, crps, nll):
        try:
            estimate = estimator(cells if estimator in (ence, debiased_ence, uce) else data)
        except (ValueError, TypeError):  # this kind of forecast lacks what the estimator needs
            continue
        yield Measure(_with_reference_range(estimate), headline=first)
        first = False


def _with_reference_range(estimate: Estimate) -> Estimate:
    """The range of a perfect forecaster in place of a confidence interval; its method says so."""
    null = estimate.details.get("null", {})
    if not null or null["low"] == null["high"]:
        return estimate
    how = f"range of a perfect forecaster ({null['law']})"
    return estimate.with_interval(Interval(float(null["low"]), float(null["high"]), 0.95, how))


def _named(measures: tuple[Measure, ...], name: str) -> Estimate | None:
    return next((m.estimate for m in measures if m.estimate.name == name), None)


def _test(data: Forecast | BinTable, measures: tuple[Measure, ...]) -> Significance:
    """Mean z^2 against 1 where there are standard deviations, else the uniformity of F(y)."""
    z = _named(measures, "Mean z^2")
    if z is not None and z.details["null"]["sd"] > 0:
        return replace(MeanSquaredZ().test(data), method="mean z^2 against 1")
    pit = _named(measures, "PIT KS distance")
    if pit is None:
        message = "These predictions allow neither mean z^2 nor PIT values, so nothing can be reported."
        raise ValueError(message)
    return Significance(float(pit), float(pit.details["p_value"]), "uniformity of F(y), Kolmogorov-Smirnov", pit.n)


def _verdict(measures: tuple[Measure, ...], test: Significance, tried: tuple[Repair, ...]) -> str:
    z, error = _named(measures, "Mean z^2"), next(m.estimate for m in measures if m.headline)
    low, high = _range(error)
    if z is None:
        state = "Not calibrated" if error > high else "No miscalibration can be shown"
        perfect = f"{number(low)} to {number(high)}"
        return f"{state}: {error.name} {number(error)}, where a perfect forecaster would show {perfect}."
    factor = float(np.sqrt(z))
    reference = f"ENCE {100 * error:.1f} % where a perfect forecaster would show {100 * low:.1f} to {100 * high:.1f} %"
    if test.p_value >= 0.05 and error <= high:
        return f"No miscalibration can be shown: errors are {factor:.2f} times the stated spread; {reference}."
    side = "Over-confident" if factor > 1 else "Under-confident"
    if test.p_value >= 0.05:
        return f"Right on average but not at every spread: {reference}."
    sentence = f"{side}: errors are {factor:.2f} times the stated spread ({reference})"
    best = tried[0] if tried else None
    return f"{sentence}; {best.name} would bring ENCE to {100 * best.error:.1f} %." if best else f"{sentence}."


def _range(estimate: Estimate) -> tuple[float, float]:
    null = estimate.details["null"]
    return float(null["low"]), float(null["high"])


def _repairs(data: Forecast | BinTable, before: Estimate | None, seed: int) -> tuple[Repair, ...]:
    """STD scaling and its relatives, cross-fitted, by CRPS; only for means with standard deviations."""
    from calibrant.recalibrate.regression_spread import SpreadSpline, StdScaling, VarianceIsotonic

    if before is None or not isinstance(data, Gaussian) or data.y_true.ndim > 1 or len(data) < 10 * FOLDS:
        return ()
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    if fold.max() == 0:  # a single group
        return ()
    found = []
    for recalibrator in (StdScaling(), VarianceIsotonic(), SpreadSpline()):
        std = np.empty(len(data))
        for k in range(int(fold.max()) + 1):
            fixed = recalibrator.fit(data.take(fold != k)).transform(data.take(fold == k))
            std[fold == k] = fixed.std
        after = Gaussian(data.y_true, data.mean, std, weight=data.weight)
        found.append(Repair(type(recalibrator).__name__, float(ence(after)), float(crps(after)), float(before)))
    return tuple(sorted(found, key=lambda repair: repair.loss))


def _groups(data: Forecast | BinTable, by: ArrayLike | Mapping[Any, BinTable | ArrayLike] | None) -> tuple[Group, ...]:
    if by is not None and not isinstance(data, Gaussian | BinTable):
        message = f"by= needs means with standard deviations (Gaussian), got {type(data).__name__}."
        raise InvalidPredictions(message)
    found = []
    for name, some in group_tables(data, by).items():
        part = tuple(_measures(some, _cells(some)))
        headline = next(m.estimate for m in part if m.headline)
        found.append(Group(name, number_of_rows(some), headline, _test(some, part).p_value))
    return tuple(sorted(found, key=lambda group: -group.estimate))


def _findings(
    headline: Estimate, measures: tuple[Measure, ...], test: Significance, groups: tuple[Group, ...]
) -> Iterator[Finding]:
    if test.p_value < 0.05:
        yield Finding(
            "CAL601",
            "problem",
            f"The predicted spread does not match the size of the errors ({p_in_words(test.p_value)}).",
        )
    bad = [group for group in groups if group.p_value * len(groups) < 0.05]
    if bad:
        yield Finding(
            "CAL301", "problem", f"{len(bad)} of {len(groups)} groups are off after correction, e.g. {bad[0].name!r}."
        )
    dispersion = _named(measures, "C_v")
    if dispersion is not None and dispersion < 0.05:
        yield Finding(
            "CAL602", "caution", "The predicted spread is nearly constant: it cannot tell easy rows from hard ones."
        )
    z = _named(measures, "Mean z^2")
    if z is not None and z.details.get("largest_share", 0) > 0.2:
        text = "One row makes up more than a fifth of mean z^2: a tiny predicted spread dominates; use robust scaling."
        yield Finding("CAL603", "caution", text)
    share = _named(measures, "Interval error")
    if share is not None and share <= _range(share)[1] and headline.name == "ENCE" and headline > _range(headline)[1]:
        text = "Intervals cover on average although the spread of single rows is wrong: coverage alone would hide it."
        yield Finding("CAL604", "caution", text)


def _curves(data: Forecast | BinTable, cells: Forecast | BinTable) -> Iterator[dict[str, Any]]:
    for make in (spread_curve, pit_histogram, interval_curve, ence_curve):
        try:
            curve: ForecastCurve = make(cells if make in (spread_curve, ence_curve) else data)
        except (ValueError, TypeError):  # this kind of forecast has no such diagram
            continue
        title, across, up = _TITLES[curve.diagram]
        columns = {name: getattr(curve, name) for name in ("x", "observed", "expected", "low", "high")}
        yield {"title": title, "across": across, "up": up, "bars": curve.diagram == "pit", **columns}
