"""Weights of maps in a mixture, losses on rows that a map has not seen, and the floor of a mixture."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import bernoulli

from calibrant import recalibrate as rc
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.model_averaging import (
    HeldOut,
    gain_and_error,
    kept_from_certainty,
    mean_and_error,
    posterior_weights,
    prior_weights,
    row_losses,
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


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**2).astype(int), rng.integers(0, 4, n)


@pytest.mark.parametrize("parts", [1, 4])
def test_only_the_first_folds_are_held_out(parts):
    p, y, fold = rows()
    held = HeldOut.of([rc.Identity(), rc.Platt()], Scores.of(p, input="probabilities"), y, None, fold, parts=parts)
    some = fold < parts
    np.testing.assert_array_equal(held.fold, fold[some])
    np.testing.assert_array_equal(held.codes, y[some])
    np.testing.assert_array_equal(held.probabilities[0][:, 1], p[some])
    expected = np.empty(len(p))
    for k in range(parts):
        expected[fold == k] = rc.Platt().fit(p[fold != k], y[fold != k]).predict_proba(p[fold == k])[:, 1]
    np.testing.assert_allclose(held.probabilities[1][:, 1], expected[some], rtol=1e-12)


def test_maps_of_all_rows_are_fitted_with_the_others_where_they_are_asked_for():
    p, y, fold = rows()
    templates, scores = [rc.Identity(), rc.Platt(), rc.BayesianAverage()], Scores.of(p, input="probabilities")
    plain = HeldOut.of(templates, scores, y, None, fold, parts=4)
    held = HeldOut.of(templates, scores, y, None, fold, parts=4, whole=True)
    assert plain.maps == []
    np.testing.assert_allclose(held.probabilities, plain.probabilities, rtol=1e-9)
    for template, found in zip(templates, held.maps, strict=True):
        np.testing.assert_allclose(found.predict_proba(p), template.fit(p, y).predict_proba(p), rtol=1e-9)


def test_a_single_row_is_predicted_as_it_was():
    held = HeldOut.of(
        [rc.Platt()], Scores.of([0.3], input="probabilities"), np.array([1]), None, np.array([0]), parts=5
    )
    np.testing.assert_allclose(held.probabilities[0], [[0.7, 0.3]])


def test_a_mixture_of_some_rows_is_that_of_all():
    p, y, fold = rows()
    maps = [rc.Identity(), rc.Platt(), rc.Beta()]
    held = HeldOut.of(maps, Scores.of(p, input="probabilities"), y, None, fold, parts=4)
    shares = np.array([0.2, 0.0, 0.8])
    np.testing.assert_array_equal(held.take(fold == 2).mixture(shares), held.mixture(shares)[fold == 2])
    expected = 0.2 * held.probabilities[0] + 0.8 * held.probabilities[2]
    np.testing.assert_allclose(held.mixture(shares), expected)


def test_losses_of_two_and_of_three_classes():
    p = np.array([[0.8, 0.2], [0.4, 0.6]])
    np.testing.assert_allclose(row_losses(p, np.array([0, 0]), "log_loss"), -np.log([0.8, 0.4]))
    np.testing.assert_allclose(row_losses(p, np.array([0, 0]), "brier"), [0.2**2, 0.6**2])
    three = np.array([[0.5, 0.3, 0.2]])
    np.testing.assert_allclose(row_losses(three, np.array([1]), "brier"), [0.25 + 0.49 + 0.04])


def test_a_mean_of_rows_with_mass_is_that_of_the_rows_repeated():
    values, mass = np.array([1.0, 4.0, 2.0]), np.array([2.0, 1.0, 3.0])
    mean, error = mean_and_error(values, mass)
    repeated = np.repeat(values, mass.astype(int))
    assert mean == pytest.approx(repeated.mean())
    assert error == pytest.approx(repeated.std() / np.sqrt(6))


@pytest.mark.parametrize("loss", ["log_loss", "brier"])
def test_the_error_of_a_gain_is_at_least_what_the_probabilities_imply(loss):
    before, after = np.tile([0.97, 0.03], (20, 1)), np.tile([0.99, 0.01], (20, 1))
    nothing_seen = np.zeros(20, dtype=int)
    gain, error = gain_and_error(before, after, nothing_seen, np.ones(20), loss)
    assert gain == pytest.approx((row_losses(before, nothing_seen, loss) - row_losses(after, nothing_seen, loss))[0])
    outcomes = bernoulli(0.03).rvs((40_000, 20), random_state=0)
    by_outcome = [row_losses(before[:2], np.array([0, 1]), loss) - row_losses(after[:2], np.array([0, 1]), loss)][0]
    assert error == pytest.approx(by_outcome[outcomes].mean(axis=1).std(), rel=0.02)
