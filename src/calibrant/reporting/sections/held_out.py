"""Maps judged on rows they were not fitted on: their predictions, and the paired gain with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.data.predictions import Binary
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import fold_of_rows
from calibrant.reporting.contents import Value
from calibrant.reporting.folds import FOLDS, cell_sums
from calibrant.reporting.part import Part
from calibrant.reporting.sections.bins import average_design_effect
from calibrant.reporting.sections.gains import Entries, Loss, differences, gain_share, losses
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge

#: Cells that the scores of the rows a map is fitted to are counted on: far finer than any map could tell.
TRAINING_GRID = HybridGrid(cells=1 << 11)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows of every fold, or their cells, in the order of the folds.

    Clustered rows are kept one by one, since their gains must be added up by cluster.

    Attributes
    ----------
    score, count : array
        Prediction and number of rows of each entry.
    entries : Entries
        Weights by outcome, and clusters.
    bounds : list of slice
        Where each fold is.
    training : list of BinTable
        The rows of the other folds.
    rows : Binary or None
        Clustered rows, in the order of the folds.
    size : float
        How many independent rows they are worth.
    """

    score: Floats
    count: Floats
    entries: Entries
    bounds: list[slice]
    training: list[BinTable]
    rows: Binary | None
    size: float

    @classmethod
    def of(cls, part: Part) -> HeldOut:
        """The folds of one part of the data."""
        held, training = part.folds.held_out, [_pooled(table) for table in part.folds.training]
        data = part.data
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(data, part, training)
        score, count, ones, weight, squares = (
            np.concatenate([getattr(table, name) for table in held])
            for name in ("predicted_mean", "count", "observed", "weight", "weight_squares")
        )
        ends = np.cumsum([len(table) for table in held])
        bounds = [slice(end - len(table), end) for end, table in zip(ends.tolist(), held, strict=True)]
        return cls(score, count, Entries(ones, weight - ones, squares), bounds, training, None, _independent_rows(part))

    @classmethod
    def _of_clusters(cls, data: Binary, part: Part, training: list[BinTable]) -> HeldOut:
        fold = fold_of_rows(len(data), [1] * FOLDS, seed=part.seed, cluster=data.group)
        some = np.arange(len(data)) if data.weight is None else np.flatnonzero(data.weight > 0)
        order = some[np.argsort(fold[some], kind="stable")]
        rows = data.take(order)
        ends = np.cumsum(np.bincount(fold[order]))
        ends = np.unique(ends[ends > 0])
        bounds = [slice(start, end) for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
        cluster = cluster_labels(rows, len(rows))
        entries = Entries(weight * rows.y_true, weight * (1 - rows.y_true), weight**2, cluster)
        score = rows.y_prob.astype(np.float64)
        return cls(score, np.ones(len(rows)), entries, bounds, training, rows, _independent_rows(part))

    def fitted(self, recalibrator: Any) -> list[Any]:
        """The map fitted without each fold."""
        return [clone(recalibrator).fit_table(table) for table in self.training]

    def predicted(self, fitted: list[Any]) -> Floats:
        """What the map predicts for each entry when it is fitted without the entry's fold."""
        found = np.empty(len(self.score))
        for where, one in zip(self.bounds, fitted, strict=True):
            found[where] = one.predict_proba(self.score[where])[:, 1]
        return found

    def gain(self, after: Floats, loss: Loss, *, parameters: float) -> Value:
        """By how much the loss falls, as a share of the loss before."""
        return gain_share(self.entries, self.score, after, loss, parameters=parameters, size=self.size)

    def error_of_difference(self, one: Floats, other: Floats, loss: Loss) -> float:
        """The standard error of the difference of the gains of two maps, as a share of the loss before."""
        error = self.entries.error_of_mean(*differences(losses(one, loss), losses(other, loss)))
        return error / self.entries.mean(*losses(self.score, loss))

    def after(self, predicted: Floats) -> Binary | BinTable:
        """The same rows with other predictions: a fine table, or rows where they are clustered."""
        if self.rows is not None:
            return Binary(
                self.rows.y_true, np.clip(predicted, 0.0, 1.0), weight=self.rows.weight, group=self.rows.group
            )
        return merge([self._table(predicted, where) for where in self.bounds])

    def _table(self, predicted: Floats, where: slice) -> BinTable:
        own = self.entries
        order = np.argsort(predicted[where], kind="stable")
        columns = (predicted, own.weight, own.ones, own.squares, self.count)
        q, weight, ones, squares, count = (values[where][order] for values in columns)
        return BinTable(Distinct(), q, q, q, cell_sums(q, weight, ones, squares, count))


def held_out_rows(data: Binary, fitted: list[Any], seed: int) -> Binary:
    """The rows of `data`, in their order, with the predictions of maps fitted without the fold of each.

    Of more rows than are divided into folds one by one, a row's fold is drawn anew: its map may have been fitted on it
    among tens of thousands of others.
    """
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    score, after = data.y_prob.astype(np.float64), data.y_prob.astype(np.float64).copy()
    weighted = fold if data.weight is None else fold[data.weight > 0]
    for k, one in zip(np.unique(weighted).tolist(), fitted, strict=True):
        after[fold == k] = one.predict_proba(score[fold == k])[:, 1]
    return Binary(data.y_true, np.clip(after, 0.0, 1.0), weight=data.weight, group=data.group)


def _independent_rows(part: Part) -> float:
    return part.cells.population.effective_n / average_design_effect(part)


def _pooled(table: BinTable) -> BinTable:
    """The table with the cells of one cell of the grid added up."""
    if len(table) <= TRAINING_GRID.cells // 2:
        return table
    key = TRAINING_GRID.index(table.predicted_mean)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
    ends = np.append(starts[1:], len(key)) - 1
    sums = np.add.reduceat(table.sums, starts, axis=1)
    return replace(table, cut=TRAINING_GRID, key=key[starts], low=table.low[starts], high=table.high[ends], sums=sums)
