"""Sections that only one task has: classes, predicted spread, shares of positives."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.data.groups import group_texts
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.estimators.binned import ece
from calibrant.estimators.regression_curves import pit_histogram
from calibrant.inference.calibration_tests import ClusteredRows
from calibrant.inference.intervals import interval
from calibrant.inference.multiclass_tests import VectorTest, by_class
from calibrant.inference.multiplicity import holm
from calibrant.inference.reliability import reliability_curve
from calibrant.numerics.arrays import Codes, Floats
from calibrant.pu.binned_inference import reliability
from calibrant.reporting.contents import Bin, CannotBuild, Classes, Coverage, GroupRow, Shares, Spread, SpreadBin
from calibrant.reporting.evidence import known_coverage
from calibrant.reporting.sections.groups import WITH_INTERVAL, event_row
from calibrant.reporting.verdicts.evidence import ALPHA
from calibrant.results.estimate import Significance, Value
from calibrant.table.binning import Distinct, Edges, EqualMass, EqualWidth, PaperBins
from calibrant.table.bintable import BinTable
from calibrant.table.task import Gaps, Unlabeled, largest_prior
from calibrant.table.task import Spread as SpreadTask

#: Ranges of a class's probability, narrow where most of them are: near 0 and near 1.
#: Test: tests/reporting/sections/test_task_sections.py::test_sizes_of_the_sections.
EDGES = np.array([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0])
#: Simulated samples behind the p-values of classes.
#: Test: tests/reporting/sections/test_task_sections.py::test_the_worst_class_comes_first.
DRAWS = 999
#: Of more classes than the first number, a figure shows the second.
#: Test: tests/reporting/sections/test_task_sections.py::test_many_classes_show_twenty.
MANY, SHOWN = 50, 20


def classes_section(data: Multiclass) -> Classes:
    """Every class against the rest: flagged ones first, the largest error first, then the others by their p-value.

    Whole vectors are tested by `calibration_test` and classes by `by_class`. Where rows are weighted or clustered,
    each class is tested by `each_class`.
    """
    if len(data) < 2:
        fail("One row is not enough to judge multiclass probabilities.", CannotBuild)
    plain = data.group is None and data.weight is None
    if plain:
        found = {row.label: row.adjusted for row in by_class(data, draws=DRAWS)}
        adjusted, test = np.array([found[label] for label in data.classes]), VectorTest().test(data)
    else:
        adjusted, test = each_class(data)
    draws = DRAWS if plain else None
    probability = data.y_prob.astype(np.float64)
    weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
    cells = _cells(probability, data.y_true, weight)
    total, size = cells.sum(axis=1), np.abs(cells[:, :, 1] - cells[:, :, 2]).sum(axis=1)
    tested = np.nan_to_num(adjusted, nan=1.0)
    order = np.lexsort((-size, np.where(tested < ALPHA, 0.0, tested)))  # p-values of flagged classes are often alike
    names = group_texts(data.classes)
    rows = [
        _row(data, int(k), names[k], total[k], float(adjusted[k]), with_interval=place < WITH_INTERVAL)
        for place, k in enumerate(order)
    ]
    ranges = tuple(zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), strict=True))
    sums = tuple(tuple(tuple(cell) for cell in cells[k].tolist()) for k in order)
    return Classes(test, tuple(rows), ranges, sums, len(rows) if len(rows) <= MANY else SHOWN, draws)


def each_class(data: Multiclass) -> tuple[Floats, Significance]:
    """Weighted or dependent rows: the adjusted p-value of each class, and the smallest, also of the confidence.

    Each class against the rest, and the confidence in the predicted class, are tested for intercept and slope with a
    covariance over clusters (rows, where they only have weights), with Holm's adjustment. NaN where there are too few
    clusters.
    """
    group = np.arange(len(data)) if data.group is None else data.group
    pairs = [(data.y_true == k, data.y_prob[:, k]) for k in range(len(data.classes))]
    top = data.top_label()
    tasks = [Binary(y, p, weight=data.weight, group=group) for y, p in (*pairs, (top.y_true, top.y_prob))]
    adjusted = np.array(holm([float(ClusteredRows.of(task).sums().score_tests()[1][0]) for task in tasks]))
    smallest = float("nan") if np.isnan(adjusted).all() else float(np.nanmin(adjusted))
    return adjusted[:-1], Significance(smallest, smallest, method="classes one by one, adjusted (Holm)", n=len(data))


def _cells(probability: Floats, codes: Codes, weight: Floats) -> Floats:
    """Rows, observed, expected and variance of the observed sum, by class and range."""
    classes, ranges = probability.shape[1], len(EDGES) - 1
    found = np.zeros((classes, ranges, 4))
    for k in range(classes):
        p, hit = probability[:, k], (codes == k) * weight
        index = Edges(EDGES).index(p)
        for j, values in enumerate((np.ones(len(p)), hit, weight * p, weight**2 * p * (1 - p))):
            found[k, :, j] = np.bincount(index, values, ranges)
    return found


def _row(data: Multiclass, k: int, name: str, total: Floats, p_value: float, *, with_interval: bool) -> GroupRow:
    n, observed, expected, _ = total.tolist()
    task = Binary(data.y_true == k, data.y_prob[:, k], weight=data.weight, group=data.group)
    part = BinTable.of(task, Distinct()).filled() if task.group is None else task
    row = event_row(name, part, n, p_value, with_interval=with_interval)
    return replace(row, observed=observed, expected=expected)


#: Groups of similar spread, how many forecasts each needs, classes of F(y), and nominal coverages of intervals.
#: Test: tests/reporting/sections/test_task_sections.py::test_sizes_of_the_sections.
SPREAD_BINS, ROWS_PER_BIN, PIT_BINS = 14, 10, 20
NOMINAL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def spread_section(data: Forecast | BinTable, *, unit: str = "") -> Spread:
    """What the data allow: quantiles have no spread, and tables no distribution; `unit` is that of the outcome.

    Intervals of errors and of coverages are those of `reliability_curve` and `interval`; ranges of a calibrated
    forecaster allow for the kurtosis of the errors.
    """
    if isinstance(data, BinTable) and not isinstance(data.task, SpreadTask):
        fail("Probabilities have no spread.", CannotBuild)
    bins, covered = _spread_bins(data), _coverage(data)
    pit, null = _pit(data)
    if not bins and not covered:
        fail("These predictions have neither a spread nor intervals.", CannotBuild)
    return Spread(unit, bins, covered, pit, null)


def _spread_bins(data: Any) -> tuple[SpreadBin, ...]:
    n = data.n if isinstance(data, BinTable) else len(data)
    try:
        curve = reliability_curve(data, bins=EqualMass(int(np.clip(n // ROWS_PER_BIN, 1, SPREAD_BINS))))
    except (InvalidPredictions, TypeError, ValueError):  # quantiles, or a spread of 0
        return ()
    columns = (curve.predicted, curve.n * curve.share, curve.consistency_low, curve.consistency_high)
    errors = Value.rows(curve.observed, curve.confidence_low, curve.confidence_high)
    rows = zip(*(column.tolist() for column in columns), errors, strict=True)
    return tuple(SpreadBin(spread, n, error, (low, high)) for spread, n, low, high, error in rows)


def _coverage(data: Any) -> tuple[Coverage, ...]:
    if not isinstance(data, Forecast):
        return ()
    found = []
    for nominal in NOMINAL:
        try:
            estimate = known_coverage(data, nominal)
        except (CannotBuild, InvalidPredictions, TypeError, ValueError):  # quantiles without this interval
            continue
        reached = float(estimate.details["null"]["mean"])
        if reached >= nominal:  # else wider than the range of an ensemble
            found.append(Coverage(reached, Value.of(estimate)))
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


#: Assumed shares, as multiples of the given one.
#: Test: tests/reporting/sections/test_task_sections_shares.py::test_the_true_share_has_the_smallest_error.
MULTIPLES = np.linspace(0.6, 1.4, 17)
#: Score ranges in which shares are implied.
#: Test: tests/reporting/sections/test_task_sections_shares.py::test_implied_shares.
SHARE_BINS = 12


def shares_section(data: PositiveUnlabeled | BinTable) -> Shares:
    """PU-ECE with its interval for 17 shares around the given one, which is the middle of them.

    The given share decides the level of the implied ones: if it is too large by a tenth, so are they.
    """
    cells = data if isinstance(data, BinTable) else BinTable.of(data, Distinct())
    if not isinstance(cells.task, Unlabeled):
        fail("Shares of positives are assumed only for positive-unlabeled data.", CannotBuild)
    if not cells.observed.sum() > 0 or not cells.total > 0:
        fail("There are no labelled positives, or no unlabeled rows.", CannotBuild)
    prior = Gaps.of(cells).prior
    priors = np.unique(np.minimum(prior * MULTIPLES, 1 - 1e-9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shares above 1 are shown, and a finding
        errors = tuple(_error(cells, float(assumed), own=bool(np.isclose(assumed, prior))) for assumed in priors)
        return Shares(
            prior=float(prior),
            priors=tuple(priors.tolist()),
            errors=errors,
            largest=_largest(cells),
            implied=_implied(cells),
        )


def _error(cells: BinTable, prior: float, *, own: bool) -> Value:
    nested = isinstance(cells.task, Unlabeled) and cells.task.nested
    assumed = cells if own else replace(cells, task=Unlabeled(prior, nested=nested))
    return Value.of(interval(partial(ece, bins=PaperBins()), assumed), 0.0)


def _largest(cells: BinTable) -> float | None:
    """The largest share that these data allow."""
    found = float(largest_prior(cells.coarsen(EqualMass(15)) if cells.fine else cells))
    return found if np.isfinite(found) else None


def _implied(cells: BinTable) -> tuple[Bin, ...]:
    """Score ranges of the unlabeled rows with the share of positives that the labelled ones imply."""
    table = cells.coarsen(EqualMass(SHARE_BINS)) if cells.fine else cells
    found = reliability(table)
    some = table.take((table.weight > 0) | (table.observed > 0))
    some = some if len(some) == len(found.rate) else table.filled()
    columns = (some.low, some.high, found.share * cells.total, some.observed, found.predicted)
    shares = Value.rows(found.rate, found.low, found.high)
    return tuple(Bin(*row) for row in zip(*(column.tolist() for column in columns), shares, strict=True))
