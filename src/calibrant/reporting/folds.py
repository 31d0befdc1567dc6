"""The cells of one part of the data divided into folds, for cross-fitted recalibration."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import fold_counts, fold_of_rows
from calibrant.numerics.sizes import GRID_ROWS
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable

FOLDS = 5


class FoldTables(NamedTuple):
    """One table per fold, and per fold the table of all other folds."""

    held_out: list[BinTable]
    training: list[BinTable]


def fold_tables(data: Binary | BinTable, cells: BinTable, seed: int) -> FoldTables:
    """The rows behind `cells` divided at random into folds; rows of one cluster (`group`) stay together."""
    if isinstance(data, Binary) and (len(data) <= GRID_ROWS or data.weight is not None or data.group is not None):
        sums = _sums_by_fold(data, cells, fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group))
    else:
        counts = fold_counts(np.stack([cells.count - cells.observed, cells.observed]), [1] * FOLDS, seed=seed)
        sums = np.stack([cell_sums(cells.predicted_mean, zeros + ones, ones) for zeros, ones in counts])
    sums = sums[sums[:, 1].any(axis=1)]
    others = [np.delete(sums, k, axis=0).sum(axis=0) for k in range(len(sums))]
    return FoldTables(*([replace(cells, sums=some).filled() for some in tables] for tables in (sums, others)))


def _sums_by_fold(data: Binary, cells: BinTable, fold: NDArray[np.intp]) -> Floats:
    """The sums of the rows of each fold in each cell: shape (folds, sums, cells)."""
    some = slice(None) if data.weight is None else data.weight > 0
    key, y = data.y_prob[some].astype(np.float64), data.y_true[some]
    cell = np.searchsorted(cells.key, key if isinstance(cells.cut, Distinct) else cells.cut.index(key))
    place, size = fold[some] * len(cells) + cell, FOLDS * len(cells)
    weight = np.ones(len(key)) if data.weight is None else data.weight[some]
    columns = [np.bincount(place, values, size) for values in (weight, weight * y, weight**2, np.ones(len(key)))]
    by_fold = zip(*(column.reshape(FOLDS, -1) for column in columns), strict=True)
    return np.stack([cell_sums(cells.predicted_mean, *one) for one in by_fold])


def cell_sums(
    p: Floats, weight: Floats, ones: Floats, squares: Floats | None = None, count: Floats | None = None
) -> Floats:
    """The columns of a table whose cells have the score `p`; without weights the weight is the count."""
    squares, count = weight if squares is None else squares, weight if count is None else count
    return np.stack([count, weight, squares, weight * p, ones, weight * p * p, ones * p, ones])
