"""Row-wise sums, maxima and softmaxes of arrays with few columns, for which NumPy's reductions are slow."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats

#: Up to this many columns a maximum is taken column by column.
FEW = 16


def row_sum(values: Floats) -> Floats:
    """Sum of each row, as a column."""
    return values @ np.ones((values.shape[1], 1))


def row_max(values: Floats) -> Floats:
    """Maximum of each row, as a column."""
    if values.shape[1] > FEW:
        return values.max(axis=1, keepdims=True)
    largest = values[:, 0].copy()
    for column in range(1, values.shape[1]):
        np.maximum(largest, values[:, column], out=largest)
    return largest[:, None]


def log_softmax(logits: Floats) -> Floats:
    """Logits less the logarithm of the sum of their exponentials."""
    shifted = logits - row_max(logits)
    shifted -= np.log(row_sum(np.exp(shifted)))
    return shifted


def softmax(logits: Floats) -> Floats:
    """Exponentials of the logits divided by their sum."""
    p = np.exp(logits - row_max(logits))
    p /= row_sum(p)
    return p
