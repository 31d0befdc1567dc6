r"""Cross-fitting: rows in folds, each with its probability by a map fitted on the others, and what norms make of it.

Folds are shuffled and never stratified by outcome: stratified folds give every training part the class shares of
its held-out part, so that a chance excess of positives is confirmed out of fold and the estimate is no lower bound.

Each norm, proper loss or distance turns a predicted probability f, a recalibrated one g and the outcome y into one
contribution, whose mean has the calibration error as its expectation when g is the true calibration map, and less for
any other map that was fitted on other rows:

=============  ==================================================  ===========================================
`norm`         contribution                                        calibration error
=============  ==================================================  ===========================================
p >= 1, inf    :math:`\langle u_p(g - f), y - f\rangle`            :math:`E\lVert f - E[Y|f]\rVert_p`
p >= 1, d = 1  :math:`u_p(g - f)\,(y - f)`                         :math:`(E\lvert f - E[Y|f]\rvert^p)^{1/p}`
``"squared"``  :math:`\lVert f - y\rVert^2 - \lVert g - y\rVert^2` :math:`E\lVert f - E[Y|f]\rVert_2^2`
``"kl"``       :math:`\log g_y - \log f_y`                         :math:`E\,KL(E[Y|f] \Vert f)`
`Distance`     :math:`\phi_f(g) + \langle s_f(g), y - g\rangle`    :math:`E\,\phi_f(E[Y|f])`
=============  ==================================================  ===========================================

where u_p(d) is the gradient of the p-norm at d, and zero at zero: of the vector of a row for multiclass data, and of
the function under the rows of a fold for one number (d = 1; see `function_gradient`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import fail
from calibrant.estimators.proper_scores import floored
from calibrant.numerics.acceleration import one_blas_thread
from calibrant.numerics.arrays import GRID_CELLS, GRID_ROWS, Codes, Floats, Reals
from calibrant.numerics.random_draws import Seed, fold_counts, fold_of_rows
from calibrant.numerics.rows import Mass, row_blocks
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable, outcome_cells


@dataclass(frozen=True)
class Distance:
    r"""A user-defined convex distance from the predicted probability (Proposition 2 of the paper).

    For every predicted f, :math:`q \mapsto \phi_f(q)` must be convex with :math:`\phi_f(f) = 0` as its minimum, and
    `grad` a subgradient of it that is zero at q = f (up to a multiple of the vector of ones, for multiclass data). Both
    are checked at the data's own probabilities when the distance is used.

    Parameters
    ----------
    phi : callable (f, q) -> array (n,)
        `f` and `q` have shape (n, d): d classes, or one column P(Y = 1) for binary predictions.
    grad : callable (f, q) -> array (n, d)
        Derivative of `phi` by q.
    name : str
    bound : float, optional
        The largest size of a contribution, :math:`\lvert\phi_f(q) + \langle s_f(q), y - q\rangle\rvert`, if known:
        the finite-sample lower confidence bound needs it.

    Examples
    --------
    Over-forecasting only:

    >>> import numpy as np
    >>> over = Distance(lambda f, q: np.maximum(f - q, 0)[:, 0], lambda f, q: -(q < f).astype(float), name="over")
    >>> over.name
    'over'
    """

    phi: Callable[[Floats, Floats], Floats]
    grad: Callable[[Floats, Floats], Floats]
    name: str = "distance"
    bound: float | None = None


#: How far from 0 a distance of a prediction from itself may be, by rounding.
#: Derived: the root of the rounding of double precision, which differences such as 1 - sqrt(1 - x) have.
TOLERANCE = 1e-8

Norm = float | Literal["squared", "kl"] | Distance
"""An exponent of at least 1 (infinity allowed), a proper loss by name, or a `Distance`."""


def checked_norm(norm: Norm) -> Norm:
    """`norm` itself if it is one, an exponent as a float."""
    if isinstance(norm, Distance) or (isinstance(norm, str) and norm in ("squared", "kl")):
        return norm
    if isinstance(norm, bool) or not isinstance(norm, (int, float, np.integer, np.floating)) or not norm >= 1:
        fail(f"norm must be a number of at least 1, math.inf, 'squared', 'kl' or a Distance, got {norm!r}.", ValueError)
    return float(norm)


def finite_norm(norm: float) -> float:
    """`norm` itself, unless it is infinite: no mean over rows is the largest gap."""
    if math.isinf(norm):
        fail("The largest gap of a single probability is not a mean over rows: use mce, or a finite norm.", ValueError)
    return float(norm)


def norm_label(norm: Norm) -> str:
    """The norm in words: L1, L2, Linf, squared, KL, or the name of the distance."""
    if isinstance(norm, Distance):
        return norm.name
    if isinstance(norm, str):
        return "KL" if norm == "kl" else norm
    return f"L{norm:g}"


def contributions(
    norm: Norm, predicted: Floats, recalibrated: Floats, outcome: Floats, *, floor: float = 0.0
) -> Floats:
    """One contribution per row; all arrays have shape (n, d), with d = 1 for binary. Rows with g = f give zero.

    With d = 1 every exponent gives that to E|f - E[Y|f]|, see `function_gradient`. `floor` concerns "kl" only.
    """
    if isinstance(norm, Distance):
        _require_distance(norm, predicted)
        _require_convex(norm, predicted, recalibrated)
        distance, slope = _evaluated(norm, predicted, recalibrated)
        return distance + np.einsum("nd,nd->n", slope, outcome - recalibrated)
    if norm == "squared":
        return np.einsum("nd,nd->n", predicted - recalibrated, predicted + recalibrated - 2 * outcome)
    if norm == "kl":
        return _log_gain(floored(predicted, floor), floored(recalibrated, floor), outcome)
    return np.einsum("nd,nd->n", norm_gradient(recalibrated - predicted, float(norm)), outcome - predicted)


def _evaluated(norm: Distance, predicted: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The distance and its derivative at `q`, in the shapes that are promised."""
    distance = np.asarray(norm.phi(predicted, q), dtype=np.float64)
    slope = np.asarray(norm.grad(predicted, q), dtype=np.float64)
    if distance.shape != (len(predicted),):
        fail(f"Distance {norm.name!r}: phi must return one number per row, got shape {distance.shape}.", ValueError)
    if slope.shape != predicted.shape:
        wrong = f"grad must return an array of shape {predicted.shape}, got {slope.shape}"
        fail(f"Distance {norm.name!r}: {wrong}.", ValueError)
    return distance, slope


