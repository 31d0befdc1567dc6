"""How much less clustered rows say than independent ones."""

from __future__ import annotations

from collections.abc import Iterable

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


def design_effect(residuals: Iterable[Floats], clusters: NDArray[np.intp] | None) -> float:
    """Variance of the sum of weighted residuals relative to that of independent rows; at least 1.

    There may be several columns of residuals, whose variances are added.

    >>> design_effect([np.array([1.0, 1.0, -1.0, -1.0])], np.array([0, 0, 1, 1]))
    2.0
    """
    if clusters is None:
        return 1.0
    alone = together = 0.0
    for column in residuals:
        alone += float(column @ column)
        together += float((np.bincount(clusters, column) ** 2).sum())
    return max(together / alone, 1.0) if alone > 0 else 1.0


def rows_that_count(
    weight: Floats | None, residuals: Iterable[Floats], clusters: NDArray[np.intp] | None, rows: int
) -> float:
    """Kish's number of rows, divided by the design effect of clusters."""
    weighted = (column if weight is None else weight * column for column in residuals)
    return effective_n(weight, rows) / design_effect(weighted, clusters)
