"""Weights reach a classifier by its parameter, by the last step of a pipeline or by routing; or are refused."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant.integrations.sklearn import RecalibratedClassifier
from calibrant.integrations.sklearn.weights import weight_parameter
from calibrant.recalibrate import Auto, Platt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = (RNG.random(240) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
WEIGHT = RNG.integers(1, 5, 240).astype(float)


class Remembers(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the weights of its fit."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.seen_ = np.unique(y), sample_weight
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[:, 0]))
        return np.stack([1 - p, p], axis=1)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def seen(model):
    """The weights that the classifiers of the splits were fitted with."""
    return [getattr(pair[0], "steps", [("", pair[0])])[-1][1].seen_ for pair in model.pairs_]


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_weights_go_through_pipelines_to_the_classifier_and_to_the_map(ensemble, depth):
    classifier = Remembers()
    for _ in range(depth):
        classifier = make_pipeline(StandardScaler(), classifier)
    weighted = RecalibratedClassifier(classifier, Platt(), cv=3, ensemble=ensemble).fit(X, Y, sample_weight=WEIGHT)
    for held in seen(weighted) if depth < 2 else []:
        assert len(held) == (160 if ensemble else 240)
        assert set(held) == set(WEIGHT)
    plain = RecalibratedClassifier(classifier, Platt(), cv=3, ensemble=ensemble).fit(X, Y)
    assert weighted.pairs_[0][1].weight_ < plain.pairs_[0][1].weight_


def test_weights_through_a_pipeline_are_those_of_the_classifier_alone():
    piped = RecalibratedClassifier(make_pipeline("passthrough", LogisticRegression()), Platt(), cv=3)
    alone = RecalibratedClassifier(LogisticRegression(), Platt(), cv=3)
    found, expected = (model.fit(X, Y, sample_weight=WEIGHT).predict_proba(X) for model in (piped, alone))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(alone.fit(X, Y).predict_proba(X) - expected).max() > 1e-4


@pytest.mark.parametrize(
    "classifier", [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())]
)
def test_weights_that_a_classifier_cannot_take_are_refused_with_the_remedy(classifier):
    model = RecalibratedClassifier(classifier, Platt(), cv=3)
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no weights\. Fit without sample_weight; or"):
        model.fit(X, Y, sample_weight=WEIGHT)
    frozen = RecalibratedClassifier(FrozenEstimator(classifier.fit(X, Y)), Platt()).fit(X, Y, sample_weight=WEIGHT)
    assert frozen.pairs_[0][1].weight_ == pytest.approx(WEIGHT.sum() ** 2 / (WEIGHT**2).sum())


def test_the_name_of_the_parameter_is_that_of_the_last_step():
    assert weight_parameter(LogisticRegression()) == "sample_weight"
    nested = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression()))
    assert weight_parameter(nested) == "pipeline__logisticregression__sample_weight"


def test_routing_passes_on_what_was_requested_and_refuses_what_nobody_spoke_for(routing):
    weighted = RecalibratedClassifier(Remembers().set_fit_request(sample_weight=True), Platt(), cv=3)
    assert all(len(held) == 160 for held in seen(weighted.fit(X, Y, sample_weight=WEIGHT)))
    unweighted = RecalibratedClassifier(Remembers().set_fit_request(sample_weight=False), Platt(), cv=3)
    assert seen(unweighted.fit(X, Y, sample_weight=WEIGHT)) == [None] * 3
    assert unweighted.pairs_[0][1].weight_ < 80  # the map is weighted all the same
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        RecalibratedClassifier(Remembers(), Platt(), cv=3).fit(X, Y, sample_weight=WEIGHT)
    with pytest.raises(TypeError, match="nothing"):
        weighted.fit(X, Y, nothing=1)


def test_routing_reaches_every_step_of_a_pipeline_and_the_splitter(routing):
    scaler, last = StandardScaler().set_fit_request(sample_weight=True), LogisticRegression()
    inner = make_pipeline(scaler, last.set_fit_request(sample_weight=True))
    model = RecalibratedClassifier(inner, Platt(), cv=GroupKFold(3))
    fitted = model.fit(X, Y, sample_weight=WEIGHT, groups=np.arange(240) % 6)
    assert len(fitted.pairs_) == 3
    other = RecalibratedClassifier(inner, Platt(), cv=GroupKFold(3)).fit(X, Y, groups=np.arange(240) % 6)
    assert np.abs(fitted.pairs_[0][0][0].mean_ - other.pairs_[0][0][0].mean_).max() > 1e-6


def test_routing_goes_through_what_is_around_the_classifier(routing):
    inner = RecalibratedClassifier(Remembers().set_fit_request(sample_weight=True), Platt(), cv=3)
    outer = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), inner.set_fit_request(sample_weight=True)
    )
    outer.fit(X, Y, sample_weight=WEIGHT)
    assert all(len(held) == 160 for held in seen(outer[-1]))
    scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
    scores = cross_validate(inner, X, Y, params={"sample_weight": WEIGHT}, cv=2, scoring=scorer, error_score="raise")
    assert np.isfinite(scores["test_score"]).all()


def test_a_frozen_classifier_takes_part_in_no_routing(routing):
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    model = RecalibratedClassifier(frozen, Platt()).fit(X, Y, sample_weight=WEIGHT)
    assert model.pairs_[0][0] is frozen


@pytest.mark.parametrize("ensemble", [True, False])
def test_splits_that_are_fitted_at_once_give_the_same(ensemble):
    options = {"cv": 3, "ensemble": ensemble}
    one = RecalibratedClassifier(LogisticRegression(), Auto(), **options).fit(X, Y, sample_weight=WEIGHT)
    two = RecalibratedClassifier(LogisticRegression(), Auto(), n_jobs=2, **options).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
