"""Weights of maps in a mixture, and the bound that no mixture may pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from calibrant.recalibrate.cross_validation import row_losses
from calibrant.recalibrate.mixture_weights import (
    kept_from_certainty,
    posterior_weights,
    prior_weights,
    stacking_weights,
)


def test_the_identity_has_its_prior_and_the_others_share_the_rest():
    np.testing.assert_allclose(prior_weights(1), [1])
    np.testing.assert_allclose(prior_weights(2), [0.3, 0.7])
    np.testing.assert_allclose(prior_weights(4), [0.3, 0.7 / 3, 0.7 / 3, 0.7 / 3])


def test_posterior_weights_are_prior_times_likelihood():
    prior = np.array([0.3, 0.7])
    np.testing.assert_allclose(posterior_weights(prior, np.array([-1e5, -1e5 + np.log(3)])), [0.3 / 2.4, 2.1 / 2.4])
    np.testing.assert_array_equal(posterior_weights(prior, np.array([0.0, -50.0])), [1, 0])
    np.testing.assert_array_equal(posterior_weights(np.array([0.0, 1.0]), np.array([0.0, -50.0])), [0, 1])


@pytest.mark.parametrize("loss", ["log_loss", "brier"])
def test_stacking_weights_are_the_best_point_of_the_simplex(loss):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = (rng.random(600) < p**2).astype(int)
    maps = [p, np.clip(p**2 + rng.normal(size=600) * 0.05, 0.01, 0.99), np.full(600, y.mean())]
    columns = [np.stack([1 - q, q], axis=1) for q in maps]
    weights = stacking_weights(columns, y, np.ones(600), loss)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()

    def mean_loss(z):
        a = np.exp(z - z.max())
        return row_losses(np.einsum("m,mik->ik", a / a.sum(), np.stack(columns)), y, loss).mean()

    peer = minimize(mean_loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12}).fun
    assert row_losses(np.einsum("m,mik->ik", weights, np.stack(columns)), y, loss).mean() <= peer + 1e-8


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 6), n=st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_no_probability_passes_the_bound_unless_it_was_predicted_there(seed, classes, n):
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet([0.05] * classes, 20), rng.dirichlet([0.2] * classes, 20)
    kept, floor = kept_from_certainty(q, p, n), 0.5 / (n + 1)
    np.testing.assert_allclose(kept.sum(axis=1), 1, atol=1e-12)
    assert (kept >= np.minimum(p, floor) * (1 - 1e-12)).all()
    assert (kept <= np.maximum(p, 1 - floor) + 1e-12).all()
    fine = (q >= np.minimum(p, floor)).all(axis=1)
    np.testing.assert_array_equal(kept[fine], q[fine])


def test_for_two_classes_the_bound_is_a_clip():
    rng = np.random.default_rng(0)
    q, p = rng.beta(0.1, 0.1, 500), rng.beta(0.1, 0.1, 500)
    kept = kept_from_certainty(np.stack([1 - q, q], axis=1), np.stack([1 - p, p], axis=1), 9)[:, 1]
    np.testing.assert_allclose(kept, np.clip(q, np.minimum(p, 0.05), np.maximum(p, 0.95)), atol=1e-12)
