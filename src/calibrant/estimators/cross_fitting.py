"""Folds, maps and held-out rows: everything the variational estimator does before it measures.

Folds are shuffled and never stratified by outcome: stratified folds give every training part the class shares of
its held-out part, so that a chance excess of positives is confirmed out of fold and the estimate is no lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.common import outcome_cells
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import Seed, fold_counts, fold_of_rows
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable

#: Beyond this many binary rows the scores are counted on a fine grid first.
GRID_ROWS, GRID_CELLS = 2**16, 2**14


@dataclass(frozen=True, eq=False)
class Held:
    """Entries (a row, or many rows of one score) with their fold and, once fitted, their out-of-fold map.

    Attributes
    ----------
    stated, mapped : array (r, d)
        d = 1 for binary tasks: the probability of the event.
    outcome : array (r, d)
        One-hot for several classes, 0 or 1 for binary tasks.
    weight, squares : array (r,)
        Sum of the weights of the entry's rows and of their squares.
    fold : array (r,)
    n : int
        Number of rows.
    group : array (r,) or None
    confidence : bool
        Whether the event is "the predicted class is right", so that the accuracy decides what is overconfident.
    """

    stated: Floats
    outcome: Floats
    weight: Floats
    squares: Floats
    fold: NDArray[np.intp]
    n: int
    group: NDArray[Any] | None = None
    mapped: Floats | None = None
    confidence: bool = False

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    @property
    def information(self) -> Floats:
        """Weights scaled to Kish's effective number of rows, which is what a likelihood should see."""
        return self.weight * (self.weight.sum() / self.squares.sum())

    def with_map(self, mapped: Floats) -> Held:
        """The same entries with their out-of-fold probabilities."""
        return replace(self, mapped=mapped.reshape(self.stated.shape))

    def take(self, which: Any) -> Held:
        """Some of the entries."""
        arrays: dict[str, Any] = {
            name: getattr(self, name)[which]
            for name in ("stated", "outcome", "weight", "squares", "fold", "group", "mapped")
            if getattr(self, name) is not None
        }
        return replace(self, **arrays)


def held_binary(data: Binary, sizes: Sequence[float], seed: Seed) -> Held:
    """Binary rows with folds. Rows are put in order first, so that the result does not depend on theirs."""
    if len(data) > GRID_ROWS and data.weight is None and data.group is None:
        return held_table(BinTable.of(data, HybridGrid(GRID_CELLS)), sizes, seed)
    n = len(data)
    score, y = data.y_prob.astype(np.float64), data.y_true.astype(np.float64)
    weight = np.ones(n) if data.weight is None else data.weight
    order = np.lexsort((weight, y, score))
    fold = np.empty(n, np.intp)
    fold[order] = _folds(n, sizes, seed, None if data.group is None else data.group[order])
    some = weight > 0
    held = Held(score[:, None], y[:, None], weight, weight**2, fold, int(some.sum()), data.group)
    return held if some.all() else held.take(some)


def held_multiclass(data: Multiclass, sizes: Sequence[float], seed: Seed) -> Held:
    """Rows of several classes with folds; probabilities are made to sum to 1."""
    n, k = data.y_prob.shape
    stated = data.y_prob.astype(np.float64)
    stated /= stated.sum(axis=1, keepdims=True)
    outcome = np.zeros((n, k))
    outcome[np.arange(n), data.y_true] = 1.0
    weight = np.ones(n) if data.weight is None else data.weight
    fold = _folds(n, sizes, seed, data.group)
    some = weight > 0
    held = Held(stated, outcome, weight, weight**2, fold, int(some.sum()), data.group)
    return held if some.all() else held.take(some)


def held_table(table: BinTable, sizes: Sequence[float], seed: Seed) -> Held:
    """Cells of a fine table, each dealt to the folds at random: the same as dealing its rows.

    Only for independent rows without weights; others need one table per fold.
    """
    cells = outcome_cells(table, needed_by="calibration_error")
    if not np.array_equal(cells.weight, cells.count):
        message = "A table of weighted rows cannot be dealt into folds; give a list of tables, one per fold."
        raise ValueError(message)
    if cells.n < len(sizes):
        message = f"{len(sizes)} folds need at least as many rows, got {cells.n}."
        raise InvalidPredictions(message)
    counts = fold_counts(np.stack([cells.count - cells.observed, cells.observed]), sizes, seed=seed)
    return _held_cells(cells.predicted_mean, counts, None)


