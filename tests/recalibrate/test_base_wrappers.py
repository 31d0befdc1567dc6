"""One map per class, and classifiers as maps."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from calibrant import recalibrate as rc
from tests.recalibrate.worlds import squared_world


def test_one_vs_rest_is_one_map_per_class_scaled_to_one():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1, 1], 300)
    y = np.array([rng.choice(4, p=row) for row in p])
    columns = [rc.Beta().fit(p[:, k], y == k).predict_proba(p[:, k])[:, 1] for k in range(4)]
    expected = np.stack(columns, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rc.OneVsRest(rc.Beta()).fit(p, y).predict_proba(p), expected, atol=1e-12)
    logits = rc.OneVsRest(rc.Beta(), input="logits").fit(np.log(p) + 3, y)
    np.testing.assert_allclose(logits.predict_proba(np.log(p) + 3), expected, atol=1e-7)


def test_one_vs_rest_needs_a_map_and_survives_columns_of_zero():
    with pytest.raises(TypeError, match="OneVsRest needs a binary map"):
        rc.OneVsRest(LogisticRegression()).fit([[0.2, 0.3, 0.5]] * 3, [0, 1, 2])
    certain = rc.OneVsRest(rc.Isotonic(allow_certainty=True)).fit(np.eye(3), [1, 2, 0])
    np.testing.assert_allclose(certain.predict_proba(np.eye(3)).sum(axis=1), 1)


def test_any_classifier_serves_as_a_map():
    p, y = squared_world()
    logistic = rc.FromClassifier(LogisticRegression(C=np.inf, tol=1e-10)).fit(p, y)
    np.testing.assert_allclose(logistic.predict_proba(p), rc.Platt().fit(p, y).predict_proba(p), atol=1e-5)
    tree = rc.FromClassifier(DecisionTreeClassifier(max_depth=2), features="probabilities", laplace=1.0).fit(p, y)
    assert len(np.unique(tree.predict_proba(p))) <= 8
    with pytest.raises(ValueError, match="features must be"):
        rc.FromClassifier(LogisticRegression(), features="ranks").fit(p, y)
    with pytest.raises(ValueError, match="at least two classes"):
        rc.FromClassifier(LogisticRegression()).fit([0.2, 0.4], [1, 1])


def test_a_classifier_that_missed_a_class_keeps_its_column():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 97)
    q = rc.FromClassifier(LogisticRegression()).fit(p, rng.integers(0, 2, 97)).predict_proba(p)
    np.testing.assert_allclose(q[:, 2], 1 / 100)
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)
