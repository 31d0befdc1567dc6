"""What classifiers of scikit-learn say about rows, as predictions of calibrant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Multiclass
from calibrant.numerics.arrays import Floats


def scores_of(classifier: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Probabilities, else decision values, with a column for each of `classes`, also for those a split did not hold."""
    if not hasattr(classifier, "predict_proba"):
        values = np.asarray(classifier.decision_function(X), dtype=np.float64)
        absent = float(np.min(values, initial=0.0)) - 50.0
    else:
        values, absent = np.asarray(classifier.predict_proba(X), dtype=np.float64), 0.0
        values = np.clip(values, 0.0, 1.0)  # forests and boosters overshoot by rounding
    if len(classifier.classes_) == len(classes):
        return values
    if values.ndim == 1:
        values = np.stack([np.zeros(len(values)), values], axis=1)
    wide = np.full((len(values), len(classes)), absent)
    wide[:, np.searchsorted(classes, classifier.classes_)] = values
    return wide


def task_of(labels: NDArray[Any], p: Floats, classes: NDArray[Any], weight: Any) -> Binary | Multiclass:
    """The event of the second of two classes, or all of more."""
    if len(classes) == 2:
        return Binary(labels == classes[1], p[:, 1], weight=weight)
    return Multiclass(labels, p, classes=classes.tolist(), weight=weight)
