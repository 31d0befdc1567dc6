"""The gain of a map on rows it was not fitted on, with an interval; and data divided into tables of folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone

from calibrant.data.predictions import Binary
from calibrant.numerics.arrays import GRID_ROWS, Floats
from calibrant.numerics.random_draws import fold_counts, fold_of_rows
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.results.estimate import Value
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable, merge, pooled_on

#: Folds that the rows are divided into.
#: Test: tests/recalibrate/test_held_out_gains.py::test_five_folds_hold_every_row_once.
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
    return FoldTables(cells.each_filled(sums), cells.each_filled(others))


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


Loss = Literal["log loss", "Brier score"]

#: Standard deviations of the excess loss of a fitted map that are added to the noise of the held-out rows. Of 0, 1,
#: 1.5, 2, 2.5 and 3 the smallest with which intervals cover in at least 95 % of samples, on average over the maps, in
#: every world that it was chosen in: with 2 it is 94 % where rows are clustered (reproduce.report_gains). Test:
#: tests/recalibrate/test_held_out_gains.py::test_the_gain_is_the_mean_difference_over_the_mean_loss.
FIT_ERRORS = 2.5


@dataclass(frozen=True, eq=False)
class Entries:
    """Weights of events and others, and squared weights, of rows or cells; with `cluster`, each entry is one row."""

    ones: Floats
    zeros: Floats
    squares: Floats
    cluster: NDArray[np.intp] | None = None

    @property
    def weight(self) -> Floats:
        """The weight of all rows."""
        return self.ones + self.zeros

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.weight.sum())

    def mean(self, if_one: Floats, if_zero: Floats) -> float:
        """The mean over all rows of a value that depends on the outcome, and may be infinite where it did not occur."""
        return (_sum(self.ones, if_one) + _sum(self.zeros, if_zero)) / self.total

    def error_of_mean(self, if_one: Floats, if_zero: Floats) -> float:
        """The standard error of that mean, with clusters as units where there are some."""
        mean, total = self.mean(if_one, if_zero), self.total
        if_one, if_zero = np.where(self.ones > 0, if_one, 0.0), np.where(self.zeros > 0, if_zero, 0.0)
        if self.cluster is not None:
            parts = np.bincount(self.cluster, self.ones * (if_one - mean) + self.zeros * (if_zero - mean))
            return float(np.sqrt(parts @ parts * len(parts) / max(len(parts) - 1, 1))) / total
        share = self.ones / self.weight
        square = share * (if_one - mean) ** 2 + (1 - share) * (if_zero - mean) ** 2
        return float(np.sqrt(self.squares @ square)) / total


def _sum(weight: Floats, values: Floats) -> float:
    """The weighted sum; values without weight do not count, even infinite ones."""
    return float(weight @ np.where(weight > 0, values, 0.0))


def losses(p: Floats, loss: Loss) -> tuple[Floats, Floats]:
    """The loss of a predicted probability if the event occurs, and if it does not."""
    if loss == "Brier score":
        return (1 - p) ** 2, p**2
    with np.errstate(divide="ignore"):
        return -np.log(p), -np.log1p(-p)


def differences(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """First less second losses, for either outcome; none where both exclude the outcome."""
    with np.errstate(invalid="ignore"):
        if_one, if_zero = (np.where(a == b, 0.0, a - b) for a, b in zip(first, second, strict=True))
    return if_one, if_zero


def gain_share(entries: Entries, before: Floats, after: Floats, loss: Loss, *, parameters: float, size: float) -> Value:
    r"""By how much the mean loss on held-out rows falls, as a share r of the loss before, with an interval.

    .. math:: r = \frac{\sum_i w_i (\ell_i - \ell'_i)}{\sum_i w_i \ell_i}, \qquad
              s^2 = \max(s_1, s_2, s_3)^2 + \Bigl(2.5 \, \frac{\sqrt{2k}}{2 n \bar\ell}\Bigr)^2

    :math:`s_1` is the standard error of the mean of :math:`(\ell_i - \ell'_i - r \ell_i) / \bar\ell`, over rows or
    clusters; :math:`s_2` and :math:`s_3` are what it would be if the probabilities before or after were true, since
    outcomes that were not seen count too. The last term is for the maps: those of different folds share rows, so that
    their errors do not average out. The excess loss of a map with k `parameters`, fitted to n = `size` rows, is about
    :math:`\chi^2_k / 2n`, with standard deviation :math:`\sqrt{2k} / 2n` (for the Brier score times twice the mean of p
    (1 - p)). Near calibration it is what matters: without it, nominal 95 % intervals cover in 75 to 85 % of samples.
    """
    return with_fit_error(*gain_parts(entries, before, after, loss, parameters=parameters, size=size))


def gain_parts(
    entries: Entries, before: Floats, after: Floats, loss: Loss, *, parameters: float, size: float
) -> tuple[float, float, float]:
    """The gain as a share of the loss before, its error on held-out rows, and the spread of excess losses."""
    first, second = losses(before, loss), losses(after, loss)
    mean = entries.mean(*first)
    if not mean > 0:
        return 0.0, 0.0, 0.0
    gains = differences(first, second)
    share = entries.mean(gains[0], gains[1]) / mean
    if not np.isfinite(share):  # an outcome that the map excluded
        return -np.inf, 0.0, 0.0
    with np.errstate(invalid="ignore"):
        rests = [gain - share * own for gain, own in zip(gains, first, strict=True)]
    # none where a loss would be infinite for an outcome that did not occur
    rests = [np.where(np.isfinite(rest), rest, 0.0) for rest in rests]
    error = entries.error_of_mean(rests[0], rests[1])
    by_model = (_error_if_true(entries, p, rests[0] - rests[1]) for p in (before, after))
    unit = 0.5 if loss == "log loss" else entries.mean(before * (1 - before), before * (1 - before))
    error = max(error, *by_model) / mean
    return share, error, unit * float(np.sqrt(2 * parameters)) / (size * mean)


def with_fit_error(share: float, error: float, excess: float, *, fit_errors: float = FIT_ERRORS) -> Value:
    """The 95 % interval of a gain, from its error on held-out rows and the spread of the maps' excess loss."""
    reach = float(ndtri(0.975)) * float(np.hypot(error, fit_errors * excess))
    return Value(share, share - reach, min(share + reach, 1.0))  # a loss that is never negative falls by all of it


def _error_if_true(entries: Entries, p: Floats, difference: Floats) -> float:
    """The standard error of a mean that differs by `difference` between the outcomes, if p were their probability."""
    return float(np.sqrt(entries.squares @ (p * (1 - p) * difference**2))) / entries.total


#: Cells that the scores of the rows a map is fitted to are counted on: far finer than any map could tell.
#: Test: tests/reporting/sections/test_recalibration.py::test_counting_on_a_grid_hardly_changes_a_map.
TRAINING_GRID = HybridGrid(cells=1 << 11)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows of every fold, or their cells, in the order of the folds; clustered rows are kept one by one.

    `bounds` say where each fold is, `training` are the tables of the other folds, `rows` clustered rows, and `size` is
    the number of independent rows that they are worth.
    """

    score: Floats
    count: Floats
    entries: Entries
    bounds: list[slice]
    training: list[BinTable]
    rows: Binary | None
    size: float

    @classmethod
    def of(
        cls, data: Binary | BinTable, cells: BinTable, folds: FoldTables, *, seed: int, design_effect: float
    ) -> HeldOut:
        """The folds that `fold_tables` made of `cells` with this seed."""
        grid = TRAINING_GRID
        held, training = folds.held_out, [pooled_on(grid, one, beyond=grid.cells // 2) for one in folds.training]
        size = cells.population.effective_n / design_effect
        if isinstance(data, Binary) and data.group is not None:
            return cls._of_clusters(data, seed, training, size)
        count, weight, squares, predicted, ones, *_ = np.concatenate([table.sums for table in held], axis=1)
        bounds = [slice(*both) for both in pairwise(np.cumsum([0, *(len(table.key) for table in held)]).tolist())]
        return cls(predicted / weight, count, Entries(ones, weight - ones, squares), bounds, training, None, size)

    @classmethod
    def _of_clusters(cls, data: Binary, seed: int, training: list[BinTable], size: float) -> HeldOut:
        fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
        some = np.arange(len(data)) if data.weight is None else np.flatnonzero(data.weight > 0)
        order = some[np.argsort(fold[some], kind="stable")]
        rows = data.take(order)
        ends = np.unique([0, *np.cumsum(np.bincount(fold[order]))]).tolist()
        bounds = [slice(*both) for both in pairwise(ends)]
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
        cluster = np.unique(np.asarray(rows.group), return_inverse=True)[1].reshape(-1)
        entries = Entries(weight * rows.y_true, weight * (1 - rows.y_true), weight**2, cluster)
        score = rows.y_prob.astype(np.float64)
        return cls(score, np.ones(len(rows)), entries, bounds, training, rows, size)

    def judged(self, recalibrator: Any, loss: Loss, *, parameters: float) -> tuple[Value, Floats, list[Any], float]:
        """The gain of a map, what it predicts when it is fitted without each fold, those fits, and how far it moves."""
        fitted = [clone(recalibrator).fit_table(cells) for cells in self._training_cells]
        after = np.empty(len(self.score))
        for where, one, scores in zip(self.bounds, fitted, self._scores, strict=True):
            after[where] = one.predict_checked(scores)[:, 1]
        gain = gain_share(self.entries, self.score, after, loss, parameters=parameters, size=self.size)
        apart = np.abs(after - self.score)
        return gain, after, fitted, self.entries.mean(apart, apart)

    @cached_property
    def _training_cells(self) -> list[BinomialCells]:
        """The rows of the other folds as every map is fitted to them."""
        return [BinomialCells.of_table(table) for table in self.training]

    @cached_property
    def _scores(self) -> list[Scores]:
        """The scores of each fold, whose log odds all maps share."""
        return [Scores(self.score[where], logits=False) for where in self.bounds]

    def error_of_difference(self, one: Floats, other: Floats, loss: Loss) -> float:
        """The standard error of the difference of the gains of two maps, as a share of the loss before."""
        error = self.entries.error_of_mean(*differences(losses(one, loss), losses(other, loss)))
        return error / self.entries.mean(*losses(self.score, loss))

    def after(self, predicted: Floats) -> Binary | BinTable:
        """The same rows with other predictions: a fine table, or rows where they are clustered."""
        if self.rows is not None:
            p = np.clip(predicted, 0.0, 1.0)
            return Binary(self.rows.y_true, p, weight=self.rows.weight, group=self.rows.group)
        cut = Distinct()
        return merge([self._table(cut, predicted, where) for where in self.bounds])

    def _table(self, cut: Distinct, predicted: Floats, where: slice) -> BinTable:
        own = self.entries
        order = np.argsort(predicted[where], kind="stable")
        columns = (predicted, own.weight, own.ones, own.squares, self.count)
        q, weight, ones, squares, count = (values[where][order] for values in columns)
        return BinTable(cut, q, q, q, cell_sums(q, weight, ones, squares, count))


def held_out_rows(data: Binary, fitted: list[Any], seed: int) -> Binary:
    """The rows of `data`, in their order, with the predictions of maps fitted without the fold of each.

    Beyond `GRID_ROWS` a row's fold is drawn anew: its map may have been fitted on it among tens of thousands of others.
    """
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    score, after = data.y_prob.astype(np.float64), data.y_prob.astype(np.float64).copy()
    weighted = fold if data.weight is None else fold[data.weight > 0]
    for k, one in zip(np.unique(weighted).tolist(), fitted, strict=True):
        after[fold == k] = one.predict_checked(Scores(score[fold == k], logits=False))[:, 1]
    return Binary(data.y_true, np.clip(after, 0.0, 1.0), weight=data.weight, group=data.group)
