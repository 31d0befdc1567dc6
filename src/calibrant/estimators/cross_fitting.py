"""Cross-fitting: rows in folds, each with its recalibrated probability by a map fitted on the other folds.

Folds are shuffled and never stratified by outcome: stratified folds give every training part the class shares of
its held-out part, so that a chance excess of positives is confirmed out of fold and the estimate is no lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.variational_norms import Distance, Norm, contributions, finite_norm, function_gradient
from calibrant.numerics.arrays import GRID_CELLS, GRID_ROWS, Codes, Floats, Reals, row_blocks
from calibrant.numerics.random_draws import Seed, fold_counts, fold_of_rows
from calibrant.numerics.rows import Mass
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable, outcome_cells


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Entries (a row, or many rows of one score and outcome) with their fold and, once fitted, their out-of-fold map.

    Probabilities have shape (r, d), with d = 1 for binary tasks; `observed` is the number of the class. `weight` and
    `weight_squares` are sums over the rows of an entry. Rows of one cluster are in one fold; `row` is None for cells
    of a table. `confidence`: the event is "the predicted class is right", and the accuracy decides what is
    overconfident.
    """

    predicted: Reals
    observed: NDArray[Any]
    weight: Floats
    weight_squares: Floats
    fold: NDArray[np.intp]
    n: int
    cluster: NDArray[Any] | None = None
    row: NDArray[np.intp] | None = None
    recalibrated: Reals | None = None
    confidence: bool = False

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    @property
    def columns(self) -> int:
        """Number of columns of probabilities, 1 for binary tasks."""
        return self.predicted.shape[1]

    @property
    def outcome(self) -> Floats:
        """One-hot outcomes (r, d) of multiclass data, 0 or 1 of binary tasks; as large as the probabilities."""
        if self.columns == 1:
            return self.observed[:, None].astype(np.float64)
        result = np.zeros(self.predicted.shape)
        result[np.arange(len(result)), self.observed.astype(np.intp)] = 1.0
        return result

    @property
    def base_rates(self) -> Floats:
        """Share of each class, or of the event."""
        if self.columns == 1:
            return np.asarray((self.weight @ self.observed)[None] / self.weight.sum())
        return np.asarray(np.bincount(self.observed, self.weight, self.columns) / self.weight.sum())

    @property
    def information(self) -> Floats:
        """Weights scaled to add up to Kish's effective number of rows, as a likelihood needs them."""
        return self.weight * (self.weight.sum() / self.weight_squares.sum())

    @property
    def fitted(self) -> Reals:
        """The recalibrated probabilities; an error where no map was fitted yet."""
        if self.recalibrated is None:
            message = "These rows have no map yet."
            raise RuntimeError(message)
        return self.recalibrated

    def with_map(self, recalibrated: Reals) -> CrossFitted:
        """The same entries with their out-of-fold probabilities."""
        return replace(self, recalibrated=recalibrated.reshape(self.predicted.shape))

    def take(self, which: Any) -> CrossFitted:
        """Some of the entries."""
        names = ("predicted", "observed", "weight", "weight_squares", "fold", "cluster", "row", "recalibrated")
        arrays: dict[str, Any] = {name: getattr(self, name)[which] for name in names if getattr(self, name) is not None}
        return replace(self, **arrays)

    def blocks(self) -> Iterator[CrossFitted]:
        """The entries in consecutive parts of bounded size, in double precision."""
        for rows in row_blocks(*self.predicted.shape):
            part = self.take(rows)
            fitted = part.fitted.astype(np.float64, copy=False)
            yield replace(part, predicted=part.predicted.astype(np.float64, copy=False), recalibrated=fitted)

    def contributions(self, norm: Norm, *, floor: float = 0.0) -> Floats:
        """The contribution of each entry to the calibration error in a norm."""
        if self.columns == 1 and not isinstance(norm, str | Distance) and norm > 1:
            f = self.predicted[:, 0]
            slope = function_gradient(self.fitted[:, 0] - f, finite_norm(norm), self.weight, self.fold)
            return np.asarray(slope * (self.observed - f), dtype=np.float64)
        parts = (contributions(norm, part.predicted, part.fitted, part.outcome, floor=floor) for part in self.blocks())
        return np.concatenate(list(parts))


def binary_rows(data: Binary, sizes: Sequence[float], seed: Seed) -> CrossFitted:
    """Binary rows in folds. Folds are drawn for the sorted rows, so that the result does not depend on their order."""
    if len(data) > GRID_ROWS and data.weight is None and data.group is None:
        return table_cells(BinTable.of(data, HybridGrid(GRID_CELLS)), sizes, seed)
    n = len(data)
    score, y = data.y_prob.astype(np.float64), data.y_true.astype(np.float64)
    weight = np.ones(n) if data.weight is None else data.weight
    fold = _folds(np.lexsort((weight, y, score)), weight, sizes, seed, data.group)
    return _weighted_rows(score[:, None], y, weight, fold, data.group)


