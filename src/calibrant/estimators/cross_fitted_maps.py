"""Out-of-fold maps: the fast defaults, or any classifier of the user, cloned for every fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.estimators.cross_fitting import Held
from calibrant.numerics.arrays import Floats


def mapped(held: Held, recalibrator: Any, *, targets: Sequence[int] | None = None) -> Held:
    """The entries with their recalibrated probabilities, each from a map that never saw its fold.

    Entries of folds that are no target keep the probability they had: they are only trained on.
    """
    wanted = range(held.folds) if targets is None else targets
    if recalibrator is not None:
        return held.with_map(_by_classifier(held, recalibrator, wanted))
    if held.stated.shape[1] <= 2:
        from calibrant.numerics.smoothers import cross_fitted

        positive = held.information * held.outcome[:, -1]
        g = cross_fitted(held.stated[:, -1], held.fold, positive, held.information - positive, targets=wanted)
        return held.with_map(g if held.stated.shape[1] == 1 else np.stack([1 - g, g], axis=1))
    from calibrant.numerics.conditional_logit import cross_fitted as cross_fitted_vectors

    labels = held.outcome.argmax(axis=1)
    return held.with_map(cross_fitted_vectors(held.stated, held.fold, labels, held.information, targets=wanted))


def name_of(recalibrator: Any, columns: int) -> str:
    """The map in words."""
    if recalibrator is not None:
        return repr(recalibrator).split("\n")[0]
    return "averaged smoothers" if columns <= 2 else "conditional logit"


def _by_classifier(held: Held, recalibrator: Any, targets: Sequence[int]) -> Floats:
    """Fit a clone on the other folds, with weights only where rows differ in weight."""
    result = held.stated.copy()
    labels = held.outcome[:, 0].astype(np.intp) if held.stated.shape[1] == 1 else held.outcome.argmax(axis=1)
    weighted = not np.all(held.weight == held.weight[0])
    for k in targets:
        own = held.fold == k
        options = {"sample_weight": held.weight[~own]} if weighted else {}
        model = _fresh(recalibrator).fit(held.stated[~own], labels[~own], **options)
        result[own] = _columns(model, held.stated[own])
    return result


def _fresh(recalibrator: Any) -> Any:
    """An unfitted copy of a classifier; a deep copy of what scikit-learn cannot clone."""
    if hasattr(recalibrator, "get_params"):
        from sklearn.base import clone

        return clone(recalibrator)
    if not (hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")):
        message = f"recalibrator must have fit and predict_proba, got {type(recalibrator).__name__}."
        raise TypeError(message)
    from copy import deepcopy

    return deepcopy(recalibrator)


def _columns(model: Any, scores: Floats) -> Floats:
    """Predicted probabilities with one column per class of the task; a class the map never saw gets zero."""
    predicted = np.asarray(model.predict_proba(scores), dtype=np.float64)
    wide = max(scores.shape[1], 2)
    full = np.zeros((len(scores), wide))
    if predicted.ndim == 1:
        predicted = np.stack([1 - predicted, predicted], axis=1)
    classes = getattr(model, "classes_", None)
    known = np.arange(wide) if classes is None else np.asarray(classes).astype(np.intp)
    full[:, known] = predicted
    return full[:, 1:] if scores.shape[1] == 1 else full
