"""The sample behind an interval or a test: rows, cells, clusters, resamples, design effect.

Tables are resampled, not rows: by one multinomial draw over cells and outcomes, or over clusters of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.estimators.regression_common import normal_scores
from calibrant.estimators.validation_study import probability_cells
from calibrant.numerics.arrays import EXACT_ROWS, Floats
from calibrant.numerics.cells import FineSample, PooledCells
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import Rows, effective_n
from calibrant.table.binning import Distinct, EqualMass, HybridGrid
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import require_fine
from calibrant.table.task import Unlabeled, task_of


def row_clusters(data: Predictions, rows: int) -> NDArray[np.intp] | None:
    """Cluster numbers of `rows` values; None if they are independent. The outputs of one row are a cluster."""
    if data.group is None and rows == len(data):
        return None
    labels = np.arange(len(data)) if data.group is None else np.unique(data.group, return_inverse=True)[1].reshape(-1)
    return np.repeat(labels, rows // len(data))


def design_effect(residuals: Iterable[Floats], clusters: NDArray[np.intp] | None) -> float:
    """Variance of the sum of weighted residuals (of several columns) relative to independent rows; at least 1."""
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


#: Below the first number of effective clusters nothing is claimed about forecasts; below the second the assumption of
#: an interval says that there are few.
#: Test: tests/inference/test_forecast_intervals.py::test_nothing_is_claimed_of_fewer_than_six_effective_clusters.
LEAST_EFFECTIVE, FEW_EFFECTIVE = 6, 20


@dataclass(frozen=True, eq=False)
class ForecastClusters:
    r"""Clusters of forecasts: the share of each row and cluster in the weight, and how alike standardised errors are.

    A few clusters that happen to agree seem to know more than they do. So no result counts as more certain than for
    normal errors with the correlation ρ within clusters that was seen: the larger of that of the errors z, and the root
    of that of z². Squares of such errors have the correlation ρ².
    """

    label: NDArray[np.intp]
    share: Floats
    size: Floats
    correlation: float

    @classmethod
    def of(cls, label: NDArray[np.intp], weight: Floats | None, z: Floats) -> ForecastClusters:
        """From cluster numbers, weights and standardised errors of rows."""
        weight = np.ones(len(label)) if weight is None else weight
        share = weight / weight.sum()
        size: Floats = np.bincount(label, share).astype(np.float64, copy=False)
        return cls(label, share, size, _likeness(label, share, z))

    @property
    def effective(self) -> float:
        """Kish's number of clusters."""
        return round(1 / float(self.size @ self.size), 9)  # that of equal clusters is a whole number

    def normal_rows(self, correlation: float) -> float:
        """The number of independent rows that tell as much as rows with this correlation within clusters."""
        rows, clusters = float(self.share @ self.share), float(self.size @ self.size)
        return 1 / (rows + correlation * (clusters - rows))

    def require_enough(self) -> None:
        """Refuse to claim anything about very few clusters."""
        if self.effective < LEAST_EFFECTIVE:
            fail(
                f"The rows are {len(self.size):,} clusters that count as {self.effective:.1f} equal ones, too few for "
                f"an interval: at least {LEAST_EFFECTIVE} are needed, since rows of a cluster depend on each other."
            )

    @property
    def words(self) -> str:
        """What an assumption says of them, with a semicolon after it; empty where they are many."""
        return f"few clusters ({self.effective:.0f}); " if self.effective < FEW_EFFECTIVE else ""

    def reach(self, level: float) -> float:
        """The two-sided quantile of Student's distribution, with one degree of freedom less than clusters."""
        from scipy.special import stdtrit

        return float(stdtrit(max(self.effective - 1, 1.0), (1 + level) / 2))


def forecast_clusters(data: Forecast, rows: int) -> ForecastClusters | None:
    """The clusters of `rows` forecasts and how alike their errors are; None if rows are independent."""
    labels = row_clusters(data, rows)
    return None if labels is None else ForecastClusters.of(labels, data.flat_weight, normal_scores(data))


def _likeness(label: NDArray[np.intp], share: Floats, z: Floats) -> float:
    """The correlation within clusters of z, or the root of that of z², the larger, between 0 and 1."""
    size = np.bincount(label, share)
    pairs = float(size @ size - share @ share)
    second = float(share @ z**2)
    if pairs <= 1e-12 * float(size @ size) or second == 0:
        return 0.0
    found = []
    for values in (z, z**2 / second - 1):
        sums = np.bincount(label, share * values)
        together = float(sums @ sums - (share**2) @ values**2) / pairs
        found.append(together / max(float(share @ values**2), 1e-300))
    alike, squared = np.clip(found, 0.0, 1.0)
    return float(max(alike, np.sqrt(squared)))


#: Maximum number of cells of a resampled table, and of clusters that independent rows are divided into.
#: Test: tests/inference/test_sample.py.
MOST_CELLS, MOST_CLUSTERS = 512, 1024

