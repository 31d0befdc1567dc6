"""What all recalibration maps share: validation, the classes, the Laplace mixture, tables; and maps made of other maps.

A multiclass map writes two hooks, `_fit(scores, codes, weight)` and `_predict(scores)`; a binary map writes
`_fit_cells(cells)` and `_map(scores)` and can then be fitted to a table as well. `_expressions` and `_map_expression`
are to `to_sql` and `to_onnx` what `_predict` and `_map` are to `predict_proba`; a map without them cannot be written.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data import validation
from calibrant.data.labels import Labels, class_codes, given_classes, ordered_columns
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import column_names, fail
from calibrant.numerics.acceleration import one_blas_thread
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.rows import importance_weights, weighted_rows
from calibrant.recalibrate.export import SqlMap, not_sql, predicted_expressions
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, normalised
from calibrant.recalibrate.inputs import BinomialCells, Input, Scores
from calibrant.recalibrate.persistence import Stored
from calibrant.table.bintable import BinTable

#: Scores, observed classes and weights, as `Recalibrator._fit` gets them.
Sample = tuple[Scores, Codes, Floats | None]


@dataclass(kw_only=True, eq=False, repr=False)
class Recalibrator(Stored, SqlMap, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the maps from predicted to recalibrated probabilities: a scikit-learn classifier of scores.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What the scores are. Logits are log odds (one column) or unnormalised log probabilities (K columns).
    laplace : float
        Mix the output with the uniform distribution, with the weight a / (n + 1), where a is this number and n the
        effective number of rows fitted: p' = (1 - w) p + w / K. Zero mixes nothing, one is Laplace's rule.
    clip : bool
        Clip probabilities that miss [0, 1] by at most 1e-6 instead of refusing them.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels of the columns of `predict_proba`.
    n_features_in_ : int
        Number of columns of the scores fitted.
    weight_ : float
        Effective number of rows fitted, (sum w)² / sum w²; their number, where there are no weights.

    Notes
    -----
    Weights are importance weights: multiplying all of them by a constant changes nothing, equal weights have the same
    effect as none, and rows of weight zero are ignored. The hooks get weights that are scaled to add up to the
    effective number of rows, which is what penalties, prior counts and marginal likelihoods then see.

    Examples
    --------
    >>> class Uniform(Recalibrator):
    ...     def _fit(self, scores, codes, weight): ...
    ...
    ...     def _predict(self, scores):
    ...         return np.full((len(scores), scores.classes), 1 / scores.classes)
    >>> uniform = Uniform().fit([0.2, 0.7], ["no", "yes"])
    >>> uniform.predict_proba([0.9]), uniform.transform([0.9])
    (array([[0.5, 0.5]]), array([0.5]))
    """

    #: Whether the map takes scores of any number of classes; others are wrapped in `OneVsRest`.
    _multiclass: ClassVar[bool] = True
    #: Whether `fit` and `predict_proba` take features beside the scores.
    _uses_features: ClassVar[bool] = False

    input: Input = "probabilities"
    laplace: float = 0.0
    clip: bool = False

    def fit(
        self,
        scores: ArrayLike | Predictions | BinTable,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        classes: Sequence[Hashable] | NDArray[Any] | None = None,
        effective_n: float | None = None,
    ) -> Self:
        """Fit the map to scores and observed classes.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K); or Binary, Multiclass or BinTable without `y`
            The probability (or log odds) of the second class, or one column per class.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Importance weights, in any unit.
        classes : sequence, optional
            The labels of the columns, needed only where `y` does not show all of them and they are not 0 .. K-1.
        effective_n : float, optional
            The effective number of rows behind the weights, if not (sum w)² / sum w². Where `sample_weight` counts
            how often each row occurred, it is their sum.
        """
        if isinstance(scores, BinTable):
            if y is not None or sample_weight is not None or effective_n is not None:
                fail(
                    "A table holds its outcomes and weights; fit it without y, sample_weight and effective_n.",
                    TypeError,
                )
            return self.fit_table(scores)
        checked, codes, weight, _ = self._rows_to_fit(scores, y, sample_weight, classes, effective_n)
        with one_blas_thread if checked.columns > 2 else nullcontext():
            self._fit(checked, codes, weight)
        return self

    def _rows_to_fit(
        self,
        scores: ArrayLike | Predictions,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        classes: Sequence[Hashable] | NDArray[Any] | None,
        effective_n: float | None,
    ) -> tuple[Scores, Codes, Floats | None, NDArray[np.intp] | None]:
        """Validated rows that have weight, and their numbers (None: all); sets the attributes of every map."""
        if isinstance(scores, (Binary, Multiclass)):
            classes = scores.classes if isinstance(scores, Multiclass) else (0, 1)
            y, sample_weight, scores = np.asarray(classes)[scores.y_true], scores.weight, scores.y_prob
        name = type(self).__name__
        if isinstance(scores, Predictions):
            fail(f"{name}.fit takes Binary or Multiclass predictions, with an outcome of every row, not {scores!r}.")
        if y is None:
            fail(f"{name}.fit needs scores and y: requires y to be passed, but the target y is None.")
        validation.require_aligned(y=y, scores=scores, sample_weight=sample_weight)
        checked = self._validate_scores(scores)
        labels = validation.one_dimension("y", validation.as_array("y", y), len(checked))
        codes, names = _coded(labels, checked, classes, column_names(scores) if checked.columns > 1 else None)
        weight = validation.weights("sample_weight", sample_weight, length=len(checked))
        some = None
        if weight is not None and len(kept := weighted_rows(weight)) < len(weight):
            some, checked, codes, weight = kept, checked.take(kept), codes[kept], weight[kept]
        if effective_n is not None and (weight is None or not 0 < effective_n < np.inf):
            fail(f"effective_n must be a positive number and come with sample_weight, got {effective_n!r}.", ValueError)
        weight = importance_weights(weight, effective_n)
        self.classes_ = np.asarray(names)
        self.n_features_in_ = checked.columns
        self.weight_ = float(len(checked) if weight is None else weight.sum())
        return checked, codes, weight, some

    def fit_table(self, table: BinTable) -> Self:
        """Fit the map to a binary table: its cells count as rows at their mean score. Classes are 0 and 1."""
        fail(f"{type(self).__name__} cannot be fitted to a table; fit it to scores and outcomes.", TypeError)

    def predict_proba(self, scores: ArrayLike) -> Floats:
        """Recalibrated probabilities, one column per class; rows sum to 1."""
        return self._finite(self._mixed(self._predict(self._scores_to_predict(scores))))

    def _scores_to_predict(self, scores: ArrayLike) -> Scores:
        """Validated scores of a fitted map."""
        check_is_fitted(self)
        return self._validate_scores(ordered_columns(scores, self.classes_.tolist(), name="scores"), fitted=True)

    def _finite(self, p: Floats) -> Floats:
        """The probabilities, unless one is not a number."""
        if not np.isfinite(p.sum()):
            name = f"The output of {type(self).__name__}"
            validation.require(name, p, np.isfinite(p).all(axis=1), "must be finite", remedy=" Fit the map again.")
        return p

    def transform(self, scores: ArrayLike) -> Floats:
        """Recalibrated probabilities in the shape of the scores.

        For one column, of shape (n,) or (n, 1), the probability of the second class; for K columns what `predict_proba`
        returns.
        """
        p, shape = self.predict_proba(scores), validation.as_array("scores", scores).shape
        return p if len(shape) == 2 and shape[1] > 1 else p[:, 1].reshape(shape)

    def predict_checked(self, scores: Scores) -> Floats:
        """What `predict_proba` returns, for scores that were validated before and may be shared by several maps."""
        return self._mixed(self._predict(scores))

    def predict(self, scores: ArrayLike) -> NDArray[Any]:
        """The class of the highest recalibrated probability."""
        return self.classes_[self.predict_proba(scores).argmax(axis=1)]

    @abstractmethod
    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        """Set the fitted attributes from rows whose weights, if any, are positive and add up to `self.weight_`."""

    @classmethod
    def _fit_each(cls, samples: Iterable[tuple[Self, Sample]]) -> Iterator[Self]:
        """Fit maps to a sample each, as `_fit` does; maps that are fitted faster together do that."""
        for inner, sample in samples:
            inner._fit(*sample)
            yield inner

    @abstractmethod
    def _predict(self, scores: Scores) -> Floats:
        """Probabilities of shape (n, K), before the Laplace mixture."""

    def _check_restored(self) -> None:
        """Raise unless classes, number of columns and weight are those of a fit, and all else is finite."""
        super()._check_restored()
        classes = len(np.unique(self.classes_))
        if self.classes_.shape != (classes,) or classes < 2:
            fail(f"classes_ must hold two or more different labels, got {self.classes_!r}", ValueError)
        if type(self.n_features_in_) is not int or self.n_features_in_ not in ({1, 2} if classes == 2 else {classes}):
            fail(
                f"n_features_in_ must be the number of columns of {classes} classes, got {self.n_features_in_!r}",
                ValueError,
            )
        if not self.weight_ > 0:
            fail(f"weight_ must be positive, got {self.weight_!r}", ValueError)

    def _try(self) -> None:
        """Raise unless a few scores, certain ones among them, are mapped to probabilities."""
        if self.n_features_in_ == 1:
            scores = np.array([0.0, 1e-9, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-9, 1.0])
            logits = np.linspace(-20.0, 20.0, 11)
        else:
            corners = np.eye(self.n_features_in_)[:16]
            scores = np.concatenate([corners, 0.9 * corners + 0.1 / self.n_features_in_])
            logits = 20 * scores
        p = self._tried(logits if self.input == "logits" else scores)
        if p.shape != (len(scores), len(self.classes_)):
            fail(f"it gives {p.shape[1]} probabilities for {len(self.classes_)} classes", ValueError)
        if p.min() < -1e-9 or np.abs(p.sum(axis=1) - 1).max() > 1e-6:
            fail("its results are not probabilities", ValueError)

    def _tried(self, scores: Floats) -> Floats:
        """What is predicted for a trial."""
        return self.predict_proba(scores)

    def _set_one_event(self, weight: float) -> None:
        """Attributes of every map after a fit to one column of scores with the classes 0 and 1."""
        self.classes_, self.n_features_in_, self.weight_ = np.array([0, 1]), 1, weight

    def _cells_of(self, table: BinTable | BinomialCells) -> BinomialCells:
        """The cells of a binary table; sets the attributes of every map fitted to them."""
        cells = table if isinstance(table, BinomialCells) else BinomialCells.of_table(table)
        self._set_one_event(cells.total)
        return cells

    def _mixed(self, p: Floats) -> Floats:
        """The Laplace mixture of predicted probabilities."""
        if not self.laplace:
            return p
        share = self._uniform_share()
        return (1 - share) * p + share / p.shape[1]

    def _validate_scores(self, values: ArrayLike, *, fitted: bool = False) -> Scores:
        """The scores, checked; with `fitted`, also against those of the fit."""
        name = type(self).__name__
        if not 0 <= self.laplace < np.inf:
            fail(f"laplace must be a number of at least 0, got {self.laplace!r}.", ValueError)
        scores = Scores.of(values, input=self.input, clip=self.clip)
        if fitted and scores.classes != len(self.classes_):
            fail(f"scores has {scores.columns} columns, but {name} was fitted with {self.n_features_in_}.")
        if scores.classes > 2 and not self._multiclass:
            fail(f"{name} is a binary map, got {scores.columns} columns; use OneVsRest({name}()).")
        return scores


