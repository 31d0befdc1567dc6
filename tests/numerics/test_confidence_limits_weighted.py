"""Tails of weighted sums of outcomes, of sums of clusters, and of numbers of events."""

import numpy as np
import pytest
from scipy.stats import binom, kstest, norm

from calibrant.numerics import confidence_limits as limits
from calibrant.numerics.confidence_limits import event_tail, sum_of_units_tail, weighted_tail


def test_the_saddlepoint_is_close_to_the_binomial():
    p = np.full(4000, 0.03)
    for k in (90, 100, 125, 140, 160, 180):
        y = (np.arange(4000) < k).astype(float)
        found = weighted_tail(np.ones(4000), y, p, np.random.default_rng(0))
        middle = binom.sf(k, 4000, 0.03) + binom.pmf(k, 4000, 0.03) / 2
        assert abs(np.log(found / middle)) < 0.05


def test_its_p_values_are_uniform_under_the_hypothesis():
    rng = np.random.default_rng(1)
    p, a = rng.uniform(0.05, 0.6, 300), np.exp(rng.normal(size=300)) * rng.choice([-1, 1], 300)
    found = [weighted_tail(a, (rng.random(300) < p).astype(float), p, rng) for _ in range(400)]
    assert kstest(found, "uniform").pvalue > 0.001


def test_few_events_are_simulated(monkeypatch):
    seen = []
    original = limits._hits
    monkeypatch.setattr(limits, "_hits", lambda a, *rest: seen.append(len(a)) or original(a, *rest))
    rng = np.random.default_rng(0)
    for n, simulated in ((159, True), (161, False)):  # sums of variances of 39.75 and 40.25
        p, y = np.full(n, 0.5), np.arange(n) % 2 * 1.0
        weighted_tail(np.ones(n), y, p, rng)
        assert bool(seen) is simulated
        seen.clear()
    weighted_tail(np.ones(20_001), np.zeros(20_001), np.full(20_001, 1e-4), rng)
    assert not seen
    p = np.full(20, 0.1)
    found = weighted_tail(np.ones(20), (np.arange(20) < 4) * 1.0, p, rng)
    exact = binom.sf(3, 20, 0.1)
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
    assert found * 4001 == pytest.approx(round(found * 4001))
    rare = weighted_tail(np.ones(20), (np.arange(20) < 12) * 1.0, p, rng)
    assert 0 < rare < 1e-5  # no draw is there: the saddlepoint
    four = np.array([5.0])
    assert four[0] == limits._FEWEST_HITS


def test_sums_that_cannot_vary_say_nothing():
    rng = np.random.default_rng(0)
    assert weighted_tail(np.zeros(5), np.ones(5), np.full(5, 0.5), rng) == 0.5
    assert weighted_tail(np.ones(5), np.zeros(5), np.zeros(5), rng) == 0.5


def test_sums_of_clusters_keep_their_level():
    rng = np.random.default_rng(2)
    found = np.array([sum_of_units_tail(rng.standard_t(5, 60)) for _ in range(2000)])
    assert np.mean(found <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    skewed = np.array([sum_of_units_tail(-(rng.exponential(size=60) - 1)) for _ in range(2000)])
    assert np.mean(skewed <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert sum_of_units_tail(rng.normal(1, 1, 60)) < 1e-6


def test_few_units_claim_nothing():
    ones = np.concatenate([np.ones(14)])
    assert sum_of_units_tail(ones) == 1.0
    assert sum_of_units_tail(np.append(ones, 1.0)) < 1e-9
    heavy = np.append(np.full(30, 0.3), [3.0] * 3)  # few carry the variance
    square, fourth = float(heavy @ heavy), float((heavy**2) @ (heavy**2))
    assert square**2 / fourth < 6
    assert sum_of_units_tail(heavy) == 1.0
    assert sum_of_units_tail(np.append(np.full(60, 0.8), [3.0] * 3)) < 1.0


def test_the_least_variance_is_that_of_calibrated_outcomes():
    sums = np.full(40, 0.01)
    assert sum_of_units_tail(sums, least_variance=1.0) == pytest.approx(norm.sf(0.4), abs=0.02)


def test_events_are_bounded_by_the_binomial():
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.4, 30)
    drawn = (rng.random((100_000, 30)) < p).sum(axis=1)
    mean = p.sum()
    for k in range(int(mean + 2), 20):
        share = np.mean(drawn >= k)
        bound = float(event_tail(np.array(float(k)), np.array(30.0), np.array(mean)))
        assert share <= bound + 4 * np.sqrt(bound / 100_000)
        assert bound == pytest.approx(binom.sf(k - 1, 30, mean / 30))
    assert event_tail(np.array(mean + 0.5), np.array(30.0), np.array(mean)) == 1.0
    assert event_tail(np.array(30.0), np.array(30.0), np.array(29.0)) == pytest.approx((29 / 30) ** 30)