#: Resamples per matrix product.
#: Speed: a block of repeats of 1024 clusters takes half a megabyte; no result depends on it.
_BATCH = 64


@dataclass(frozen=True, eq=False)
class Sample:
    """Scores and outcomes of one task, in the form that intervals and tests need.

    `cluster` numbers the cluster of each row from 0; None: rows are independent, and only the fine `table` is needed.
    With clusters the table has one cell per distinct score, so that each of the `rows` has a `cell`.
    """

    source: Predictions | BinTable
    cluster: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, data: Predictions | BinTable, *, needed_by: str) -> Sample:
        """Binary predictions, or a fine table of them, with independent rows."""
        if isinstance(data, BinTable):
            require_fine(data, needed_by=needed_by)
        elif not isinstance(data, Binary):
            fail(f"{needed_by} needs binary predictions (Binary(y_true, y_prob), data.top_label()), not {data!r}.")
        if isinstance(task_of(data), Unlabeled):
            fail(f"{needed_by} does not support positive-unlabeled data.")
        return cls(data)

    @classmethod
    def with_clusters(cls, data: Predictions | BinTable, *, needed_by: str) -> Sample:
        """Binary predictions with their clusters if they have a group, or a fine table."""
        checked = cls.of(data, needed_by=needed_by)
        return cls.of_rows(data) if isinstance(data, Binary) and data.group is not None else checked

    @classmethod
    def of_rows(cls, data: Binary) -> Sample:
        """Binary rows with their clusters (one per row if there is no group); rows of zero weight are left out."""
        if data.weight is not None and not data.weight.all():
            data = data.take(data.weight > 0)
        return cls(data, np.arange(len(data)) if data.group is None else cluster_labels(data, len(data)))

    @classmethod
    def of_clusters(cls, data: Predictions, *, cluster: NDArray[np.intp] | None = None) -> Sample:
        """Rows to be resampled by cluster: those of `group`, or random clusters of independent rows."""
        return cls(data, cluster_labels(data, len(data.rows().key)) if cluster is None else cluster)

    @cached_property
    def rows(self) -> Rows:
        """The rows."""
        if isinstance(self.source, BinTable):
            fail("A table has no rows; pass the predictions.")
        return self.source.rows()

    @cached_property
    def table(self) -> BinTable:
        """The cells of the scores, in ascending order; cells are empty only if they hold rows of zero weight."""
        if isinstance(self.source, BinTable):
            return self.source.filled().in_rows()
        if self.cluster is not None:
            return BinTable.of(self.source, Distinct())
        cut = Distinct() if len(self.source) <= EXACT_ROWS else HybridGrid()
        return BinTable.of(self.source, cut).filled().in_rows()

    @cached_property
    def cell(self) -> NDArray[np.intp]:
        """The cell number of each row, if the sample has clusters."""
        key = self.rows.key.astype(np.float64)
        order = np.argsort(key)  # numbers looked up in their order are found in the cache
        cell = np.empty(len(key), np.intp)
        cell[order] = np.searchsorted(self.table.key, key[order])
        return cell

    @cached_property
    def effective_n(self) -> float:
        """Kish's effective number of rows."""
        return self.table.total**2 / float(self.table.weight_squares.sum())

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return 0 if self.cluster is None else int(self.cluster.max()) + 1

    @cached_property
    def row_share(self) -> Floats:
        """The share of each row in the total weight."""
        weight = np.ones(len(self.rows.key)) if self.rows.weight is None else self.rows.weight
        return weight / weight.sum()

    @cached_property
    def residual(self) -> Floats:
        """Score minus outcome of each row."""
        return np.asarray(self.rows.predicted.astype(np.float64) - self.rows.observed)

    def by_cluster(self, values: Floats) -> Floats:
        """Sums over the rows of each cluster, column by column."""
        if self.cluster is None or self.clusters == len(self.cluster):
            return values
        return np.stack([np.bincount(self.cluster, column, self.clusters) for column in values.T], axis=1)

    def pooled(self, size: int) -> PooledCells:
        """At most about `size` cells of neighbouring scores."""
        return PooledCells.of(self.table.sums, size)

    def fine(self) -> FineSample:
        """Fine cells and, of clusters of rows, what each has in them."""
        if self.cluster is None or self.clusters == len(self.cluster):
            return FineSample(PooledCells.fine(self.table.sums))
        columns = self.row_share, self.rows.predicted.astype(np.float64), self.rows.observed
        return FineSample.of_clusters(self.table.sums, self.cell, *columns, self.cluster)

    @cached_property
    def coarse(self) -> BinTable:
        """The table with at most 512 cells: itself, or neighbouring cells of about equal mass pooled."""
        if self.cluster is None:
            return coarse_cells(self.table)
        totals = np.stack([np.asarray(column.sum(axis=0), dtype=np.float64) for column in self._cluster_sums])
        return replace(coarse_cells(self.table), sums=totals)

    def resample(self, draws: int, rng: np.random.Generator) -> Iterator[BinTable]:
        """Tables of resamples: of cells and outcomes, or of whole clusters."""
        if self.cluster is None:
            yield from self._resampled_outcomes(draws, rng)
            return
        for start in range(0, draws, _BATCH):
            yield from self.repeated(cluster_repeats(self.clusters, min(_BATCH, draws - start), rng))

    def repeated(self, repeats: Floats) -> Iterator[BinTable]:
        """For each row of `repeats`, the table in which each cluster occurs that number of times."""
        totals = np.stack([np.asarray(repeats @ column) for column in self._cluster_sums], axis=1)
        for sums in totals:
            yield replace(self.coarse, sums=sums).filled()

    def _resampled_outcomes(self, draws: int, rng: np.random.Generator) -> Iterator[BinTable]:
        """Counts of each cell and outcome of unweighted binary rows are multinomial."""
        table, cells = self.coarse, len(self.coarse)
        if not np.array_equal(table.weight, table.count):
            fail(
                "A table of weighted rows pools the weights of both outcomes, so it cannot be resampled; "
                "pass the predictions."
            )
        shares = np.maximum(np.concatenate([table.observed, table.count - table.observed]), 0.0)
        mean, square = table.predicted / table.weight, table.predicted_squares / table.weight
        for drawn in rng.multinomial(table.n, shares / shares.sum(), draws).astype(np.float64):
            hits, count = drawn[:cells], drawn[:cells] + drawn[cells:]
            sums = np.stack([count, count, count, count * mean, hits, count * square, hits * mean, hits])
            yield replace(table, sums=sums).filled()

    @cached_property
    def _cluster_sums(self) -> list[Any]:
        """For each column of sums a matrix of clusters by coarse cells."""
        table, coarse = self.table, coarse_cells(self.table)
        ends = np.cumsum(coarse.count) - 0.5
        into = np.minimum(np.searchsorted(ends, np.cumsum(table.count) - table.count / 2), len(coarse) - 1)
        labels = np.zeros(0, np.intp) if self.cluster is None else self.cluster
        return _cross_sums(labels, into[self.cell], self.rows.sums(), (self.clusters, len(coarse)))


