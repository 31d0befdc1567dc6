"""Matrices with one column per class: probabilities, logits, and outcomes that come as such."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats

#: Rows of class probabilities may miss a sum of 1 by this much (float32 softmax over a thousand classes does).
SUM_TOLERANCE = 1e-3


def class_probabilities(name: str, values: Any, *, clip: bool, logits: str = "logits=") -> NDArray[Any]:
    """A matrix of at least two columns in [0, 1] whose rows sum to 1; `logits` says how to give those instead."""
    matrix = _one_per_class(name, values)
    if clip:
        matrix = validation.in_unit_interval(name, matrix.ravel(), clip=clip).reshape(matrix.shape)
    instead = f" Pass unnormalised scores with {logits}."
    inside = ((matrix >= 0) & (matrix <= 1)).all(axis=1)
    if not inside.all():
        rounding = bool(((matrix >= -validation.ROUNDING) & (matrix <= 1 + validation.ROUNDING)).all())
        remedy = " All of them are rounding: pass clip=True to repair it." if rounding else instead
        validation.require(name, matrix, inside, "must lie in [0, 1]", remedy=remedy)
    sums = matrix.sum(axis=1, dtype=np.float64)
    fine = np.abs(sums - 1) <= SUM_TOLERANCE
    validation.require(name, matrix, fine, "must have rows that sum to 1", remedy=instead)
    return matrix


def of_logits(name: str, values: Any) -> Floats:
    """The softmax of each row of logits."""
    from calibrant.numerics.special import softmax

    return softmax(_one_per_class(name, values).astype(np.float64))


def label_shares(matrix: NDArray[Any], *, name: str = "y_true") -> Floats:
    """Outcomes with one column per class: a single 1 per row, or probabilities."""
    sums = matrix.sum(axis=1, dtype=np.float64)
    valid = ((matrix >= 0) & (matrix <= 1)).all(axis=1) & (np.abs(sums - 1) <= SUM_TOLERANCE)
    remedy = " Rows of which several classes are true are one Binary task per class."
    rule = "with one column per class must have a single 1 per row, or probabilities that sum to 1"
    validation.require(name, matrix, valid, rule, remedy=remedy)
    return matrix.astype(np.float64)


def _one_per_class(name: str, values: Any) -> NDArray[Any]:
    matrix = validation.matrix(name, values)
    if matrix.shape[1] < 2:
        message = f"{name} needs one column per class, got shape {matrix.shape}. For one column use Binary."
        raise InvalidPredictions(message)
    return matrix