class BinaryMap(Recalibrator):
    """Base of the maps from one probability to another, however they are fitted."""

    _multiclass = False

    def _predict(self, scores: Scores) -> Floats:
        p = self._map(scores)
        return np.stack([1 - p, p], axis=1)

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        p = self._map_expression(scores)
        return [1.0 - p, p]

    @abstractmethod
    def _map(self, scores: Scores) -> Floats:
        """Recalibrated probability of the second class."""

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        """The same as an expression."""
        raise not_sql(self)


class BinaryRecalibrator(BinaryMap):
    """Base of the binary maps. They are fitted to cells, so a table of sums serves as well as rows.

    Examples
    --------
    >>> class BaseRate(BinaryRecalibrator):
    ...     def _fit_cells(self, cells):
    ...         self.rate_ = cells.rate
    ...
    ...     def _map(self, scores):
    ...         return np.full(len(scores), self.rate_)
    >>> BaseRate().fit([0.2, 0.6, 0.7, 0.9], [0, 0, 1, 0]).predict_proba([0.9])
    array([[0.75, 0.25]])
    """

    #: Whether the map is fitted to one cell per distinct score, rising, rather than one per row.
    _distinct: ClassVar[bool] = False

    def fit_table(self, table: BinTable) -> Self:
        """Fit the map to a binary table: its cells count as rows at their mean score. Classes are 0 and 1."""
        self._fit_cells(self._cells_of(table))
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        cells = BinomialCells.of_distinct if self._distinct else BinomialCells.of_rows
        self._fit_cells(cells(scores, codes, weight))

    @abstractmethod
    def _fit_cells(self, cells: BinomialCells) -> None:
        """Set the fitted attributes."""


