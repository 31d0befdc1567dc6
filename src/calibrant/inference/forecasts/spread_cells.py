"""Predicted spreads and squared errors in the form that intervals and tests of regression need: one cell per spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast
from calibrant.estimators.regression_common import spread_rows
from calibrant.inference.design_effect import row_clusters
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import all_alike
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import fine

#: Below this many rows per unit of excess kurtosis, or with this share of the fourth moment in one row and a power law
#: of index below 4, errors that are not in the sample decide. That share falls with the number of rows beyond these as
#: a power of it: so it does if the fourth moment is finite, and hardly otherwise.
ENOUGH, DOMINATED, DOMINATED_ROWS, FALLING = 20.0, 0.2, 1000, 0.3


@dataclass(frozen=True, eq=False)
class SpreadCells:
    r"""Sums of :math:`z^2 = (y-\mu)^2/\sigma^2` over the rows of each distinct spread, in ascending order.

    Attributes
    ----------
    n : int
        Number of rows.
    sigma : array
    share, share_squares : array
        Sums of the rows' shares of the total weight, and of their squares.
    second, fourth : array
        Sums of share times z² and z⁴.
    largest, largest_fourth : array
        The largest single term of each of these sums; a bound on it where the rows are not known.
    tail_index : float
        An upper confidence bound (one-sided, 90 %) on the index of the power law of the largest errors, by Hill;
        infinite where there are too few rows, or only a table.
    cell, row_share, row_second, cluster : arrays or None
        Of each row: its cell, share, z² and cluster number. Only of clustered or weighted rows, or if asked for.
    """

    n: int
    sigma: Floats
    share: Floats
    share_squares: Floats
    second: Floats
    fourth: Floats
    largest: Floats
    largest_fourth: Floats
    tail_index: float = np.inf
    cell: NDArray[np.intp] | None = None
    row_share: Floats | None = None
    row_second: Floats | None = None
    cluster: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, data: Forecast | BinTable, *, needed_by: str, keep_rows: bool = False) -> SpreadCells:
        """From forecasts that have a standard deviation, or a fine table of them."""
        if isinstance(data, BinTable):
            return cls._of_table(fine(data, None, needed_by=needed_by, spread=True))
        rows = spread_rows(data, needed_by=needed_by)
        weight = np.ones(len(rows.key)) if rows.weight is None else rows.weight
        some = np.flatnonzero(weight > 0)
        some = some[np.argsort(rows.key[some], kind="stable")]
        sigma, share = rows.key[some].astype(np.float64), weight[some] / weight[some].sum()
        second = rows.observed[some] / rows.predicted[some]
        starts = np.flatnonzero(np.diff(sigma, prepend=-1.0))
        first, fourth = share * second, share * second**2
        cluster = row_clusters(data, len(weight))
        if cluster is None and (keep_rows or not all_alike(rows.weight)):
            cluster = np.arange(len(weight))
        clustered = cluster is not None
        cell = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(some)))) if clustered else None
        return cls(
            n=len(weight),
            sigma=sigma[starts],
            share=np.add.reduceat(share, starts),
            share_squares=np.add.reduceat(share**2, starts),
            second=np.add.reduceat(first, starts),
            fourth=np.add.reduceat(fourth, starts),
            largest=np.maximum.reduceat(first, starts),
            largest_fourth=np.maximum.reduceat(fourth, starts),
            tail_index=_tail_index(second),
            cell=cell,
            row_share=share if clustered else None,
            row_second=second if clustered else None,
            cluster=None if cluster is None else np.unique(cluster[some], return_inverse=True)[1].reshape(-1),
        )

    @classmethod
    def _of_table(cls, table: BinTable) -> SpreadCells:
        table, total = table.filled(), table.total
        variance = table.predicted_mean
        share, second = table.weight / total, table.observed / variance / total
        fourth = table.observed_squares / variance**2 / total
        # One term is at most the whole sum, and at most the root of the heaviest row's share times the sum of squares.
        alike = np.isclose(table.weight**2, table.count * table.weight_squares, rtol=1e-9, atol=0)
        heaviest = np.where(alike, table.weight / table.count, np.sqrt(table.weight_squares)) / total
        return cls(
            n=table.n,
            sigma=np.sqrt(variance),
            share=share,
            share_squares=table.weight_squares / total**2,
            second=second,
            fourth=fourth,
            largest=np.minimum(second, np.sqrt(fourth * heaviest)),
            largest_fourth=fourth,
        )

    @property
    def effective_n(self) -> float:
        """Kish's effective number of rows."""
        return 1 / float(self.share_squares.sum())

    @property
    def mean_square(self) -> float:
        """The mean of z²."""
        return float(self.second.sum())

    @property
    def largest_share(self) -> float:
        """The share of the largest term (of a row, or of a cluster) in the sum of z²."""
        if self.cluster is None or self.row_share is None or self.row_second is None:
            return float(self.largest.max()) / self.mean_square
        return float(np.bincount(self.cluster, self.row_share * self.row_second).max()) / self.mean_square

    def heavy_tails(self, size: float, kurtosis: float) -> bool:
        """Whether errors that are not in the sample may decide.

        So it is if there are too few rows for this kurtosis, or if the kurtosis itself seems to be infinite.
        """
        share = DOMINATED * min(1.0, (DOMINATED_ROWS / size) ** FALLING)
        infinite = self.tail_index < 4 and float(self.largest_fourth.max()) > share * float(self.fourth.sum())
        return infinite or size < ENOUGH * (kurtosis - 1)


def _tail_index(squares: Floats) -> float:
    """Hill's estimate from the square root of n largest errors, and 1.28 standard errors more."""
    count = max(10, round(np.sqrt(len(squares))))
    if len(squares) < 3 * count:
        return float(np.inf)
    top = np.partition(squares, len(squares) - count - 1)[-count - 1 :]
    excess = float(np.log(top / max(float(top.min()), 1e-300)).sum()) / 2
    return count / excess * (1 + 1.28 / np.sqrt(count)) if excess > 0 else float(np.inf)
