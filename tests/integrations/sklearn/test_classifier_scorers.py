"""Scorers for scikit-learn's tools."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_score, cross_validate

import calibrant as cal
from calibrant.integrations.sklearn import make_scorers
from calibrant.integrations.sklearn.classifier import scores_of, task_of
from tests.integrations.sklearn.classified_rows import rows


def test_scorers_are_minus_the_measures():
    X, y = rows()
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)[:, 1]
    scorers = make_scorers()
    assert scorers["neg_calibration_error"](model, X, y) == -cal.calibration_error(y, p)
    assert scorers["neg_ece"](model, X, y) == -cal.ece(y, p)
    assert scorers["neg_sweep_ece"](model, X, y) == -cal.sweep_ece(y, p)
    assert scorers["neg_debiased_ece"](model, X, y) == -cal.debiased_ece(y, p)
    assert scorers["neg_brier"](model, X, y) == -cal.brier(y, p)
    assert scorers["neg_log_loss"](model, X, y) == -cal.log_loss(y, p)
    assert cross_val_score(LogisticRegression(), X, y, scoring=scorers["neg_brier"]).shape == (5,)


def test_scorers_of_several_classes_see_the_top_label_or_all():
    X, y = rows(3)
    names = np.array(["ant", "bee", "cow"])[y]
    model = LogisticRegression().fit(X, names)
    whole = cal.Multiclass(names, model.predict_proba(X), classes=["ant", "bee", "cow"])
    scorers = make_scorers()
    assert scorers["neg_brier"](model, X, names) == -cal.brier(whole)
    assert scorers["neg_ece"](model, X, names) == -cal.ece(whole.top_label())
    weight = np.arange(len(y))
    assert scorers["neg_brier"](model, X, names, sample_weight=weight) != scorers["neg_brier"](model, X, names)


def test_weights_reach_a_scorer_by_its_request():
    X, y = rows()
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


X = np.arange(12.0).reshape(-1, 1)


def test_classes_that_a_classifier_has_not_seen_have_no_probability():
    classes = np.array(["ant", "bee", "cow"])
    seen = LogisticRegression().fit(X, np.where(X[:, 0] < 6, "ant", "cow"))
    found = scores_of(seen, X, classes)
    np.testing.assert_array_equal(found[:, [0, 2]], seen.predict_proba(X))
    assert not found[:, 1].any()


def test_decision_values_of_unseen_classes_lie_far_below_the_others():
    classes = np.array([0, 1, 2])
    seen = RidgeClassifier().fit(X, (X[:, 0] > 5).astype(int))
    found = scores_of(seen, X, classes)
    np.testing.assert_array_equal(found[:, 1], seen.decision_function(X))
    assert (found[:, 2] < found[:, :2].min() - 40).all()


def test_two_classes_are_the_event_of_the_second_and_more_are_all():
    p = np.array([[0.3, 0.7], [0.8, 0.2]])
    two = task_of(np.array(["no", "yes"]), p, np.array(["no", "yes"]), None)
    assert isinstance(two, cal.Binary)
    assert (two.y_true.tolist(), two.y_prob.tolist()) == ([0, 1], [0.7, 0.2])
    three = task_of(np.array(["a", "c"]), np.full((2, 3), 1 / 3), np.array(["a", "b", "c"]), [1.0, 2.0])
    assert isinstance(three, cal.Multiclass)
    assert three.weight.tolist() == [1.0, 2.0]
