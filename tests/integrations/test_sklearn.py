"""RecalibratedClassifier where people use CalibratedClassifierCV, and the scorers."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import calibrant as cal
from calibrant.integrations.sklearn import RecalibratedClassifier, make_scorers
from calibrant.recalibrate import Beta, Identity, Isotonic, OneVsRest, Platt, Temperature


def data(classes=2, n=600):
    return make_classification(n, n_informative=6, n_redundant=6, n_classes=classes, random_state=0)


@pytest.mark.parametrize("ensemble", [True, False])
def test_the_identity_leaves_what_scikit_learn_averages(ensemble):
    X, y = data()
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
    X, y = data(classes)
    ours = RecalibratedClassifier(GaussianNB(), OneVsRest(Isotonic(allow_certainty=True)), cv=3, ensemble=ensemble).fit(
        X, y
    )
    peer = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3, ensemble=ensemble).fit(X, y)
    assert np.abs(ours.predict_proba(X) - peer.predict_proba(X)).mean() < 0.01


def test_it_repairs_naive_bayes():
    X, y = data(n=3000)
    X, new, y, truth = train_test_split(X, y, test_size=0.5, random_state=0)
    plain = GaussianNB().fit(X, y).predict_proba(new)
    fixed = RecalibratedClassifier(GaussianNB()).fit(X, y)
    assert log_loss(truth, fixed.predict_proba(new)) < log_loss(truth, plain) - 0.02
    assert fixed.score(new, truth) > 0.7


def test_a_classifier_without_probabilities_gives_logits():
    X, y = data(3)
    fixed = RecalibratedClassifier(RidgeClassifier(), Temperature()).fit(X, y)
    q = fixed.predict_proba(X)
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)
    assert fixed.pairs_[0][1].input == "logits"
    binary = RecalibratedClassifier(LinearSVC(), Platt()).fit(X, y > 0)
    assert (binary.predict(X) == (y > 0)).mean() > 0.75


def test_a_fitted_classifier_is_taken_as_it_is():
    X, y = data(3)
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
    X, y = data(3)
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
    X, y = data()
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
    X, y = data()
    model = make_pipeline(StandardScaler(), RecalibratedClassifier(GaussianNB(), Platt(), cv=3))
    search = GridSearchCV(
        clone(model),
        {"recalibratedclassifier__recalibrator": [Platt(), Beta()]},
        scoring=make_scorers()["neg_log_loss"],
        cv=2,
    )
    assert search.fit(X, y).best_score_ < 0


def test_scorers_are_minus_the_measures():
    X, y = data()
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    scorers = make_scorers()
    assert scorers["neg_averaged_error"](model, X, y) == -cal.averaged_error(y, p)
    assert scorers["neg_ece"](model, X, y) == -cal.ece(y, p)
    assert scorers["neg_sweep_ece"](model, X, y) == -cal.sweep_ece(y, p)
    assert scorers["neg_debiased_ece"](model, X, y) == -cal.debiased_ece(y, p)
    assert scorers["neg_brier"](model, X, y) == -cal.brier(y, p)
    assert scorers["neg_log_loss"](model, X, y) == -cal.log_loss(y, p)
    assert cross_val_score(LogisticRegression(), X, y, scoring=scorers["neg_brier"]).shape == (5,)


def test_scorers_of_several_classes_see_the_top_label_or_all():
    X, y = data(3)
    names = np.array(["ant", "bee", "cow"])[y]
    model = LogisticRegression().fit(X, names)
    whole = cal.Multiclass(names, model.predict_proba(X), classes=["ant", "bee", "cow"])
    scorers = make_scorers()
    assert scorers["neg_brier"](model, X, names) == -cal.brier(whole)
    assert scorers["neg_ece"](model, X, names) == -cal.ece(whole.top_label())
    weight = np.arange(len(y))
    assert scorers["neg_brier"](model, X, names, sample_weight=weight) != scorers["neg_brier"](model, X, names)


def test_weights_reach_a_scorer_by_its_request():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, len(y))
    plain = make_scorers()["neg_brier"]
    model = LogisticRegression()

    def scored(scorer, name="sample_weight"):
        params = {name: weight} if name else {}
        found = cross_validate(model, X, y, scoring={"s": scorer}, cv=2, params=params, return_indices=True)
        return found["test_s"], found["indices"]

    with sklearn.config_context(enable_metadata_routing=True):
        model = model.set_fit_request(sample_weight=False)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            scored(plain)
        without, indices = scored(plain.set_score_request(sample_weight=False), None)
        weighted, _ = scored(plain.set_score_request(sample_weight=True))
        renamed, _ = scored(plain.set_score_request(sample_weight="rows"), "rows")
    for fold, (train, test) in enumerate(zip(indices["train"], indices["test"], strict=True)):
        p = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        assert without[fold] == pytest.approx(-cal.brier(y[test], p))
        assert weighted[fold] == pytest.approx(-cal.brier(cal.Binary(y[test], p, weight=weight[test])))
    np.testing.assert_array_equal(renamed, weighted)
    assert plain.weighted is None  # a request makes another scorer


def test_a_recalibrated_classifier_reports_on_rows_it_did_not_see():
    from sklearn.datasets import make_classification
    from sklearn.naive_bayes import GaussianNB

    from calibrant.integrations.sklearn import RecalibratedClassifier
    from calibrant.recalibrate import Beta

    X, y = make_classification(400, random_state=0)
    model = RecalibratedClassifier(GaussianNB(), Beta(), cv=2)
    found = model.report(X, np.array(["no", "yes"])[y], folds=2, title="Bayes")
    assert (found.n, found.title) == (400, "Bayes")


class TestReliabilityDisplay:
    """Conventions of scikit-learn's displays."""

    def test_an_estimator_is_drawn_by_its_probabilities(self):
        from matplotlib.figure import Figure
        from sklearn.linear_model import LogisticRegression

        from calibrant.integrations.sklearn import ReliabilityDisplay

        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        y = np.where(rng.random(300) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")
        model = LogisticRegression().fit(X, y)
        display = ReliabilityDisplay.from_estimator(model, X, y, ax=Figure().subplots())
        assert display.figure_ is display.ax_.figure
        assert display.ax_.get_title() == "LogisticRegression"
        np.testing.assert_allclose(display.data.y_prob, model.predict_proba(X)[:, 1])
        np.testing.assert_array_equal(display.data.y_true, y == "yes")
        other = ReliabilityDisplay.from_estimator(model, X, y, pos_label="no", ax=Figure().subplots())
        np.testing.assert_allclose(other.data.y_prob, model.predict_proba(X)[:, 0])
        again = display.plot(ax=Figure().subplots(), name="again")
        assert again is display
        assert display.ax_.get_title() == "again"

    def test_what_it_refuses(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        from calibrant.integrations.sklearn import ReliabilityDisplay

        X, y = np.arange(30.0).reshape(-1, 1), np.arange(30) % 3
        with pytest.raises(ValueError, match="two classes, got 3"):
            ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
        with pytest.raises(TypeError, match="no predict_proba"):
            ReliabilityDisplay.from_estimator(LinearSVC().fit(X, y > 0), X, y > 0)
        with pytest.raises(ValueError, match="pos_label must be one of"):
            ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y > 0), X, y > 0, pos_label="yes")
