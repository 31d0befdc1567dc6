"""Isotonic and histogram maps of positives and unlabeled rows, and the shift of a prior."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant import pu
from tests.pu.worlds import LESS, drawn


def test_isotonic_is_that_of_scikit_learn_on_pooled_positives_and_rises():
    data = drawn(np.random.default_rng(5), 80, 500, LESS)
    order = np.sort(data.unlabeled)
    at = np.minimum(np.searchsorted(order, data.positive), 499)
    y = 0.5 * 500 / 80 * np.bincount(at, minlength=500)
    expected = IsotonicRegression(y_min=0, y_max=1).fit(order, y).predict(order)
    fitted = pu.PUIsotonic().fit(data)
    np.testing.assert_allclose(fitted.predict_proba(order)[:, 1], expected, atol=1e-12)
    assert np.all(np.diff(fitted.predict_proba(np.linspace(0, 1, 500))[:, 1]) >= 0)


def test_the_prior_shift_is_bayes_rule():
    p = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    expected = p * 0.14 / 0.5 / (p * 0.14 / 0.5 + (1 - p) * 0.86 / 0.5)
    np.testing.assert_allclose(pu.prior_shift(p, from_prior=0.5, to_prior=0.14), expected)
    h = np.array([-1.0, 0.0, 3.0])
    shifted = pu.prior_shift(h, from_prior=0.5, to_prior=0.14, input="logits")
    np.testing.assert_allclose(logit(shifted) - h, -1.815, atol=1e-3)
    with pytest.raises(cal.InvalidPredictions, match="one column"):
        pu.prior_shift([[0.5, 0.5]], from_prior=0.5, to_prior=0.1)


def test_the_histogram_is_the_implied_share_of_positives_per_bin():
    rng = np.random.default_rng(0)
    positive, unlabeled = rng.beta(2, 1, 200), rng.random(900)
    data = cal.PositiveUnlabeled(positive, unlabeled, prior=0.3)
    fitted = pu.PUHistogram(bins=cal.EqualWidth(5)).fit(data)
    share = 0.3 * np.histogram(positive, 5, (0, 1))[0] / 200
    np.testing.assert_allclose(fitted.values_, np.minimum(share / (np.histogram(unlabeled, 5, (0, 1))[0] / 900), 1))
    empty = pu.PUHistogram(bins=cal.Edges([0, 0.5, 0.9, 1])).fit(cal.PositiveUnlabeled([0.6], [0.2, 0.6], prior=0.9))
    np.testing.assert_allclose(empty.values_, [0.0, 1.0, 0.95])


def test_the_prior_is_shifted_on_log_odds_too():
    z = np.array([-50.0, 0.0, 3.0])
    expected = expit(z + logit(0.2) - logit(0.5))
    found = pu.prior_shift(z, from_prior=0.5, to_prior=0.2, input="logits")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    same = pu.prior_shift(expit(z), from_prior=0.3, to_prior=0.3)
    np.testing.assert_allclose(same, expit(z), rtol=1e-12)
    with pytest.raises(cal.InvalidPredictions, match="moves one column"):
        pu.prior_shift([[0.5, 0.5]], from_prior=0.5, to_prior=0.2)
