"""RecalibratedClassifier where people use CalibratedClassifierCV, and how weights reach the classifier inside."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_validate, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from calibrant.integrations.sklearn import EXPECTED_FAILED_CHECKS, RecalibratedClassifier, make_scorers
from calibrant.integrations.sklearn.classifier import weight_parameter
from calibrant.recalibrate import Auto, Beta, Identity, Isotonic, OneVsRest, Platt, Temperature
from tests.integrations.sklearn.classified_rows import rows


@pytest.mark.parametrize("ensemble", [True, False])
def test_the_identity_leaves_what_scikit_learn_averages(ensemble):
    X, y = rows()
    ours = RecalibratedClassifier(GaussianNB(), Identity(), cv=3, ensemble=ensemble).fit(X, y)
    if ensemble:
        models = [GaussianNB().fit(X[train], y[train]) for train, _ in StratifiedKFold(3).split(X, y)]
        expected = np.mean([model.predict_proba(X) for model in models], axis=0)
    else:
        expected = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-12)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_isotonic_maps_agree_with_calibrated_classifier_cv(ensemble, classes):
    X, y = rows(classes)
    ours = RecalibratedClassifier(GaussianNB(), OneVsRest(Isotonic(allow_certainty=True)), cv=3, ensemble=ensemble).fit(
        X, y
    )
    peer = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3, ensemble=ensemble).fit(X, y)
    assert np.abs(ours.predict_proba(X) - peer.predict_proba(X)).mean() < 0.01


def test_it_repairs_naive_bayes():
    X, y = rows(n=3000)
    X, new, y, truth = train_test_split(X, y, test_size=0.5, random_state=0)
    plain = GaussianNB().fit(X, y).predict_proba(new)
    fixed = RecalibratedClassifier(GaussianNB()).fit(X, y)
    assert log_loss(truth, fixed.predict_proba(new)) < log_loss(truth, plain) - 0.02
    assert fixed.score(new, truth) > 0.7


def test_a_classifier_without_probabilities_gives_logits():
    X, y = rows(3)
    fixed = RecalibratedClassifier(RidgeClassifier(), Temperature()).fit(X, y)
    q = fixed.predict_proba(X)
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)
    assert fixed.pairs_[0][1].input == "logits"
    binary = RecalibratedClassifier(LinearSVC(), Platt()).fit(X, y > 0)
    assert (binary.predict(X) == (y > 0)).mean() > 0.75


def test_a_fitted_classifier_is_taken_as_it_is():
    X, y = rows(3)
    model = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    prefit = RecalibratedClassifier(model, Temperature(), cv="prefit").fit(X[300:], y[300:])
    expected = Temperature().fit(model.predict_proba(X[300:]), y[300:]).predict_proba(model.predict_proba(X))
    np.testing.assert_allclose(prefit.predict_proba(X), expected)
    frozen = pytest.importorskip("sklearn.frozen")
    again = RecalibratedClassifier(frozen.FrozenEstimator(model), Temperature()).fit(X[300:], y[300:])
    np.testing.assert_allclose(again.predict_proba(X), expected)
    with pytest.raises(NotFittedError):
        RecalibratedClassifier(GaussianNB(), cv="prefit").fit(X, y)


def test_a_split_that_misses_a_class_keeps_its_column():
    X, y = rows(3)
    y = np.where((y == 2) & (np.arange(len(y)) >= 200), 1, y)  # class 2 lives in the first third only
    names = np.array(["ant", "bee", "cow"])[y]
    thirds = [
        (np.flatnonzero(np.arange(600) // 200 != k), np.flatnonzero(np.arange(600) // 200 == k)) for k in range(3)
    ]
    for ensemble in (True, False):
        fixed = RecalibratedClassifier(GaussianNB(), Temperature(), cv=thirds, ensemble=ensemble).fit(X, names)
        q = fixed.predict_proba(X)
        assert q.shape == (600, 3)
        assert np.isfinite(q).all()
        assert set(fixed.predict(X)) <= set(names)


def test_weights_groups_and_fit_parameters_reach_where_they_belong():
    X, y = rows()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    weighted = RecalibratedClassifier(LogisticRegression(), Beta(), cv=3).fit(X, y, sample_weight=weight)
    plain = RecalibratedClassifier(LogisticRegression(), Beta(), cv=3).fit(X, y)
    assert np.abs(weighted.predict_proba(X) - plain.predict_proba(X)).max() > 1e-3
    grouped = RecalibratedClassifier(GaussianNB(), Beta(), cv=GroupKFold(3))
    grouped.fit(X, y, groups=np.arange(len(y)) % 7)
    passed = RecalibratedClassifier(LogisticRegression(), Beta(), cv=3).fit(X, y)
    assert len(passed.pairs_) == len(grouped.pairs_) == 3


@pytest.mark.no_cover
@pytest.mark.parametrize("recalibrator", [None, Platt()], ids=repr)
def test_it_is_a_scikit_learn_estimator(recalibrator):
    """With the default map all but the checks that are published, with a reason, as not passed."""
    expected = EXPECTED_FAILED_CHECKS if recalibrator is None else {}
    model = RecalibratedClassifier(LogisticRegression(), recalibrator, cv=2)
    checks = check_estimator(model, on_skip=None, expected_failed_checks=expected)  # raises where another fails
    assert {check["check_name"] for check in checks if check["status"] == "xfail"} == set(expected)
    assert sum(check["status"] == "passed" for check in checks) > 40


def test_a_map_of_one_event_serves_several_classes_one_against_the_rest():
    X, y = make_classification(300, n_classes=3, n_informative=5, random_state=0)
    for ensemble in (True, False):
        models = [
            RecalibratedClassifier(GaussianNB(), one, cv=3, ensemble=ensemble).fit(X, y)
            for one in (Platt(), OneVsRest(Platt()))
        ]
        np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
        assert models[0].recalibrator.get_params() == Platt().get_params()


def test_it_is_searched_cloned_and_piped():
    X, y = rows()
    model = make_pipeline(StandardScaler(), RecalibratedClassifier(GaussianNB(), Platt(), cv=3))
    search = GridSearchCV(
        clone(model),
        {"recalibratedclassifier__recalibrator": [Platt(), Beta()]},
        scoring=make_scorers()["neg_log_loss"],
        cv=2,
    )
    assert search.fit(X, y).best_score_ < 0


def test_a_recalibrated_classifier_reports_on_rows_it_did_not_see():
    X, y = make_classification(400, random_state=0)
    model = RecalibratedClassifier(GaussianNB(), Beta(), cv=2)
    found = model.report(X, np.array(["no", "yes"])[y], folds=2, title="Bayes")
    assert (found.n, found.title) == (400, "Bayes")


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
