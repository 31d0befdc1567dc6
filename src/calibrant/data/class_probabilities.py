"""Matrices with one column per class: probabilities, logits, and outcomes that come as such."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Codes, Floats, row_blocks
from calibrant.numerics.top_class import checked_top_class

#: The most probable class of each row, and its probability.
Top = tuple[Codes, NDArray[Any]]

#: Rows of class probabilities may miss a sum of 1 by this much (float32 softmax over a thousand classes does).
SUM_TOLERANCE = 1e-3


def class_probabilities(name: str, values: Any, *, clip: bool, logits: str = "logits=") -> NDArray[Any]:
    """A matrix of at least two columns in [0, 1] whose rows sum to 1; `logits` says how to give those instead."""
    return checked_class_probabilities(name, values, clip=clip, logits=logits)[0]


def checked_class_probabilities(
    name: str, values: Any, *, clip: bool = False, logits: str = "logits="
) -> tuple[NDArray[Any], Top | None]:
    """`class_probabilities`, with the top class of each row and its probability if the check came by them."""
    if type(values) is np.ndarray and values.ndim == 2 and values.shape[0] and values.shape[1] > 1:
        top = checked_top_class(values, SUM_TOLERANCE)
        if top is not None:
            return values, top
    matrix = _one_per_class(name, values)
    if clip:
        matrix = validation.in_unit_interval(name, matrix.ravel(), clip=clip).reshape(matrix.shape)
    instead = f" Pass unnormalised scores with {logits}."
    inside = _within(matrix, 0.0)
    if not inside.all():
        rounding = bool(_within(matrix, validation.ROUNDING).all())
        remedy = " All of them are rounding: pass clip=True to repair it." if rounding else instead
        validation.require(name, matrix, inside, "must lie in [0, 1]", remedy=remedy)
    sums = matrix.sum(axis=1, dtype=np.float64)
    fine = np.abs(sums - 1) <= SUM_TOLERANCE
    validation.require(name, matrix, fine, "must have rows that sum to 1", remedy=instead)
    return matrix, None


def of_logits(name: str, values: Any) -> NDArray[Any]:
    """The softmax of each row of logits, in the precision of the logits but computed in double precision."""
    from calibrant.numerics.special import softmax

    logits = _one_per_class(name, values)
    result = np.empty_like(logits)
    for rows in row_blocks(*logits.shape):
        result[rows] = softmax(logits[rows].astype(np.float64))
    return result


def label_shares(matrix: NDArray[Any], *, name: str = "y_true") -> Floats:
    """Outcomes with one column per class: a single 1 per row, or probabilities."""
    sums = matrix.sum(axis=1, dtype=np.float64)
    valid = _within(matrix, 0.0) & (np.abs(sums - 1) <= SUM_TOLERANCE)
    remedy = " Rows of which several classes are true are one Binary task per class."
    rule = "with one column per class must have a single 1 per row, or probabilities that sum to 1"
    validation.require(name, matrix, valid, rule, remedy=remedy)
    return matrix.astype(np.float64)


def _within(matrix: NDArray[Any], margin: float) -> NDArray[np.bool_]:
    """Which rows lie in [0, 1], but for a margin."""

    def rule(part: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(((part >= -margin) & (part <= 1 + margin)).all(axis=1))

    return validation.rows_where(matrix, rule)


def _one_per_class(name: str, values: Any) -> NDArray[Any]:
    matrix = validation.matrix(name, values)
    if matrix.shape[1] < 2:
        message = f"{name} needs one column per class, got shape {matrix.shape}. For one column use Binary."
        raise InvalidPredictions(message)
    return matrix
