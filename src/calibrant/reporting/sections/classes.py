"""Several classes: the test of whole vectors, every class against the rest, and sums by class and score range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.data.groups import group_texts
from calibrant.data.predictions import Binary, Multiclass
from calibrant.inference.cluster_sums import ClusteredRows
from calibrant.inference.multiplicity import holm
from calibrant.inference.several_classes.class_tests import by_class
from calibrant.inference.several_classes.vector_test import VectorTest
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.reporting.contents import Classes, GroupRow, Value
from calibrant.reporting.sections.groups import WITH_INTERVAL, event_row
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.results.estimate import Significance
from calibrant.table.binning import Distinct, Edges
from calibrant.table.bintable import BinTable

#: Ranges of a class's probability, narrow where most of them are: near 0 and near 1.
EDGES = np.array([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0])
#: Of more classes than the first number, a figure shows the second.
MANY, SHOWN = 50, 20


def classes_section(data: Multiclass) -> Classes:
    """Every class against the rest, strongest evidence first.

    Whole vectors are tested by `calibration_test` and classes by `by_class`. Where rows are weighted or clustered,
    each class is tested for intercept and slope with a covariance over clusters (rows, where they only have weights),
    with Holm's adjustment, and the test is the smallest of the adjusted p-values.
    """
    if len(data) < 2:
        message = "One row says nothing about the probabilities of several classes."
        raise CannotBuild(message)
    plain = data.group is None and data.weight is None
    adjusted = _by_class(data) if plain else _by_class_of_clusters(data)
    test = VectorTest().test(data) if plain else _smallest(adjusted, len(data))
    probability = data.y_prob.astype(np.float64)
    weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
    cells = _cells(probability, data.y_true, weight)
    total = cells.sum(axis=1)
    z = np.abs(total[:, 1] - total[:, 2]) / np.sqrt(np.maximum(total[:, 3], 1e-300))
    order = np.lexsort((-z, np.nan_to_num(adjusted, nan=1.0)))
    names = group_texts(data.classes)
    ratios = _ratios(probability, data.y_true) if plain else None
    rows = [
        _row(
            data, int(k), names[k], total[k], float(adjusted[k]), None if ratios is None else ratios[k],
            with_interval=place < WITH_INTERVAL,
        )
        for place, k in enumerate(order)
    ]  # fmt: skip
    ranges = tuple(zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), strict=True))
    sums = tuple(tuple(tuple(cell) for cell in cells[k].tolist()) for k in order)
    return Classes(test, tuple(rows), ranges, sums, len(rows) if len(rows) <= MANY else SHOWN)


def _by_class(data: Multiclass) -> Floats:
    found = {row.label: row.adjusted for row in by_class(data)}
    return np.array([found[label] for label in data.classes])


def _by_class_of_clusters(data: Multiclass) -> Floats:
    group = np.arange(len(data)) if data.group is None else data.group
    tasks = (Binary(data.y_true == k, data.y_prob[:, k], weight=data.weight, group=group) for k in _numbers(data))
    return np.array(holm([float(ClusteredRows.of(task).sums().score_tests()[1][0]) for task in tasks]))


def _smallest(adjusted: Floats, n: int) -> Significance:
    smallest = float(np.nanmin(adjusted)) if not np.isnan(adjusted).all() else 1.0
    return Significance(smallest, smallest, method="classes one by one, adjusted (Holm)", n=n)


def _numbers(data: Multiclass) -> range:
    return range(len(data.classes))


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


def _ratios(probability: Floats, codes: Codes) -> list[Value]:
    """Observed over expected rows of each class with the interval of `calibrant.inference.MidP`, column by column."""
    n = len(codes)
    rate = np.bincount(codes, minlength=probability.shape[1]) / n
    mean = probability.mean(axis=0)
    factor = np.divide(rate, mean, out=np.zeros_like(rate), where=mean > 0)
    fitted = probability * factor
    squares = (fitted**2).sum(axis=0)
    own = fitted[np.arange(n), codes]
    squares += np.bincount(codes, (1 - own) ** 2 - own**2, probability.shape[1])
    clipped = np.clip(fitted, 0.0, 1.0)
    by_model = (clipped * (1 - clipped)).sum(axis=0)
    variance = np.maximum(squares * n / max(n - 1, 1), by_model) / n**2
    inside = (rate > 0) & (rate < 1)
    size = np.where(inside, rate * (1 - rate) / np.where(variance > 0, variance, 1.0), float(n))
    low, high = mid_p_interval(rate * size, size, 0.95)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = [(column / mean).tolist() for column in (rate, low, high)]
    return [Value(*row) if np.isfinite(row[0]) else Value(row[0]) for row in zip(*columns, strict=True)]


def _row(
    data: Multiclass, k: int, name: str, total: Floats, p_value: float, ratio: Value | None, *, with_interval: bool
) -> GroupRow:
    n, observed, expected, _ = total.tolist()
    task = Binary(data.y_true == k, data.y_prob[:, k], weight=data.weight, group=data.group)
    part = BinTable.of(task, Distinct()).filled() if task.group is None else task
    row = event_row(name, part, n, p_value, with_interval=with_interval, ratio=ratio)
    return replace(row, observed=observed, expected=expected)
