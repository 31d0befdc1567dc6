"""Columns of numbers become the predictions of a task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.columns import Columns
from calibrant.data.forecasts import Gaussian, Quantiles, Samples
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.scale.class_labels import labels_of_columns

#: The outcomes among the columns of a file; no column has an empty name.
TRUTH = ""

Arrays = dict[str, NDArray[Any]]


def task_from(found: Arrays, columns: Columns) -> Predictions:
    """The predictions that the columns are, one array per name; the outcomes are under `TRUTH`.

    >>> task_from({TRUTH: np.array([0, 1]), "p": np.array([0.2, 0.7])}, Columns("y", ("p",)))
    <Binary, n=2>
    """
    y, weight = found[TRUTH], None if columns.weight is None else found[columns.weight]
    if columns.task == "spread":
        return Gaussian(y, found[columns.mean or ""], found[columns.std or ""], weight=weight)
    if columns.task == "quantiles":
        values = _matrix(found, [name for _, name in columns.levels])
        return Quantiles(y, [level for level, _ in columns.levels], values, weight=weight)
    if columns.task == "members":
        return Samples(y, _matrix(found, columns.members), weight=weight)
    if columns.task == "unlabeled":
        return _unlabeled(y, found[columns.prob[0]], weight, columns)
    if columns.task == "classes":
        words = columns.classes or columns.prob
        labels = words if y.dtype.kind in "OUS" else labels_of_columns(None, columns.prob)
        return Multiclass(y, _matrix(found, columns.prob), classes=list(labels), weight=weight)
    return Binary(y, found[columns.prob[0]], weight=weight)


def _matrix(found: Arrays, names: Any) -> NDArray[Any]:
    return np.stack([found[name] for name in names], axis=1)


def _unlabeled(y: NDArray[Any], p: NDArray[Any], weight: NDArray[Any] | None, columns: Columns) -> PositiveUnlabeled:
    known = y == columns.labelled
    if not known.any():
        message = f"No row of column {columns.truth!r} is {columns.labelled!r}, the value of --labelled."
        raise InvalidPredictions(message)
    if known.all():
        message = f"Every row of column {columns.truth!r} is {columns.labelled!r}: there are no unlabeled rows."
        raise InvalidPredictions(message)
    scenario: Any = "single-sample" if columns.single_sample else "case-control"
    stacked = None if weight is None else np.concatenate([weight[known], weight[~known]])
    return PositiveUnlabeled(p[known], p[~known], prior=columns.prior, scenario=scenario, weight=stacked)