#: Up to this many probabilities of three or more classes, errors are averages over several divisions into folds.
#: Speed: beyond them the spread over divisions is small, and each division keeps a copy of the probabilities; one of
#: 50,000 rows and 1,000 classes takes 7 s.
DIVIDED_PROBABILITIES = 2_000_000
#: The number of these divisions. Test: tests/estimators/test_variational.py::test_seeds_move_little.
DIVISIONS = 3


def divisions(n: int, columns: int) -> int:
    """How many divisions of n rows into folds are averaged by default; columns is 1 for one probability."""
    return DIVISIONS if columns > 2 and n * columns <= DIVIDED_PROBABILITIES else 1


def multiclass_rows(
    data: Multiclass, sizes: Sequence[float], seed: Seed, *, order: NDArray[np.intp] | None = None
) -> CrossFitted:
    """Multiclass rows in folds; probabilities are divided by their sum.

    Entries have an order of their own, so that no result depends on the order of the rows; or the one given.
    """
    n, k = data.y_prob.shape
    weight = np.ones(n) if data.weight is None else data.weight
    order = _own_order(data, weight) if order is None else order
    predicted = np.empty_like(data.y_prob)
    for rows in row_blocks(n, k):
        part = data.y_prob[order[rows]].astype(np.float64)
        predicted[rows] = part / part.sum(axis=1, keepdims=True)
    weight, group = weight[order], None if data.group is None else data.group[order]
    fold = _folds(np.arange(n), weight, sizes, seed, group)
    found = _weighted_rows(predicted, data.y_true[order], weight, fold, group)
    return replace(found, row=order if found.row is None else order[found.row])


def _own_order(data: Multiclass, weight: Floats) -> NDArray[np.intp]:
    """Rows by what they hold: the sum of their squared probabilities first, which does not depend on class names.

    Labels come last and only tell equal predictions apart: no choice of rows by a map depends on them.
    """
    n, k = data.y_prob.shape
    squares, others = np.empty(n), np.empty(n)
    along = np.sqrt(np.arange(2, k + 2))
    for rows in row_blocks(n, k):
        part = data.y_prob[rows].astype(np.float64)
        squares[rows], others[rows] = np.einsum("nk,nk->n", part, part), part @ along
    return np.lexsort((weight, data.y_true, others, squares.round(12)))


def table_cells(table: BinTable, sizes: Sequence[float], seed: Seed) -> CrossFitted:
    """Cells of a fine table, the rows of each assigned to folds at random.

    Only for independent rows without weights; others need one table per fold.
    """
    cells = outcome_cells(table, needed_by="variational_error")
    if not np.array_equal(cells.weight, cells.count):
        message = "A table of weighted rows cannot be divided into folds; give a list of tables, one per fold."
        raise ValueError(message)
    if cells.n < len(sizes):
        message = f"{len(sizes)} folds need at least as many rows, got {cells.n}."
        raise InvalidPredictions(message)
    counts = fold_counts(np.stack([cells.count - cells.observed, cells.observed]), sizes, seed=seed)
    return _cells(cells.predicted_mean, counts, None)


def tables_by_fold(tables: Sequence[BinTable]) -> CrossFitted:
    """One fine table per fold, as an engine makes them by grouping by fold and cell."""
    if len(tables) < 2 or not all(isinstance(table, BinTable) for table in tables):
        message = "Give at least two fine tables, one per fold."
        raise ValueError(message)
    parts = []
    for k, table in enumerate(tables):
        cells = outcome_cells(table, needed_by="variational_error")
        counts = np.stack([cells.weight - cells.observed, cells.observed])[None]
        part = _cells(cells.predicted_mean, counts, cells.weight_squares / cells.weight)
        parts.append(replace(part, fold=np.full(len(part.weight), k), n=cells.n))
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("predicted", "observed", "weight", "weight_squares", "fold")
    }
    return CrossFitted(n=sum(part.n for part in parts), **joined)


def recalibrated(rows: CrossFitted, recalibrator: Any, *, targets: Sequence[int] | None = None) -> CrossFitted:
    """The entries with their recalibrated probabilities, each from a map that never saw its fold.

    Folds that are not in `targets` only train: their entries keep the predicted probability.
    """
    wanted = range(rows.folds) if targets is None else targets
    if recalibrator is not None:
        return rows.with_map(_by_classifier(rows, recalibrator, wanted))
    if rows.columns <= 2:
        from calibrant.numerics.smoothers import cross_fitted

        positive = rows.information * rows.observed
        g = cross_fitted(rows.predicted[:, -1], rows.fold, positive, rows.information - positive, targets=wanted)
        return rows.with_map(g if rows.columns == 1 else np.stack([1 - g, g], axis=1))
    from calibrant.numerics.multiclass_map import cross_fitted as cross_fitted_vectors

    group = None if rows.cluster is None else np.unique(rows.cluster, return_inverse=True)[1].reshape(-1)
    return rows.with_map(
        cross_fitted_vectors(rows.predicted, rows.fold, rows.observed, rows.information, targets=wanted, group=group)
    )