def independent_rows_counted(data: Predictions | BinTable, *, needed_by: str) -> Predictions | BinTable:
    """The table of independent rows, counted once for all that needs it; rows in clusters as they are."""
    if isinstance(data, BinTable) or getattr(data, "group", None) is not None:
        return data
    return probability_cells(Sample.of(data, needed_by=needed_by).source, None, needed_by=needed_by)


def coarse_cells(table: BinTable, size: int = MOST_CELLS) -> BinTable:
    """The table with at most `size` cells: itself, or neighbouring cells of about equal mass pooled."""
    if len(table) <= size:
        return table
    bins = table.coarsen(EqualMass(size)).filled()
    key = bins.predicted / bins.weight
    return replace(bins, cut=Distinct(), key=key, low=key, high=key)


def cluster_repeats(clusters: int, draws: int, rng: np.random.Generator) -> Floats:
    """Number of times each cluster occurs in a resample, one resample per row."""
    repeats = np.empty((draws, clusters))
    for row in repeats:  # clusters are drawn one by one: a fifth of the time of a multinomial draw of their numbers
        row[:] = np.bincount(rng.integers(0, clusters, clusters), minlength=clusters)
    return repeats


def cluster_labels(data: Any, rows: int) -> NDArray[np.intp]:
    """Cluster numbers from 0: those of `group`, or random ones with a fixed seed (up to 1024 rows, one per row)."""
    if data.group is not None:
        labels = np.unique(data.group, return_inverse=True)[1].reshape(-1)
        if len(labels) != rows:
            labels = np.repeat(labels, rows // len(labels))  # several outputs per row belong to one cluster
        return np.asarray(labels, dtype=np.intp)
    if rows <= MOST_CLUSTERS:
        return np.arange(rows)
    return generator(0, "random clusters").permutation(np.arange(rows) % MOST_CLUSTERS)


def _cross_sums(labels: NDArray[np.intp], cell: NDArray[np.intp], sums: Floats, shape: tuple[int, int]) -> list[Any]:
    """Sums per label and cell, a matrix for each row of `sums`; sparse if most of it would be empty."""
    if 4 * len(labels) < shape[0] * shape[1]:
        from scipy.sparse import coo_array

        return [coo_array((values, (labels, cell)), shape=shape).tocsr() for values in sums]
    flat, size = labels * shape[1] + cell, shape[0] * shape[1]
    return [np.bincount(flat, values, size).astype(np.float64).reshape(shape) for values in sums]
