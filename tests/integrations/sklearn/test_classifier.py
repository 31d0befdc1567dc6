"""RecalibratedClassifier where people use CalibratedClassifierCV."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from calibrant.integrations.sklearn import RecalibratedClassifier, make_scorers
from calibrant.recalibrate import Beta, Identity, Isotonic, OneVsRest, Platt, Temperature
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


def test_it_is_a_scikit_learn_estimator():
    checks = check_estimator(
        RecalibratedClassifier(LogisticRegression(), OneVsRest(Platt()), cv=2), on_skip=None, on_fail=None
    )
    assert [check["check_name"] for check in checks if check["status"] == "failed"] == []
    assert sum(check["status"] == "passed" for check in checks) > 40


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