def _require_distance(norm: Distance, predicted: Floats) -> None:
    """Refuse what is not 0 where the predictions are right: the conditions of Proposition 2 at q = f."""
    inside = predicted[((predicted > 0) & (predicted < 1)).all(axis=1)]  # a logarithm has no derivative at 0
    distance, slope = _evaluated(norm, inside, inside)
    if predicted.shape[1] > 1:  # probabilities add up to 1, so that a multiple of the vector of ones does nothing
        slope = slope - slope.mean(axis=1, keepdims=True)
    for what, values in (
        ("phi(f, f) must be 0, the distance of a prediction from itself", distance[:, None]),
        ("grad(f, f) must be 0 (for multiclass data, a multiple of the vector of ones)", slope),
    ):
        wrong = ~(np.abs(values) <= TOLERANCE).all(axis=1)
        if wrong.any():
            first = int(np.argmax(wrong))
            found = f"{values[first, 0]:.6g}" if values.shape[1] == 1 else f"{values[first].tolist()}"
            fail(f"Distance {norm.name!r}: {what}; at f = {inside[first].tolist()} it is {found}.", ValueError)


def _require_convex(norm: Distance, predicted: Floats, recalibrated: Floats) -> None:
    """Refuse a distance below the tangent of another point, be it a recalibrated or another row's prediction."""
    third = len(predicted) // 3
    points = [recalibrated, *(np.roll(predicted, shift, axis=0) for shift in (third + 1, 2 * third + 1))]
    inner = np.logical_and.reduce([((q > 0) & (q < 1)).all(axis=1) for q in (predicted, *points)])
    f, points = predicted[inner], [q[inner] for q in points]
    found = [_evaluated(norm, f, q) for q in points]
    for (there, _), to in zip(found, points, strict=True):
        for (here, slope), at in zip(found, points, strict=True):
            tangent = here + np.einsum("nd,nd->n", slope, to - at)
            below = there < tangent - TOLERANCE * (1 + np.abs(tangent))
            if below.any():
                i = int(np.argmax(below))
                place = f"at f = {f[i].tolist()}, phi is {there[i]:.6g} at q = {to[i].tolist()}"
                line = f"{tangent[i]:.6g} of the tangent at q = {at[i].tolist()}"
                wrong = f"phi must be convex in q, and grad its derivative; {place}, below {line}"
                fail(f"Distance {norm.name!r}: {wrong}.", ValueError)


