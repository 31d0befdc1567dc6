"""Predicted distributions: what is let in, and where outcomes fall in them."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal


class _TwoRows:
    def cdf(self, y):
        return np.array([0.5, 0.5])

    def ppf(self, p):
        return p


def test_a_distribution_needs_its_functions():
    with pytest.raises(cal.InvalidPredictions, match="dist needs a method cdf"):
        cal.Distribution([1.0], object())
    with pytest.raises(cal.InvalidPredictions, match=r"has shape \(2,\), expected \(3,\)"):
        cal.Distribution([1.0, 2.0, 3.0], _TwoRows())


def test_spread_metrics_refuse_a_distribution_without_variance():
    data = cal.Distribution([0.0, 1.0], stats.cauchy(0, 1))
    with pytest.raises(cal.InvalidPredictions, match=r"dist.std\(\) must be positive and finite"):
        cal.ence(data)
    assert cal.quantile_error(data) > 0


def test_a_gaussian_and_the_same_scipy_distribution_are_measured_alike():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=400), rng.lognormal(0, 0.5, 400)
    y = mean + std * rng.normal(size=400)
    gaussian, other = cal.Gaussian(y, mean, std), cal.Distribution(y, stats.norm(mean, std))
    for metric in (cal.ence, cal.interval_error, cal.coverage, cal.nll, cal.pinball, cal.interval_score):
        assert metric(gaussian) == pytest.approx(metric(other), rel=1e-12)
    assert cal.crps(gaussian) == pytest.approx(cal.crps(other), rel=1e-5)


def test_new_style_scipy_distributions_and_mixtures_work():
    y = np.array([0.1, 1.4, 2.0])
    normal = stats.Normal(mu=np.zeros(3), sigma=np.ones(3))
    assert cal.ence(cal.Distribution(y, normal)) == pytest.approx(cal.ence(y, np.zeros(3), np.ones(3)))
    mixture = stats.Mixture([stats.Normal(mu=0, sigma=1), stats.Normal(mu=2, sigma=1)], weights=[0.5, 0.5])
    below = stats.norm.cdf(y) / 2 + stats.norm.cdf(y - 2) / 2
    assert cal.Distribution(y, mixture).pit()[0] == pytest.approx(below)


def test_counts_get_the_interval_between_two_steps_of_their_distribution():
    rate = np.full(5000, 2.5)
    y = np.random.default_rng(1).poisson(rate)
    data = cal.Distribution(y, stats.poisson(rate))
    low, high = data.pit()
    assert low == pytest.approx(stats.poisson.cdf(y - 1, rate), abs=1e-12)
    assert high == pytest.approx(stats.poisson.cdf(y, rate))
    assert cal.pit_error(data).details["p_value"] > 0.01


@pytest.mark.parametrize("loc", [0.0, [0.0, 0.0], np.zeros((5, 2))])
def test_parameters_of_any_shape_serve_several_outputs(loc):
    y = np.random.default_rng(0).normal(size=(5, 2))
    data = cal.Distribution(y, stats.norm(loc, 1.0))
    twin = cal.Gaussian(y, np.zeros((5, 2)), np.ones((5, 2)))
    for metric in (cal.ence, cal.quantile_error, cal.coverage, cal.pinball):
        found, wanted = metric(data), metric(twin)
        assert found == pytest.approx(wanted)
        assert found.details["outputs"] == pytest.approx(wanted.details["outputs"])
