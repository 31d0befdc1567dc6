"""Ensemble temperature scaling: the weights are the best ones, and the map is safe."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone

from calibrant.recalibrate import EnsembleTemperature, Temperature, load
from calibrant.recalibrate.ensemble import mixture_weights


def world(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are right but for one row in five, whose outcome is pure chance."""
    rng = np.random.default_rng(seed)
    p = softmax(rng.normal(size=(n, 4)) * 2, axis=1)
    truth = np.where(rng.uniform(size=(n, 1)) < 0.2, 0.25, p)
    y = (truth.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
    return p, np.minimum(y, 3)


def test_the_map_is_the_mixture_written_out():
    p, y = world(300)
    fitted = EnsembleTemperature().fit(p, y)
    first, second, third = fitted.weights_
    tempered = softmax(np.log(p) / Temperature().fit(p, y).temperature_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(p), first * tempered + second * p + third / 4, atol=1e-12)


def test_known_mixture_is_found():
    p, y = world(40_000)
    fitted = EnsembleTemperature().fit(p, y)
    assert fitted.weights_[2] == pytest.approx(0.2, abs=0.03)
    assert fitted.weights_.sum() == pytest.approx(1, abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 80), st.integers(2, 4))
def test_weights_meet_the_conditions_of_optimality(seed, n, parts):
    rng = np.random.default_rng(seed)
    given_, share = rng.uniform(1e-3, 1, size=(n, parts)), rng.dirichlet(np.ones(n))
    w = mixture_weights(given_, share)
    slope = 1 - share @ (given_ / (given_ @ w)[:, None])
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert slope.min() > -1e-6
    assert abs(w @ slope) < 1e-6


def test_weights_agree_with_a_general_optimiser():
    rng = np.random.default_rng(3)
    given_, share = rng.uniform(0.01, 1, size=(200, 3)), np.full(200, 1 / 200)
    rival = minimize(
        lambda w: -share @ np.log(given_ @ w),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(mixture_weights(given_, share), rival.x, atol=1e-5)


def test_never_worse_than_temperature_on_the_rows_fitted_and_accuracy_is_kept():
    p, y = world(500)
    mixed, plain = (scaling().fit(p, y).predict_proba(p) for scaling in (EnsembleTemperature, Temperature))
    rows = np.arange(len(y))
    assert -np.log(mixed[rows, y]).mean() <= -np.log(plain[rows, y]).mean() + 1e-12
    np.testing.assert_array_equal(mixed.argmax(axis=1), p.argmax(axis=1))


def test_weight_two_is_the_row_twice():
    p, y = world(150)
    weight = np.random.default_rng(5).integers(0, 4, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    once = EnsembleTemperature().fit(p, y, sample_weight=weight)
    np.testing.assert_allclose(once.weights_, EnsembleTemperature().fit(p[twice], y[twice]).weights_, atol=1e-6)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        (np.eye(3), [0, 1, 2]),
        (np.eye(3), [1, 2, 0]),
        (np.eye(3)[:2], [0, 0]),
        (np.full((5, 3), 1 / 3), [0, 1, 2, 0, 0]),
        (np.full((5, 3), 1 / 3).astype(np.float32), [0, 0, 0, 0, 0]),
        (np.array([0.0, 1.0, 0.5]), [1, 0, 1]),
    ],
)
def test_hard_scores_give_finite_probabilities_that_sum_to_one(p, y):
    q = EnsembleTemperature().fit(p, y).predict_proba(p)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_survives_clone_and_a_round_trip_through_json(tmp_path):
    p, y = world(80)
    fitted = clone(EnsembleTemperature(laplace=1)).fit(p, y)
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(load(tmp_path / "map.json").predict_proba(p), fitted.predict_proba(p))
