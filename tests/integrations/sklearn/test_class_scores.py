"""What classifiers say about rows, as predictions."""

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import calibrant as cal
from calibrant.integrations.sklearn.class_scores import scores_of, task_of

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
