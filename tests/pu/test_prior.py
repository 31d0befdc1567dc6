"""Estimates of the class prior."""

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant import pu


def draw(rng, n_positive, n_unlabeled, prior, centre):
    y = rng.random(n_unlabeled) < prior
    return rng.normal(centre, 1, n_positive), rng.normal(0, 1, n_unlabeled) + centre * (2 * y - 1)


@pytest.mark.parametrize(("prior", "expected"), [(0.1, 0.148), (0.3, 0.337), (0.5, 0.524), (0.7, 0.716)])
def test_best_bin_is_near_its_recorded_means_and_its_interval_covers(prior, expected):
    rng = np.random.default_rng(0)
    estimates = [pu.estimate_prior(*draw(rng, 1000, 10_000, prior, 1)) for _ in range(20)]
    assert np.mean(estimates) == pytest.approx(expected, abs=0.015)
    assert all(prior in estimate.interval for estimate in estimates)


def test_best_bin_is_the_formula_at_every_threshold():
    rng = np.random.default_rng(1)
    positive, unlabeled = (np.round(values, 1) for values in draw(rng, 30, 80, 0.4, 1))
    size = np.sqrt(np.log(4 / 0.1) / 2)
    best = (np.inf, None)
    for cut in unlabeled:
        q_u, q_p = np.mean(unlabeled >= cut), np.mean(positive >= cut)
        if q_p > 0:
            upper = q_u / q_p + 1.01 / q_p * size * (80**-0.5 + 30**-0.5)
            best = min(best, (upper, q_u / q_p))
    assert pu.estimate_prior(positive, unlabeled) == pytest.approx(min(best[1], 1.0))


def test_elkan_noto_finds_the_prior_of_classes_that_do_not_overlap():
    rng = np.random.default_rng(2)
    n_positive, n_unlabeled, prior = 1000, 10_000, 0.3
    positive, unlabeled = draw(rng, n_positive, n_unlabeled, prior, 6)

    def labelled(x):  # P(s = 1 | x) in the pooled sample
        posterior = expit(12 * x + np.log(prior / (1 - prior)))
        return n_positive * posterior / (n_positive * posterior + n_unlabeled * prior)

    estimate = pu.estimate_prior(labelled(positive), labelled(unlabeled), method=pu.ElkanNoto())
    assert estimate == pytest.approx(prior, abs=0.01)
    frequency = 0.4
    single = pu.estimate_prior(
        np.full(120, frequency), np.full(880, 0.1), method=pu.ElkanNoto(scenario="single-sample")
    )
    assert single == pytest.approx(0.12 / frequency)
    with pytest.raises(cal.InvalidPredictions, match=r"\[0, 1\]"):
        pu.estimate_prior(positive, unlabeled, method=pu.ElkanNoto())


def test_the_estimate_feeds_the_band():
    rng = np.random.default_rng(3)
    positive, unlabeled = draw(rng, 1000, 10_000, 0.5, 1)
    prior = pu.estimate_prior(positive, unlabeled)
    data = cal.PositiveUnlabeled(expit(2 * positive), expit(2 * unlabeled), prior=float(prior))
    band = pu.prior_band(data, prior.interval.low, prior.interval.high)
    assert band.exact.low <= cal.ece(data) <= band.exact.high


def test_empty_samples_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="positive is empty"):
        pu.estimate_prior([], [0.1])
