"""The distribution function of the probability integral transform."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtri

import calibrant as cal
from calibrant.estimators.pit import BRIDGE, PitCurve, central_curve, pit_curve


def gaussian(n=300, *, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.lognormal(0, 0.5, n)
    return cal.Gaussian(mean + 1.3 * std * rng.normal(size=n), mean, std, weight=rng.random(n) if weighted else None)


def transforms(data):
    return stats.norm.cdf(data.y_true, data.mean, data.std)


LEVELS = np.linspace(0, 1, 41)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_curve_is_the_weighted_share_of_transforms(weighted):
    data = gaussian(weighted=weighted)
    w = np.ones(len(data)) if data.weight is None else data.weight
    u = transforms(data)
    np.testing.assert_allclose(pit_curve(data)(LEVELS), [w @ (u <= level) / w.sum() for level in LEVELS], atol=1e-12)
    folded = np.abs(2 * u - 1)
    expected = [w @ (folded <= level) / w.sum() for level in LEVELS]
    np.testing.assert_allclose(central_curve(data)(LEVELS), expected, atol=1e-12)


def test_the_largest_distance_is_the_kolmogorov_smirnov_statistic():
    data = gaussian()
    assert pit_curve(data).distance(np.inf) == pytest.approx(stats.kstest(transforms(data), "uniform").statistic)


@pytest.mark.parametrize("norm", [1, 2, 3.5])
@pytest.mark.parametrize("kind", ["values", "intervals"])
def test_the_distance_is_the_integral_of_the_gap(norm, kind):
    data = gaussian(40)
    if kind == "intervals":
        data = cal.Samples(data.y_true, data.mean[:, None] + np.arange(-2, 3) * data.std[:, None])
    curve = pit_curve(data)
    corners = np.unique(curve.at)
    pieces = [
        quad(lambda p: abs(curve(np.array([p]))[0] - p) ** norm, low + 1e-12, high - 1e-12, limit=200)[0]
        for low, high in pairwise(corners)
    ]
    assert curve.distance(norm) == pytest.approx(sum(pieces) ** (1 / norm), rel=1e-6)


def test_a_transform_known_up_to_an_interval_is_a_ramp():
    data = cal.Samples([0.5], [[0.0, 1.0, 2.0]])  # the outcome is the second of four: its transform is in [1/4, 1/2]
    curve = pit_curve(data)
    np.testing.assert_allclose(curve(np.array([0.2, 0.25, 0.375, 0.5, 0.6])), [0, 0, 0.5, 1, 1], atol=1e-12)
    folded = central_curve(data)  # |2u - 1| is in [0, 1/2]
    np.testing.assert_allclose(folded(np.array([0.0, 0.25, 0.5])), [0, 0.5, 1], atol=1e-12)


def test_an_interval_across_the_median_is_folded():
    data = cal.Samples([0.5], [[0.0, 1.0]])  # the transform is in [1/3, 2/3], so |2u - 1| is uniform on [0, 1/3]
    np.testing.assert_allclose(central_curve(data)(np.array([1 / 6, 1 / 3])), [0.5, 1.0], atol=1e-12)


def test_the_curve_rises_from_zero_to_one_and_forgets_the_order_of_rows():
    data = gaussian(weighted=True)
    order = np.random.default_rng(1).permutation(len(data))
    again = cal.Gaussian(data.y_true[order], data.mean[order], data.std[order], weight=data.weight[order])
    for curve_of in (pit_curve, central_curve):
        values = curve_of(data)(LEVELS)
        assert (np.diff(values) >= 0).all()
        assert values[-1] == pytest.approx(1.0)
        np.testing.assert_allclose(curve_of(again)(LEVELS), values, atol=1e-12)


def test_quantiles_of_the_uniform_distribution_have_no_distance():
    n = 1000
    y = ndtri((np.arange(n) + 0.5) / n)
    curve = pit_curve(cal.Gaussian(y, np.zeros(n), np.ones(n)))
    assert curve.distance(1) < 1 / n
    assert curve.distance(np.inf) == pytest.approx(0.5 / n)


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_the_constants_are_those_of_the_brownian_bridge(norm):
    steps = np.random.default_rng(0).normal(size=(4000, 1000)) / np.sqrt(1000)
    path = np.cumsum(steps, axis=1)
    path -= path[:, -1:] * np.arange(1, 1001) / 1000
    size = np.abs(path).max(axis=1) if np.isinf(norm) else np.mean(np.abs(path) ** norm, axis=1) ** (1 / norm)
    mean, sd, low, high = BRIDGE[norm]
    assert size.mean() == pytest.approx(mean, abs=0.03)
    assert size.std() == pytest.approx(sd, abs=0.02)
    assert np.mean((low < size) & (size < high)) == pytest.approx(0.95, abs=0.02)


def test_the_null_reference_shrinks_with_the_root_of_the_effective_number_of_rows():
    few, many = (PitCurve(LEVELS, LEVELS, LEVELS, size, None).null(1.0) for size in (100.0, 400.0))
    assert few["mean"] == pytest.approx(2 * many["mean"])
    assert few["mean"] == pytest.approx(np.sqrt(np.pi / 32) / 10, rel=1e-4)
    weighted = pit_curve(gaussian(weighted=True))
    w = gaussian(weighted=True).weight
    assert weighted.size == pytest.approx(w.sum() ** 2 / (w @ w))
    other = PitCurve(LEVELS, LEVELS, LEVELS, 100.0, None).null(1.5)
    assert few["mean"] < other["mean"] < PitCurve(LEVELS, LEVELS, LEVELS, 100.0, None).null(2.0)["mean"]


def test_shares_of_bins_are_differences_of_the_curve():
    data = gaussian()
    edges = np.linspace(0, 1, 6)
    expected = np.histogram(transforms(data), edges)[0] / len(data)
    np.testing.assert_allclose(pit_curve(data).shares(edges), expected, atol=1e-12)
    certain = cal.Distribution([0.0, 1.0], stats.uniform(0, 1))  # transforms of exactly 0 and 1
    np.testing.assert_allclose(pit_curve(certain).shares(np.array([0.0, 0.5, 1.0])), [0.5, 0.5])
