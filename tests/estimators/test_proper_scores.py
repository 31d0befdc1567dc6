"""Proper scores and their CORP decomposition against scikit-learn, and what must always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

import calibrant as cal
from calibrant.numerics.isotonic import pool_adjacent_violators

rows = st.lists(st.tuples(st.floats(0.001, 0.999), st.booleans(), st.floats(0.1, 3)), min_size=2, max_size=60)


def columns(rows):
    return (np.array(column, dtype=float) for column in zip(*rows, strict=True))


@given(rows)
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


@given(rows, st.sampled_from(["brier", "log_loss"]), st.booleans())
def test_the_parts_make_up_the_score_and_none_is_negative(rows, score, weighted):
    p, y, w = columns(rows)
    p = np.clip(np.round(p, 2), 0.01, 0.99)
    parts = cal.decompose(cal.Binary(y, p, weight=w if weighted else None), score=score)
    assert parts.score == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty, abs=1e-12)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= -1e-12
    assert parts.refinement == pytest.approx(parts.score - parts.miscalibration)


@given(rows, st.booleans())
def test_miscalibration_is_what_isotonic_regression_saves(rows, weighted):
    p, y, w = columns(rows)
    p = np.round(p, 1) * 0.9 + 0.05
    weight = w if weighted else np.ones(len(p))
    fit = IsotonicRegression(y_min=0, y_max=1).fit(p, y, sample_weight=weight)
    saved = np.average((p - y) ** 2, weights=weight) - np.average((fit.predict(p) - y) ** 2, weights=weight)
    assert cal.decompose(cal.Binary(y, p, weight=weight if weighted else None)).miscalibration == pytest.approx(
        saved, abs=1e-9
    )


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(-3, 3)), min_size=1, max_size=200))
def test_pooling_gives_the_isotonic_fit(rows):
    weight, value = (np.array(column) for column in zip(*rows, strict=True))
    starts, total, observed = pool_adjacent_violators(weight, weight * value)
    fit = np.repeat(observed / total, np.diff(starts, append=len(weight)))
    expected = IsotonicRegression().fit_transform(np.arange(len(weight)), value, sample_weight=weight)
    np.testing.assert_allclose(fit, expected, atol=1e-9)


def test_pooling_survives_a_cascade_that_vectorised_rounds_cannot_finish():
    value = np.concatenate([np.arange(500.0), [-1e9]])
    starts, _, _ = pool_adjacent_violators(np.ones(501), value)
    assert len(starts) == 1


def test_a_recalibrated_forecast_has_no_miscalibration():
    assert cal.decompose(cal.Binary([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0])).miscalibration == pytest.approx(0.0)


def test_unknown_scores_and_unfit_tasks_are_refused():
    with pytest.raises(ValueError, match="'brier' or 'log_loss'"):
        cal.decompose(cal.Binary([0, 1], [0.2, 0.7]), score="crps")
    with pytest.raises(ValueError, match="no probability score"):
        cal.brier(cal.Gaussian([0.0], [0.0], [1.0]))


def test_a_decomposition_exports_plain_types():
    parts = cal.decompose(cal.Binary([0, 1], [0.2, 0.7])).to_dict()
    assert set(parts) == {"score", "miscalibration", "discrimination", "uncertainty"}