def norm_gradient(d: Floats, p: float) -> Floats:
    """Gradient of the p-norm at each row of `d`, zero where the row is; the first of equal maxima for infinity."""
    if d.shape[1] == 1 or p == 1:
        return np.sign(d)
    size = np.abs(d)
    largest = size.max(axis=1, keepdims=True)
    if np.isinf(p):
        chosen = np.arange(d.shape[1]) == size.argmax(axis=1)[:, None]
        return np.where(chosen, np.sign(d), 0.0)
    ratio = size / np.where(largest > 0, largest, 1.0)  # in [0, 1]: no power under- or overflows
    length = (ratio**p).sum(axis=1, keepdims=True) ** ((p - 1) / p)
    return np.sign(d) * ratio ** (p - 1) / np.where(length > 0, length, 1.0)


def function_gradient(d: Floats, p: float, weight: Floats, fold: NDArray[np.intp]) -> Floats:
    r"""Gradient of the p-norm of a function at its values `d`, under the weights of each fold; zero where d is.

    .. math:: u_i = \operatorname{sign}(d_i)\,|d_i|^{p-1} / (\mathrm{mean}_k |d|^p)^{(p-1)/p}

    with the mean over the fold k of row i. By Hölder's inequality, :math:`\mathrm{mean}_k(u\,e)` is at most the
    p-norm of e for every e, and equal to it for e = d: with u from other rows, the mean of u (y - f) has an
    expectation of at most the p-norm of the gap.
    """
    if p == 1:
        return np.sign(d)
    size = np.abs(d)
    ratio = size / (size.max() or 1.0)  # in [0, 1]: no power overflows
    total = np.bincount(fold, weight)
    mean = np.bincount(fold, weight * ratio**p) / np.where(total > 0, total, 1.0)
    length = np.where(mean > 0, mean, np.inf) ** ((p - 1) / p)
    return np.asarray(np.sign(d) * ratio ** (p - 1) / length[fold])


def size_bound(norm: Norm, columns: int) -> float | None:
    """The largest possible size of a contribution, None if there is none."""
    if isinstance(norm, Distance):
        return norm.bound
    if norm == "kl":
        return None
    return 1.0 if columns == 1 else 2.0 if norm == "squared" else 2.0 ** (1 / float(norm))


def _log_gain(predicted: Floats, recalibrated: Floats, outcome: Floats) -> Floats:
    """Gain in log score: infinite where an outcome of predicted probability 0 occurred, zero where g = f."""
    if predicted.shape[1] == 1:
        predicted, recalibrated, outcome = (np.hstack([1 - a, a]) for a in (predicted, recalibrated, outcome))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where((outcome > 0) & (predicted != recalibrated), np.log(recalibrated) - np.log(predicted), 0.0)
        return np.einsum("nd,nd->n", outcome, gain)


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Entries (a row, or many rows of one score and outcome) with their fold and, once fitted, their out-of-fold map.

    Probabilities have shape (r, d), with d = 1 for binary tasks; `weight` and `weight_squares` are sums over the rows
    of an entry. Rows of one cluster are in one fold; `row` is None for cells of a table. `confidence`: the event is
    "the predicted class is right", and the accuracy decides what is overconfident.
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
            fail("These rows have no map yet.", RuntimeError)
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

    In an order of their own, so that no result depends on that of the rows; or in the one given.
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


def folds_of(rows: CrossFitted, sizes: Sequence[float], seed: Seed) -> Codes:
    """Another division into folds of multiclass rows."""
    return _folds(np.arange(len(rows.weight)), rows.weight, sizes, seed, rows.cluster)


def _own_order(data: Multiclass, weight: Floats) -> NDArray[np.intp]:
    """Rows by squared probabilities, which do not depend on class names; labels only tell equal rows apart."""
    n, k = data.y_prob.shape
    squares, others = np.empty(n), np.empty(n)
    along = np.sqrt(np.arange(2, k + 2))
    for rows in row_blocks(n, k):
        part = data.y_prob[rows].astype(np.float64)
        squares[rows], others[rows] = np.einsum("nk,nk->n", part, part), part @ along
    return np.lexsort((weight, data.y_true, others, squares.round(12)))