class Identity(Recalibrator):
    """The map that changes nothing: the reference that other maps must improve on.

    >>> Identity().fit([0.2, 0.7], [0, 1]).predict_proba([0.25])
    array([[0.75, 0.25]])
    """

    def fit_table(self, table: BinTable) -> Self:
        """Nothing is learnt but the effective number of rows."""
        self._cells_of(table)
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        """Nothing is learnt."""

    def _predict(self, scores: Scores) -> Floats:
        return scores.probabilities

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        return scores.probabilities


def _coded(
    labels: NDArray[Any], scores: Scores, classes: Sequence[Hashable] | NDArray[Any] | None, names: Labels | None
) -> tuple[Codes, Labels]:
    """Labels as column numbers, and the labels of the columns, as for `Multiclass`.

    Columns without names may also belong to any K numbers, in order, as those of a scikit-learn classifier do.
    """
    size = scores.classes
    known: Sequence[Hashable] | None = None if classes is None else given_classes(classes, size)  # type: ignore[arg-type]
    if known is None and names is None and not (labels.dtype.kind in "iu" and np.isin(labels, np.arange(size)).all()):
        distinct = [False, True] if labels.dtype.kind == "b" and size == 2 else np.unique(labels).tolist()
        known = distinct if len(distinct) == size else None
    return class_codes(labels, size, classes=known, names=names, name="y")


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsRest(Recalibrator):
    r"""One binary map per class, each fitted to "this class or another", then scaled to sum to 1.

    Two classes need one map and no scaling.

    Parameters
    ----------
    binary : binary Recalibrator
        Cloned for each class.
    input, laplace, clip
        As for all maps: see `Recalibrator`; those of `binary` are not used, except for its `laplace`.

    Attributes
    ----------
    maps_ : list
        The fitted maps.

    Examples
    --------
    >>> from calibrant.recalibrate import Platt
    >>> p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6], [0.4, 0.5, 0.1]]
    >>> OneVsRest(Platt(laplace=1)).fit(p, [0, 1, 2, 0]).predict(p)
    array([0, 1, 2, 0])
    """

    binary: Any = field(kw_only=False)

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if not isinstance(self.binary, Recalibrator):
            fail(f"OneVsRest needs a binary map, e.g. OneVsRest(Beta()); got {self.binary!r}.", TypeError)
        events = [1] if scores.classes == 2 else range(scores.classes)
        self.maps_ = list(fitted_each(self.binary, ((scores.one_vs_rest(k), codes == k, weight) for k in events)))

    def _predict(self, scores: Scores) -> Floats:
        if scores.classes == 2:
            return predicted(self.maps_[0], scores)
        p = np.stack([predicted(inner, scores.one_vs_rest(k))[:, 1] for k, inner in enumerate(self.maps_)], axis=1)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1])

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        if scores.classes == 2:
            return predicted_expressions(self.maps_[0], scores)
        p = [predicted_expressions(inner, scores.one_vs_rest(k))[1] for k, inner in enumerate(self.maps_)]
        return normalised(p)


