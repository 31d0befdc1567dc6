"""How much less clustered rows say than independent ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Predictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import effective_n


def row_clusters(data: Predictions, rows: int) -> NDArray[np.intp] | None:
    """Cluster numbers of `rows` values; None if they are independent. The outputs of one row are a cluster."""
    if data.group is None and rows == len(data):
        return None
    labels = np.arange(len(data)) if data.group is None else np.unique(data.group, return_inverse=True)[1].reshape(-1)
    return np.repeat(labels, rows // len(data))


def design_effect(residuals: Floats, clusters: NDArray[np.intp] | None) -> float:
    """Variance of the sum of weighted residuals (summed over columns) relative to that of independent rows; at least 1.

    >>> design_effect(np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([0, 0, 1, 1]))
    2.0
    """
    if clusters is None:
        return 1.0
    alone = float((residuals**2).sum())
    sums = np.stack([np.bincount(clusters, column) for column in residuals.T], axis=1)
    return max(float((sums**2).sum()) / alone, 1.0) if alone > 0 else 1.0


def rows_that_count(weight: Floats | None, residuals: Floats, clusters: NDArray[np.intp] | None) -> float:
    """Kish's number of rows, divided by the design effect of clusters."""
    share = np.full(len(residuals), 1 / len(residuals)) if weight is None else weight / weight.sum()
    return effective_n(weight, len(residuals)) / design_effect(share[:, None] * residuals, clusters)
