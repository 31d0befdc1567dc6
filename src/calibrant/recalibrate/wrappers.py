"""Maps made of other estimators: one map per class, and any scikit-learn classifier as a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats
from calibrant.recalibrate.base import Recalibrator, Sample
from calibrant.recalibrate.export import predicted_expressions
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, normalised
from calibrant.recalibrate.inputs import Input, Scores


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
