"""Calibration errors and proper scores as scorers of scikit-learn, from the probabilities or decision values it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import MetadataRequest

from calibrant.data.predictions import Binary, Multiclass
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate


def scores_of(classifier: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Probabilities, else decision values, with a column for each of `classes`, also for those a split did not hold."""
    if not hasattr(classifier, "predict_proba"):
        values = np.asarray(classifier.decision_function(X), dtype=np.float64)
        absent = float(np.min(values, initial=0.0)) - 50.0
    else:
        values, absent = np.asarray(classifier.predict_proba(X), dtype=np.float64), 0.0
        values = np.clip(values, 0.0, 1.0)  # forests and boosters overshoot by rounding
    if len(classifier.classes_) == len(classes):
        return values
    if values.ndim == 1:
        values = np.stack([np.zeros(len(values)), values], axis=1)
    wide = np.full((len(values), len(classes)), absent)
    wide[:, np.searchsorted(classes, classifier.classes_)] = values
    return wide


def task_of(labels: NDArray[Any], p: Floats, classes: NDArray[Any], weight: Any) -> Binary | Multiclass:
    """The event of the second of two classes, or all of more."""
    if len(classes) == 2:
        return Binary(labels == classes[1], p[:, 1], weight=weight)
    return Multiclass(labels, p, classes=classes.tolist(), weight=weight)


@dataclass(frozen=True)
class Scorer:
    """Minus a calibration error or proper score of the predicted probabilities, as scikit-learn's tools want it.

    Binary errors are those of the second of two classes, and of the predicted class (top label) of more;
    proper scores see all classes.

    Parameters
    ----------
    name : str
    measure : callable
        From predictions to an `Estimate`, e.g. `calibrant.ece`.
    whole : bool
        Whether the measure takes all classes.
    weighted : bool, str or None
        The request of metadata routing for `sample_weight`; see `set_score_request`.

    Examples
    --------
    >>> import calibrant as cal
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> scorer = Scorer("neg_brier", cal.brier, whole=True)
    >>> round(scorer(LogisticRegression().fit(X, y), X, y), 3)
    -0.092
    """

    name: str
    measure: Callable[..., Estimate]
    whole: bool
    weighted: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the measure: greater is better."""
        p = np.clip(np.asarray(estimator.predict_proba(X), dtype=np.float64), 0.0, 1.0)
        data = task_of(np.asarray(y), p, np.asarray(estimator.classes_), sample_weight)
        if isinstance(data, Multiclass) and not self.whole:
            data = data.top_label()
        return -float(self.measure(data))

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """A scorer that requests weights, or declines them, if scikit-learn's metadata routing is enabled.

        True requests `sample_weight`, False declines it, and a string requests it under another name. With None, the
        default of scikit-learn, weights raise an error.
        """
        return replace(self, weighted=sample_weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """What this scorer requests."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self.weighted)
        return request


def make_scorers() -> dict[str, Scorer]:
    """Scorers by name for `cross_validate`, `GridSearchCV` and the like; greater is better.

    "neg_calibration_error", "neg_ece", "neg_debiased_ece", "neg_sweep_ece", "neg_brier" and "neg_log_loss": give the
    whole dictionary as ``scoring=``, or one of them, ``make_scorers()["neg_ece"]``. Choose models by "neg_log_loss" or
    "neg_brier"; the calibration errors are there to be looked at. For another measure make a `Scorer`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> X, y = make_classification(random_state=0)
    >>> scores = cross_validate(LogisticRegression(), X, y, scoring=make_scorers(), cv=2)
    >>> scores["test_neg_brier"].round(2)
    array([-0.11, -0.14])
    """
    from calibrant.estimators.binned import debiased_ece, ece, sweep_ece
    from calibrant.estimators.proper_scores import brier, log_loss
    from calibrant.estimators.recommended import calibration_error

    proper = (brier, log_loss)
    measures = {f"neg_{one.__name__}": one for one in (calibration_error, ece, debiased_ece, sweep_ece, *proper)}
    return {name: Scorer(name, one, whole=one in proper) for name, one in measures.items()}
