"""Conventions of scikit-learn's displays."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from calibrant.integrations.sklearn import ReliabilityDisplay


def test_an_estimator_is_drawn_by_its_probabilities():
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


def test_what_it_refuses():
    X, y = np.arange(30.0).reshape(-1, 1), np.arange(30) % 3
    with pytest.raises(ValueError, match="two classes, got 3"):
        ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    with pytest.raises(TypeError, match="no predict_proba"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, y > 0), X, y > 0)
    with pytest.raises(ValueError, match="pos_label must be one of"):
        ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y > 0), X, y > 0, pos_label="yes")