@dataclass(kw_only=True, eq=False, repr=False)
class FromClassifier(Recalibrator):
    """Any scikit-learn classifier as a map: it is fitted to the scores as features.

    A class that the fit did not see keeps its column, with the probability 1 / (n + K).

    Parameters
    ----------
    classifier : scikit-learn classifier with `predict_proba`
    features : {"logits", "probabilities"}
        What the classifier is fitted to: log probabilities (log odds, for two classes) or probabilities.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    classifier_ : the fitted classifier
        Such a map cannot be saved as JSON.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> FromClassifier(LogisticRegression()).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]).predict([0.15, 0.85])
    array([0, 1])
    """

    classifier: Any = field(kw_only=False)
    features: Input = "logits"

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if len(np.unique(codes)) < 2:
            fail("FromClassifier needs rows of at least two classes.", ValueError)
        extra = {} if weight is None else {"sample_weight": weight}
        self.classifier_ = clone(self.classifier).fit(self._columns(scores), codes, **extra)

    def _predict(self, scores: Scores) -> Floats:
        seen = self.classifier_.predict_proba(self._columns(scores)).astype(np.float64)
        return with_missing_classes(seen, self.classifier_.classes_, len(self.classes_), self.weight_)

    def _columns(self, scores: Scores) -> Floats:
        if self.features not in ("logits", "probabilities"):
            fail(f"features must be 'logits' or 'probabilities', got {self.features!r}.", ValueError)
        if self.features == "probabilities":
            return event_or_classes(scores)
        return scores.log_odds.reshape(-1, 1) if scores.classes == 2 else scores.log_probabilities


