"""How much the residual sums of a fitted model vary, whether or not the model is right: over rows or over clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.data.predictions import Binary, Predictions
from calibrant.inference.binary_bounds.residual_noise import require_clusters
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.table.bintable import BinTable

Columns = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class ScoreCovariance:
    r"""Covariance of :math:`\sum_i w_i (y_i - m(p_i))\, x(p_i)`, with weights that add up to Kish's number of rows.

    It is the middle of the sandwich: sums of squares of the observed residuals, over rows or over the sums of clusters.

    Attributes
    ----------
    matrix : array
        Columns by columns.
    cluster_sums : array or None
        The sums of each cluster, clusters by columns; None if rows are independent.
    """

    matrix: Floats
    cluster_sums: Floats | None

    @classmethod
    def of(cls, data: Predictions | BinTable, *, fitted: Columns, columns: Columns, needed_by: str) -> ScoreCovariance:
        """`fitted` gives the expected outcome at each score, `columns` the regressors (scores by columns).

        In a table the two outcomes of a cell share its mean weight.
        """
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(Sample.of_rows(data), fitted, columns, needed_by)
        table = Sample.of(data, needed_by=needed_by).table
        p = table.predicted_mean
        mean, squares = fitted(p), table.weight_squares
        unit = table.total / float(squares.sum())
        square = table.observed_mean * (1 - mean) ** 2 + (1 - table.observed_mean) * mean**2
        design = columns(p)
        size = table.total * unit
        return cls((design * (squares * square)[:, None]).T @ design * (unit**2 * size / max(size - 1, 1.0)), None)

    @classmethod
    def _of_clusters(cls, sample: Sample, fitted: Columns, columns: Columns, needed_by: str) -> ScoreCovariance:
        require_clusters(sample.clusters, needed_by=needed_by)
        p = sample.rows.predicted.astype(np.float64)
        size = 1 / float(sample.row_share @ sample.row_share)
        residual = size * sample.row_share * (sample.rows.observed - fitted(p))
        sums = sample.by_cluster(residual[:, None] * columns(p))
        return cls(sums.T @ sums * (sample.clusters / (sample.clusters - 1)), sums)

    def inflation(self, level: float, direction: Floats) -> float:
        r"""Square of Student's quantile over the normal one, for the variance of one combination of the columns.

        Its degrees of freedom are the number of clusters that carry the variance,
        :math:`(\sum_c s_c^2)^2 / \sum_c s_c^4`: with few events these are the clusters that have some, however many
        others there are. 1 without clusters.
        """
        from scipy.special import ndtri, stdtrit

        if self.cluster_sums is None:
            return 1.0
        squares = (self.cluster_sums @ direction) ** 2
        carrying = float(squares.sum()) ** 2 / float(squares @ squares) if squares.any() else 1.0
        probability = (1 + level) / 2
        return float(stdtrit(max(carrying, 1.0), probability) / ndtri(probability)) ** 2