def held_tables(tables: Sequence[BinTable]) -> Held:
    """One fine table per fold, as an engine makes them by grouping by fold and cell."""
    if len(tables) < 2 or not all(isinstance(table, BinTable) for table in tables):
        message = "Give at least two fine tables, one per fold."
        raise ValueError(message)
    held = []
    for k, table in enumerate(tables):
        cells = outcome_cells(table, needed_by="calibration_error")
        counts = np.stack([cells.weight - cells.observed, cells.observed])[None]
        scale = cells.weight_squares / cells.weight
        part = _held_cells(cells.predicted_mean, counts, scale)
        held.append(replace(part, fold=np.full(len(part.weight), k), n=cells.n))
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in held])
        for name in ("stated", "outcome", "weight", "squares", "fold")
    }
    return Held(n=sum(part.n for part in held), **joined)


def _held_cells(score: Floats, counts: Floats, scale: Floats | None) -> Held:
    """Entries of one outcome each from counts (folds, 2, cells); `scale` is the mean square of weight per weight."""
    fold, outcome, cell = np.nonzero(counts)
    weight = counts[fold, outcome, cell]
    squares = weight if scale is None else weight * scale[cell]
    return Held(score[cell][:, None], outcome[:, None].astype(np.float64), weight, squares, fold, round(weight.sum()))


def _folds(n: int, sizes: Sequence[float], seed: Seed, group: NDArray[Any] | None) -> NDArray[np.intp]:
    """Fold of each row, none of them empty."""
    fold = fold_of_rows(n, sizes, seed=seed, cluster=group)
    if fold.max() + 1 < len(sizes):
        what = "rows" if group is None else "groups"
        message = f"{len(sizes)} folds need at least as many {what}, got {fold.max() + 1}."
        raise InvalidPredictions(message)
    return fold


def mapped(held: Held, recalibrator: Any, *, targets: Sequence[int] | None = None) -> Held:
    """The entries with their recalibrated probabilities, each from a map that never saw its fold.

    Entries of folds that are no target keep the probability they had: they are only trained on.
    """
    wanted = range(held.folds) if targets is None else targets
    if recalibrator is not None:
        return held.with_map(_by_classifier(held, recalibrator, wanted))
    if held.stated.shape[1] <= 2:
        from calibrant.numerics.smoothers import cross_fitted

        positive = held.information * held.outcome[:, -1]
        g = cross_fitted(held.stated[:, -1], held.fold, positive, held.information - positive, targets=wanted)
        return held.with_map(g if held.stated.shape[1] == 1 else np.stack([1 - g, g], axis=1))
    from calibrant.numerics.conditional_logit import cross_fitted as cross_fitted_vectors

    labels = held.outcome.argmax(axis=1)
    return held.with_map(cross_fitted_vectors(held.stated, held.fold, labels, held.information, targets=wanted))


def name_of(recalibrator: Any, columns: int) -> str:
    """The map in words."""
    if recalibrator is not None:
        return repr(recalibrator).split("\n")[0]
    return "averaged smoothers" if columns <= 2 else "conditional logit"


def _by_classifier(held: Held, recalibrator: Any, targets: Sequence[int]) -> Floats:
    """Fit a clone on the other folds, with weights only where rows differ in weight."""
    result = held.stated.copy()
    labels = held.outcome[:, 0].astype(np.intp) if held.stated.shape[1] == 1 else held.outcome.argmax(axis=1)
    weighted = not np.all(held.weight == held.weight[0])
    for k in targets:
        own = held.fold == k
        options = {"sample_weight": held.weight[~own]} if weighted else {}
        model = _fresh(recalibrator).fit(held.stated[~own], labels[~own], **options)
        result[own] = _columns(model, held.stated[own])
    return result


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


def _columns(model: Any, scores: Floats) -> Floats:
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
