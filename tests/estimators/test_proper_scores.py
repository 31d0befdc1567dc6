"""Proper scores against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

import calibrant as cal
from tests.estimators.worlds import columns, weighted_rows


@pytest.mark.no_cover
@given(weighted_rows)
def test_scores_agree_with_scikit_learn_with_and_without_weights(rows):
    p, y, w = columns(rows)
    assert cal.brier(y, p) == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert cal.log_loss(y, p) == pytest.approx(sklearn_log_loss(y, p, labels=[0, 1]), rel=1e-10)
    data = cal.Binary(y, p, weight=w)
    assert cal.brier(data) == pytest.approx(brier_score_loss(y, p, sample_weight=w), abs=1e-12)
    for score in (cal.brier, cal.log_loss):
        assert score(cal.BinTable.of(data, cal.table.Distinct())) == pytest.approx(score(data), rel=1e-9)


def test_scores_of_several_classes_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 300)
    y = rng.integers(0, 4, 300)
    data = cal.Multiclass(y, probs, weight=rng.random(300))
    assert cal.brier(data) == pytest.approx(np.average(((probs - np.eye(4)[y]) ** 2).sum(axis=1), weights=data.weight))
    assert cal.log_loss(data) == pytest.approx(sklearn_log_loss(y, probs, sample_weight=data.weight))


def test_a_certain_forecast_that_failed_costs_infinity_and_one_that_held_nothing():
    assert cal.log_loss([0], [1.0]) == math.inf
    assert cal.log_loss([1, 0], [1.0, 0.0]) == 0.0


def test_predictions_without_probabilities_are_refused():
    with pytest.raises(ValueError, match="no probability score"):
        cal.brier(cal.Gaussian([0.0], [0.0], [1.0]))
