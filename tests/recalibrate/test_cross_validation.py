"""Rows are predicted by maps that have not seen them, and their gain knows of outcomes that were not observed."""

import numpy as np
import pytest
from scipy.stats import bernoulli

from calibrant import recalibrate as rc
from calibrant.recalibrate.cross_validation import HeldOut, gain_and_error, mean_and_error, row_losses
from calibrant.recalibrate.inputs import Scores


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