def recalibrator_name(recalibrator: Any, columns: int) -> str:
    """The map in words."""
    if recalibrator is not None:
        return repr(recalibrator).split("\n")[0]
    return "averaged smoothers" if columns <= 2 else "conditional logit"


def _weighted_rows(
    predicted: Reals, observed: NDArray[Any], weight: Floats, fold: Codes, cluster: NDArray[Any] | None
) -> CrossFitted:
    """One entry per row that has weight."""
    some = weight > 0
    every = CrossFitted(
        predicted, observed, weight, weight**2, fold, int(some.sum()), cluster, np.arange(len(weight), dtype=np.intp)
    )
    return every if some.all() else every.take(some)


def _cells(score: Floats, counts: Floats, scale: Floats | None) -> CrossFitted:
    """Entries of one outcome each from counts (folds, 2, cells); `scale` is the mean square of weight per weight."""
    fold, outcome, cell = np.nonzero(counts)
    weight = counts[fold, outcome, cell]
    squares = weight if scale is None else weight * scale[cell]
    return CrossFitted(score[cell][:, None], outcome.astype(np.float64), weight, squares, fold, round(weight.sum()))


def _folds(
    order: NDArray[np.intp], weight: Floats, sizes: Sequence[float], seed: Seed, group: NDArray[Any] | None
) -> NDArray[np.intp]:
    """Fold of each row, none of them empty; dealt to the rows that have weight, in this order."""
    order = order[weight[order] > 0]
    dealt = fold_of_rows(len(order), sizes, seed=seed, cluster=None if group is None else group[order])
    if dealt.max() + 1 < len(sizes):
        what = "rows" if group is None else "groups"
        message = f"{len(sizes)} folds need at least as many {what} that have weight, got {dealt.max() + 1}."
        raise InvalidPredictions(message)
    fold = np.zeros(len(weight), np.intp)
    fold[order] = dealt
    return fold


def _by_classifier(rows: CrossFitted, recalibrator: Any, targets: Sequence[int]) -> Floats:
    """Fit a clone on the other folds, with weights only where rows differ in weight."""
    result = rows.predicted.astype(np.float64)
    labels = rows.observed.astype(np.intp)
    weighted = not np.all(rows.weight == rows.weight[0])
    for k in targets:
        own = rows.fold == k
        model, options = _fresh(recalibrator), _weights(recalibrator, rows.take(~own)) if weighted else {}
        model = model.fit(rows.predicted[~own], labels[~own], **options)
        result[own] = _columns(model, rows.predicted[own])
    return result


def _weights(recalibrator: Any, rows: CrossFitted) -> dict[str, Any]:
    """What `fit` is told of the weights: maps of this package also how many rows they stand for, which cells pool."""
    from sklearn.utils.validation import has_fit_parameter

    if not has_fit_parameter(recalibrator, "effective_n"):
        return {"sample_weight": rows.weight}
    mass = Mass(float(rows.weight.sum()), float(rows.weight_squares.sum()))
    return {"sample_weight": rows.weight, "effective_n": mass.effective_n}


def _fresh(recalibrator: Any) -> Any:
    """An unfitted copy of a classifier; a deep copy of what scikit-learn cannot clone."""
    if hasattr(recalibrator, "get_params"):
        from sklearn.base import clone

        return clone(recalibrator)
    if not (hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")):
        message = f"recalibrator must have fit and predict_proba, got {type(recalibrator).__name__}."
        raise TypeError(message)
    from copy import deepcopy

    return deepcopy(recalibrator)


def _columns(model: Any, scores: Reals) -> Floats:
    """Predicted probabilities with one column per class of the task; a class the map never saw gets zero."""
    predicted = np.asarray(model.predict_proba(scores), dtype=np.float64)
    wide = max(scores.shape[1], 2)
    full = np.zeros((len(scores), wide))
    if predicted.ndim == 1:
        predicted = np.stack([1 - predicted, predicted], axis=1)
    classes = getattr(model, "classes_", None)
    known = np.arange(wide) if classes is None else np.asarray(classes).astype(np.intp)
    full[:, known] = predicted
    return full[:, 1:] if scores.shape[1] == 1 else full
