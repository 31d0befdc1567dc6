"""A scikit-learn classifier whose probabilities are recalibrated on held-out predictions, scorers, and a display.

Fit parameters reach its parts by metadata routing where that is enabled, else only where their meaning is clear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, assert_all_finite, indexable
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.auto import Auto
from calibrant.recalibrate.base import OneVsRest, Recalibrator
from calibrant.results.estimate import Estimate

if TYPE_CHECKING:
    from calibrant.reporting import Report


_IMPORTANCE = (
    "weights are importance weights: a row of weight 2 is not two rows. It stays in one fold, and the map counts "
    "Kish's effective number of rows, which priors and penalties see"
)

#: Checks of scikit-learn's `check_estimator` that `RecalibratedClassifier` does not pass with its default map, and why:
#: ``check_estimator(model, expected_failed_checks=EXPECTED_FAILED_CHECKS)``. With maps
#: that have no prior, such as `Platt()`, all pass.
EXPECTED_FAILED_CHECKS = {
    f"check_sample_weight_equivalence_on_{kind}_data": _IMPORTANCE for kind in ("dense", "sparse")
}


def weight_parameter(estimator: Any) -> str:
    """The name by which weights reach a classifier without routing: its own or, in a pipeline, that of the last step.

    A `ValueError` where there is none: fitting it without weights would be another model than the one asked for.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_parameter(last)}"
    kind = type(estimator).__name__
    return fail(
        f"sample_weight cannot be passed on: {kind}.fit takes no weights. Fit without sample_weight; or fit the "
        "classifier yourself and give it as FrozenEstimator, so that only the map is weighted; or let scikit-learn "
        "route weights, with set_config(enable_metadata_routing=True) and the set_fit_request of each step.",
        ValueError,
    )


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities pass through a map that was fitted to held-out predictions.

    Replaces scikit-learn's `CalibratedClassifierCV`, with any map of `calibrant.recalibrate`.

    Parameters
    ----------
    estimator : classifier
        Its `predict_proba` gives the scores; without one, its `decision_function`, as logits.
    recalibrator : Recalibrator, optional
        The map; `Auto()` by default. A binary map is wrapped in `OneVsRest` if there are more than two classes.
        `FeatureMap()` also gets the features of the classifier (two classes only).
    cv : int, splitter, iterable of splits, or "prefit"
        How rows are held out. "prefit" takes the estimator as it is, fitted, and all rows given for the map.
    ensemble : bool
        If true, each split yields a classifier with its own map, and their probabilities are averaged. If false, one
        map is fitted to the held-out predictions of all splits, and one classifier to all rows.
    n_jobs : int, optional
        How many splits are fitted at once, as in scikit-learn: None is one, -1 as many as there are processors.

    Attributes
    ----------
    classes_ : array
    pairs_ : list of (classifier, map)

    Notes
    -----
    `sample_weight` is always passed to the map. It is also passed to the classifier (for a pipeline, to its last step);
    a classifier that accepts no weights raises an error. With scikit-learn's metadata routing, the classifier (each
    step of a pipeline) and the splitter get what they request; an error is raised if one that accepts weights has
    neither requested nor declined them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.recalibrate import Beta
    >>> X, y = make_classification(random_state=0)
    >>> RecalibratedClassifier(GaussianNB(), Beta()).fit(X, y).predict_proba(X[:2]).round(1)
    array([[0.9, 0.1],
           [0.8, 0.2]])
    """

    classes_: NDArray[Any]
    pairs_: list[tuple[Any, Recalibrator]]

    def __init__(
        self,
        estimator: Any,
        recalibrator: Recalibrator | None = None,
        *,
        cv: Any = 5,
        ensemble: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any) -> Self:
        """Fit classifier and map on parts of the data that do not overlap.

        Parameters
        ----------
        X, y
            Features and labels.
        sample_weight : array, optional
            Reaches the map and the classifier: see the notes of the class.
        groups : array, optional
            Of the splitter.
        **fit_params
            Of the classifier.
        """
        from sklearn.utils.multiclass import check_classification_targets

        if y is None:
            fail("RecalibratedClassifier.fit requires y to be passed, but the target y is None.", ValueError)
        X, y, groups = indexable(X, y, groups)
        labels = np.asarray(y)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        weight = validation.weights("sample_weight", sample_weight, length=len(labels))
        if self._is_fitted():
            check_is_fitted(self.estimator)
            self.classes_ = self.estimator.classes_
            rows = _TrainingRows(X, labels, weight, {})
            self.pairs_ = [(self.estimator, self._map(self.estimator, rows, np.arange(len(labels))))]
        else:
            self.classes_ = np.unique(labels)
            params, split_params = self._params_of_parts(weight, groups, fit_params)
            rows = _TrainingRows(X, labels, weight, params)
            splits = list(check_cv(self.cv, labels, classifier=True).split(X, labels, **split_params))
            if self.ensemble:
                self.pairs_ = Parallel(n_jobs=self.n_jobs)(delayed(self._pair)(rows, *split) for split in splits)
            else:
                self.pairs_ = [self._single(rows, splits)]
        first = self.pairs_[0][0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Recalibrated probabilities, one column per class."""
        check_is_fitted(self)
        total: Floats = np.zeros(1)
        for classifier, recalibrator in self.pairs_:
            scores = scores_of(classifier, X, self.classes_)
            total = total + recalibrator.predict_proba(scores, **_features(recalibrator, X))
        return total / len(self.pairs_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the highest recalibrated probability."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def report(
        self, X: Any, y: Any, sample_weight: Any = None, *, by: Any = None, title: str | None = None, folds: Any = 5
    ) -> Report:
        """The `calibrant.report` of this classifier on rows it did not see.

        Classifier and maps are fitted anew on all folds but one, as often as there are folds; with ``cv="prefit"`` the
        fitted classifier predicts all rows, which should then be new to it.
        """
        from calibrant.reporting import report

        X, y = indexable(X, y)
        labels = np.asarray(y)
        weight = validation.weights("sample_weight", sample_weight, length=len(labels))
        if self._is_fitted():
            classes, p = self.classes_, self.predict_proba(X)
        else:
            classes = np.unique(labels)
            p = np.zeros((len(labels), len(classes)))
            for train, held_out in check_cv(folds, labels, classifier=True).split(X, labels):
                part = None if weight is None else weight[train]
                fitted = clone(self).fit(_safe_indexing(X, train), labels[train], part)
                p[held_out] = scores_of(fitted, _safe_indexing(X, held_out), classes)
        return report(task_of(labels, p, classes, weight), by=by, title=title)

    def get_metadata_routing(self) -> MetadataRouter:
        """What is passed on where, for scikit-learn's metadata routing."""
        if self._is_fitted():
            return MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping().add(caller="fit", callee="fit")
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self).add(estimator=self.estimator, method_mapping=fit)
        return router.add(splitter=check_cv(self.cv, classifier=True), method_mapping=split)

    def _is_fitted(self) -> bool:
        """Whether the classifier is taken as it is; `FrozenEstimator` is of scikit-learn 1.6 and later."""
        return (isinstance(self.cv, str) and self.cv == "prefit") or type(self.estimator).__name__ == "FrozenEstimator"

    def _params_of_parts(
        self, weight: Floats | None, groups: Any, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Fit parameters of the classifier, and those of the splitter; with routing, by what these have requested."""
        if get_config()["enable_metadata_routing"]:
            given = {"sample_weight": weight, "groups": groups, **fit_params}
            params = process_routing(self, "fit", **{name: one for name, one in given.items() if one is not None})
            return dict(params["estimator"].fit), dict(params["splitter"].split)
        extra = {} if weight is None else {weight_parameter(self.estimator): weight}
        return fit_params | extra, {"groups": groups}

    def _pair(self, rows: _TrainingRows, train: Any, held_out: Any) -> tuple[Any, Recalibrator]:
        classifier = rows.fitted(self.estimator, train)
        return classifier, self._map(classifier, rows, held_out)

    def _single(self, rows: _TrainingRows, splits: list[Any]) -> tuple[Any, Recalibrator]:
        """One map for the held-out predictions of all splits, one classifier for all rows."""
        jobs = (delayed(rows.held_out_scores)(self.estimator, *split, self.classes_) for split in splits)
        scores = np.concatenate(Parallel(n_jobs=self.n_jobs)(jobs))
        classifier = rows.fitted(self.estimator, np.arange(len(rows.labels)))
        return classifier, self._map(classifier, rows, np.concatenate([held_out for _, held_out in splits]), scores)

    def _map(
        self, classifier: Any, rows: _TrainingRows, held_out: NDArray[np.intp], scores: Floats | None = None
    ) -> Recalibrator:
        """A map fitted to held-out scores, by default those of the classifier, that knows what these are."""
        template = Auto() if self.recalibrator is None else self.recalibrator
        if len(self.classes_) > 2 and not template._multiclass:
            template = OneVsRest(template)
        given = "probabilities" if hasattr(classifier, "predict_proba") else "logits"
        fresh: Recalibrator = clone(template).set_params(input=given)
        X = rows.features(held_out)
        scores = scores_of(classifier, X, self.classes_) if scores is None else scores
        weight = None if rows.weight is None else rows.weight[held_out]
        return fresh.fit(scores, rows.labels[held_out], weight, classes=self.classes_, **_features(fresh, X))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _features(recalibrator: Recalibrator, X: Any) -> dict[str, Any]:
    """What a map takes beside the scores: those with features take the classifier's."""
    return {"features": X} if recalibrator._uses_features else {}


@dataclass(frozen=True, eq=False)
class _TrainingRows:
    """The training data, and classifiers fitted to parts of it."""

    X: Any
    labels: NDArray[Any]
    weight: Floats | None
    fit_params: dict[str, Any]

    def features(self, rows: NDArray[np.intp]) -> Any:
        return _safe_indexing(self.X, rows)

    def fitted(self, template: Any, rows: NDArray[np.intp]) -> Any:
        """A clone of `template` fitted to some rows, and to these of fit parameters that have one value per row."""
        extra = dict(self.fit_params)
        for name, value in extra.items():
            if hasattr(value, "__len__") and not isinstance(value, str) and len(value) == len(self.labels):
                extra[name] = _safe_indexing(value, rows)
        return clone(template).fit(self.features(rows), self.labels[rows], **extra)

    def held_out_scores(
        self, template: Any, train: NDArray[np.intp], held_out: NDArray[np.intp], classes: NDArray[Any]
    ) -> Floats:
        """What a classifier fitted to some rows says about others."""
        return scores_of(self.fitted(template, train), self.features(held_out), classes)


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


class ReliabilityDisplay:
    """Reliability diagram in the manner of scikit-learn's displays, as `CalibrationDisplay` is.

    Made by `from_estimator` or `from_predictions`, it keeps what it draws, and `plot` draws it again. It is the diagram
    of `calibrant.plot.reliability_diagram`: the isotonic curve with both bands, dots with intervals, and where the
    scores lie.

    Parameters
    ----------
    data : Binary
    estimator_name : str, optional
        Title of the diagram.
    pos_label : label, optional
        The label whose probability was predicted.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
        Of the last `plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = ReliabilityDisplay.from_predictions(
    ...     ["no", "yes", "yes", "no"], [0.1, 0.8, 0.6, 0.4], pos_label="yes", name="A", ax=Figure().subplots()
    ... )
    >>> display.ax_.get_title(), display.data.y_true.tolist()
    ('A', [0, 1, 1, 0])
    """

    def __init__(self, data: Binary, *, estimator_name: str | None = None, pos_label: Any = None) -> None:
        self.data = data
        self.estimator_name = estimator_name
        self.pos_label = pos_label

    def plot(self, ax: Any = None, *, name: str | None = None, **style: Any) -> Self:
        """Draw the diagram on `ax`, or on new axes; `style` goes to `calibrant.plot.reliability_diagram`."""
        from calibrant.plot import reliability_diagram

        self.ax_ = reliability_diagram(self.data, ax=ax, **style)
        self.figure_ = self.ax_.figure
        title = self.estimator_name if name is None else name
        if title is not None:
            self.ax_.set_title(title)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The diagram of a fitted classifier of two classes, by default for the second of its `classes_`."""
        check_is_fitted(estimator)
        classes = list(estimator.classes_)
        if len(classes) != 2:
            use = "use plot.class_panels"
            fail(f"from_estimator draws classifiers of two classes, got {len(classes)}; {use}.", ValueError)
        label = classes[1] if pos_label is None else pos_label
        if label not in classes:
            fail(f"pos_label must be one of the classes {classes}, got {label!r}.", ValueError)
        if not hasattr(estimator, "predict_proba"):
            fail(f"{type(estimator).__name__} has no predict_proba; wrap it in RecalibratedClassifier.", TypeError)
        p = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, classes.index(label)]
        title = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, p, sample_weight=sample_weight, pos_label=label, name=title, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The diagram of predicted probabilities of `pos_label`, by default of the label 1."""
        labels = y_true if pos_label is None else (np.asarray(y_true) == pos_label).astype(np.int8)
        data = Binary(labels, y_prob, weight=sample_weight)
        return cls(data, estimator_name=name, pos_label=pos_label).plot(ax=ax, **style)