def table_cells(table: BinTable, sizes: Sequence[float], seed: Seed) -> CrossFitted:
    """Cells of a fine table of independent rows without weights, the rows of each assigned to folds at random."""
    cells = outcome_cells(table, needed_by="variational_error")
    if not np.array_equal(cells.weight, cells.count):
        fail("A table of weighted rows cannot be divided into folds; give a list of tables, one per fold.", ValueError)
    if cells.n < len(sizes):
        fail(f"{len(sizes)} folds need at least as many rows, got {cells.n}.")
    counts = fold_counts(np.stack([cells.count - cells.observed, cells.observed]), sizes, seed=seed)
    return _cells(cells.predicted_mean, counts, None)


def tables_by_fold(tables: Sequence[BinTable]) -> CrossFitted:
    """One fine table per fold, as an engine makes them by grouping by fold and cell."""
    if len(tables) < 2 or not all(isinstance(table, BinTable) for table in tables):
        fail("Give at least two fine tables, one per fold.", ValueError)
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
    """The entries with probabilities of maps that never saw their fold; folds that are not in `targets` only train."""
    wanted = range(rows.folds) if targets is None else targets
    if recalibrator is not None:
        return rows.with_map(_by_classifier(rows, recalibrator, wanted))
    if rows.columns <= 2:
        from calibrant.numerics.smoothers import cross_fitted

        positive = rows.information * rows.observed
        g = cross_fitted(rows.predicted[:, -1], rows.fold, positive, rows.information - positive, targets=wanted)
        return rows.with_map(g if rows.columns == 1 else np.stack([1 - g, g], axis=1))
    return divided(rows, [rows.fold], None, targets=targets)[0]


@one_blas_thread
def divided(
    rows: CrossFitted, folds: Sequence[Codes], recalibrator: Any, *, targets: Sequence[int] | None = None
) -> list[CrossFitted]:
    """The entries in several divisions into folds, each recalibrated; what no fold decides is computed once."""
    runs = [replace(rows, fold=fold) for fold in folds]
    if recalibrator is not None or rows.columns <= 2:
        return [recalibrated(run, recalibrator, targets=targets) for run in runs]
    from calibrant.numerics.multiclass_map import cross_fitted

    group = None if rows.cluster is None else np.unique(rows.cluster, return_inverse=True)[1]
    found = cross_fitted(rows.predicted, np.stack(folds), rows.observed, rows.information, targets=targets, group=group)
    return [run.with_map(q) for run, q in zip(runs, found, strict=True)]


def recalibrator_name(recalibrator: Any, columns: int) -> str:
    """The map in words."""
    if recalibrator is not None:
        return repr(recalibrator).split("\n")[0]
    return "averaged smoothers" if columns <= 2 else "conditional logit"


def _weighted_rows(
    predicted: Reals, observed: NDArray[Any], weight: Floats, fold: Codes, cluster: NDArray[Any] | None
) -> CrossFitted:
    """One entry per row that has weight."""
    some, row = weight > 0, np.arange(len(weight))
    every = CrossFitted(predicted, observed, weight, weight**2, fold, int(some.sum()), cluster, row)
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
        fail(f"{len(sizes)} folds need at least as many {what} that have weight, got {dealt.max() + 1}.")
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

    mass = Mass(float(rows.weight.sum()), float(rows.weight_squares.sum()))
    told = {"sample_weight": rows.weight, "effective_n": mass.effective_n}
    return told if has_fit_parameter(recalibrator, "effective_n") else {"sample_weight": rows.weight}


def _fresh(recalibrator: Any) -> Any:
    """An unfitted copy of a classifier; a deep copy of what scikit-learn cannot clone."""
    if hasattr(recalibrator, "get_params"):
        from sklearn.base import clone

        return clone(recalibrator)
    if not (hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")):
        fail(f"recalibrator must have fit and predict_proba, got {type(recalibrator).__name__}.", TypeError)
    from copy import deepcopy

    return deepcopy(recalibrator)


def _columns(model: Any, scores: Reals) -> Floats:
    """Predicted probabilities with one column per class of the task; a class the map never saw gets zero."""
    predicted = np.asarray(model.predict_proba(scores), dtype=np.float64)
    full = np.zeros((len(scores), max(scores.shape[1], 2)))
    if predicted.ndim == 1:
        predicted = np.stack([1 - predicted, predicted], axis=1)
    classes = getattr(model, "classes_", None)
    full[:, slice(None) if classes is None else np.asarray(classes).astype(np.intp)] = predicted
    return full[:, 1:] if scores.shape[1] == 1 else full
