"""Tables drawn again: one multinomial over cells and outcomes, or over clusters of rows. Rows are never drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.score_cells import fine_table
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binned_sums import Pairs
from calibrant.table.binning import Distinct, EqualMass
from calibrant.table.bintable import BinTable

#: Most cells of a table that is drawn from, and most clusters that independent rows are dealt into.
MOST_CELLS, MOST_CLUSTERS = 512, 1024

#: Samples that are summed in one matrix product.
_TOGETHER = 64


def coarse_cells(table: BinTable, size: int = MOST_CELLS) -> BinTable:
    """The table with at most `size` cells: itself, or neighbouring cells of about equal mass pooled."""
    if len(table) <= size:
        return table
    bins = table.coarsen(EqualMass(size)).filled()
    key = bins.predicted / bins.weight
    return replace(bins, cut=Distinct(), key=key, low=key, high=key)


def source(data: Predictions | BinTable) -> OutcomeCells | Clusters:
    """What to draw from: cells and outcomes where rows are independent and unweighted, else clusters."""
    plain = isinstance(data, Binary) and data.weight is None and data.group is None
    if not plain and not isinstance(data, BinTable):
        return Clusters.of(data)
    table = coarse_cells(fine_table(data, needed_by="The bootstrap"))
    if not np.array_equal(table.weight, table.count):
        message = "A table of weighted rows does not say which weight went with which outcome; give the predictions."
        raise InvalidPredictions(message)
    return OutcomeCells(table)


@dataclass(frozen=True, eq=False)
class OutcomeCells:
    """Cells of unweighted binary rows: counts of each cell and outcome are multinomial."""

    table: BinTable

    def tables(self, size: int, rng: np.random.Generator) -> Iterator[BinTable]:
        """Tables of `size` samples like this one."""
        table, cells = self.table, len(self.table)
        shares = np.concatenate([table.observed, table.count - table.observed])
        shares = np.maximum(shares, 0.0)
        mean, square = table.predicted / table.weight, table.predicted_squares / table.weight
        for drawn in rng.multinomial(table.n, shares / shares.sum(), size).astype(np.float64):
            hits, count = drawn[:cells], drawn[:cells] + drawn[cells:]
            sums = np.stack([count, count, count, count * mean, hits, count * square, hits * mean, hits])
            yield replace(table, sums=sums).filled()


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sums per cluster and cell. Clusters are drawn whole; independent rows are dealt into clusters by chance.

    Dealing loses nothing: sums over random clusters of independent rows are independent as well, and 1024 of them are
    plenty to draw from.
    """

    table: BinTable
    columns: list[Any]

    @classmethod
    def of(cls, data: Any, *, labels: NDArray[np.intp] | None = None) -> Clusters:
        """By `group` where the data have one, else by chance (one row each up to 1024 rows)."""
        pairs: Pairs = data.pairs()
        rows = len(pairs.key)
        labels = cluster_labels(data, rows) if labels is None else labels
        table = BinTable.of(pairs, Distinct())
        coarse = coarse_cells(table, MOST_CELLS)
        edges = np.searchsorted(np.cumsum(coarse.count) - 0.5, np.cumsum(table.count) - table.count / 2)
        cell = np.minimum(edges, len(coarse) - 1)[np.searchsorted(table.key, pairs.key.astype(np.float64))]
        columns = _by_cluster(labels, cell, pairs.sums(), (int(labels.max()) + 1, len(coarse)))
        totals = np.stack([np.asarray(column.sum(axis=0), dtype=np.float64) for column in columns])
        return cls(replace(coarse, sums=totals), columns)

    def tables(self, size: int, rng: np.random.Generator) -> Iterator[BinTable]:
        """Tables of samples in which every cluster comes a multinomial number of times."""
        for start in range(0, size, _TOGETHER):
            times = cluster_times(self.columns[0].shape[0], min(_TOGETHER, size - start), rng)
            yield from self.weighted(times)

    def weighted(self, times: Floats) -> Iterator[BinTable]:
        """For each line of `times` the table in which every cluster comes this often."""
        totals = np.stack([np.asarray(times @ column) for column in self.columns], axis=1)
        for sums in totals:
            yield replace(self.table, sums=sums).filled()


def _by_cluster(labels: NDArray[np.intp], cell: NDArray[np.intp], sums: Floats, shape: tuple[int, int]) -> list[Any]:
    """For each column of sums a matrix of clusters by cells; a sparse one where most of it would be empty."""
    if 4 * len(labels) < shape[0] * shape[1]:
        from scipy.sparse import coo_array

        return [coo_array((values, (labels, cell)), shape=shape).tocsr() for values in sums]
    place, size = labels * shape[1] + cell, shape[0] * shape[1]
    return [np.bincount(place, values, size).astype(np.float64).reshape(shape) for values in sums]


def cluster_times(clusters: int, size: int, rng: np.random.Generator) -> Floats:
    """How often each cluster is drawn, one sample to a line."""
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size).astype(np.float64)


def cluster_labels(data: Any, rows: int) -> NDArray[np.intp]:
    """Cluster numbers from 0: those of `group`, or dealt by chance with a fixed seed."""
    if data.group is not None:
        labels = np.unique(data.group, return_inverse=True)[1].reshape(-1)
        if len(labels) != rows:
            labels = np.repeat(labels, rows // len(labels))  # several outputs per row belong to one cluster
        return np.asarray(labels, dtype=np.intp)
    if rows <= MOST_CLUSTERS:
        return np.arange(rows)
    return np.random.default_rng(0).permutation(np.arange(rows) % MOST_CLUSTERS)