def event_or_classes(scores: Scores) -> Floats:
    """The probability of the event as a column, or those of all classes: what a classifier reads."""
    return scores.probabilities if scores.classes > 2 else scores.probability.astype(np.float64).reshape(-1, 1)


def library_of(fitted: Recalibrator, name: str, *, extra: str) -> Any:
    """The library that a map needs, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        message = f"{type(fitted).__name__} needs {name}: pip install 'calibrant[{extra}]'."
        raise ImportError(message) from error


def with_missing_classes(p: Floats, seen: Codes, classes: int, total: float) -> Floats:
    """Probabilities of the classes a classifier has seen, spread to all: one it has not gets 1 / (n + K)."""
    every = np.zeros((len(p), classes))
    every[:, seen] = p / p.sum(axis=1, keepdims=True)
    missing = np.setdiff1d(np.arange(classes), seen)
    if len(missing):
        floor = 1 / (total + classes)
        every *= 1 - len(missing) * floor
        every[:, missing] = floor
    return every


def fitted(template: Recalibrator, scores: Scores, codes: Any, weight: Floats | None) -> Recalibrator:
    """A clone of `template` fitted to validated scores; classes are 0 .. K-1."""
    return next(fitted_each(template, [(scores, codes, weight)]))


def fitted_each(template: Recalibrator, samples: Iterable[tuple[Scores, Any, Floats | None]]) -> Iterator[Recalibrator]:
    """The same for several samples, in their order."""
    return type(template)._fit_each(_begun(template, *sample) for sample in samples)


def _begun(template: Recalibrator, scores: Scores, codes: Any, weight: Floats | None) -> tuple[Recalibrator, Sample]:
    """A clone with the attributes of every map, and what it is to be fitted to."""
    if scores.classes > 2 and not template._multiclass:
        name = type(template).__name__
        fail(f"{name} is a binary map; use OneVsRest({name}()).", ValueError)
    inner: Recalibrator = clone(template)
    inner.classes_, inner.n_features_in_ = np.arange(scores.classes), scores.columns
    inner.weight_ = float(len(scores) if weight is None else weight.sum())
    return inner, (scores, codes.astype(np.intp), weight)


def predicted(inner: Recalibrator, scores: Scores) -> Floats:
    """Probabilities of a map, its Laplace mixture included, for validated scores."""
    return inner.predict_checked(scores)
