"""Interval and quantile calibration, PIT and coverage; parity with uncertainty-toolbox where it is right."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtri

import calibrant as cal
from calibrant.estimators.regression_coverage import BRIDGE, PitCurve, central_curve, pit_curve
from tests.estimators.regression_peers import PEERS, peer_rows

GRID = np.linspace(0, 1, 100)


@pytest.mark.parametrize("norm", [1, 2, 3])
def test_the_area_is_that_of_a_fine_grid(norm):
    data, _ = peer_rows()
    u = stats.norm.cdf((data.y_true - data.mean) / data.std)
    p = (np.arange(20_000) + 0.5) / 20_000
    for metric, values in ((cal.quantile_error, u), (cal.interval_error, np.abs(2 * u - 1))):
        share = np.searchsorted(np.sort(values), p, side="right") / 200
        assert metric(data, norm=norm) == pytest.approx(np.mean(np.abs(share - p) ** norm) ** (1 / norm), abs=1e-4)


def test_the_largest_gap_is_the_kolmogorov_smirnov_statistic():
    data, _ = peer_rows()
    reference = stats.kstest((data.y_true - data.mean) / data.std, "norm")
    assert cal.quantile_error(data, norm=np.inf) == pytest.approx(reference.statistic)
    assert cal.pit_error(data) == pytest.approx(reference.statistic)
    assert cal.pit_error(data).details["p_value"] == pytest.approx(reference.pvalue, rel=0.05)


def test_interval_mode_agrees_with_uncertainty_toolbox():
    data, _ = peer_rows()
    assert cal.interval_error(data, levels=GRID) == pytest.approx(PEERS["ma_cal"], abs=1e-12)
    assert cal.interval_error(data, levels=GRID, norm=2) == pytest.approx(PEERS["rms_cal"], abs=1e-12)
    assert cal.interval_error(data) == pytest.approx(PEERS["miscal_area"], abs=1e-3)
    assert cal.interval_curve(data, levels=GRID).observed == pytest.approx(PEERS["interval_mode"][1], abs=1e-12)


def test_quantile_mode_of_uncertainty_toolbox_is_mirrored_and_ours_is_not():
    """Outcomes lie above the means, so few of them lie below the medians; the toolbox says that many do."""
    data, _ = peer_rows()
    data = cal.Gaussian(data.y_true + data.std, data.mean, data.std)
    levels, toolbox = PEERS["quantile_mode"]
    ours = cal.interval_curve(data, levels=levels, central=False).observed
    truth = [np.mean(data.y_true <= stats.norm.ppf(level, data.mean, data.std)) for level in levels[1:-1]]
    assert ours[1:-1] == pytest.approx(truth)
    assert np.array(toolbox)[1:-1] == pytest.approx((1 - ours[::-1])[1:-1], abs=0.011)
    assert np.max(np.abs(ours - np.array(toolbox))) > 0.5


def test_a_shift_is_seen_by_quantiles_and_hardly_by_central_intervals():
    z = np.random.default_rng(0).normal(size=20_000)
    shifted = cal.Gaussian(z + 0.3, 0 * z, 0 * z + np.sqrt(1 + 0.3**2))
    assert cal.quantile_error(shifted) > 0.07
    assert cal.interval_error(shifted) < 0.005


@pytest.mark.no_cover
@pytest.mark.parametrize("metric", [cal.interval_error, cal.quantile_error, cal.pit_error])
def test_the_null_reference_is_what_uniform_transforms_show(metric):
    rng = np.random.default_rng(0)
    results = [metric(rng.normal(size=300), np.zeros(300), np.ones(300)) for _ in range(300)]
    null = results[0].details["null"]
    assert np.mean(results) == pytest.approx(null["mean"], rel=0.07)
    assert np.std(results) == pytest.approx(null["sd"], rel=0.15)
    outside = np.mean([not null["low"] <= result <= null["high"] for result in results])
    assert 0.01 < outside < 0.1


def test_the_p_value_of_the_transform_is_uniform_under_the_null():
    rng = np.random.default_rng(1)
    p = [cal.pit_error(rng.normal(size=100), np.zeros(100), np.ones(100)).details["p_value"] for _ in range(400)]
    assert np.mean(np.array(p) < 0.1) == pytest.approx(0.1, abs=0.045)


def test_ensembles_and_quantiles_have_references_of_their_own():
    rng = np.random.default_rng(0)
    levels = np.arange(1, 10) / 10
    draws = [cal.Samples(rng.normal(size=400), rng.normal(size=(400, 9))) for _ in range(150)]
    quantiles = [
        cal.Quantiles(rng.normal(size=400), levels, np.tile(stats.norm.ppf(levels), (400, 1))) for _ in range(150)
    ]
    for tasks in (draws, quantiles):
        results = [cal.quantile_error(task) for task in tasks]
        assert np.mean(results) == pytest.approx(results[0].details["null"]["mean"], rel=0.12)


def test_the_share_below_each_predicted_quantile_is_counted_exactly():
    data = cal.Quantiles([1.0, 2.0, 3.0, 9.0], [0.25, 0.75], [[1, 2], [3, 4], [0, 1], [0, 9]])
    curve = cal.interval_curve(data, central=False)
    assert curve.x.tolist() == [0.25, 0.75]
    assert curve.observed == pytest.approx([0.5, 0.75])
    assert cal.quantile_error(data, levels=data.levels) == pytest.approx(0.125)
    assert cal.coverage(data, nominal=0.5) == pytest.approx(0.5)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_row_order_does_not_matter_and_weights_repeat_rows(seed):
    rng = np.random.default_rng(seed)
    y, std, weight = rng.normal(size=30), rng.lognormal(size=30), rng.integers(1, 4, 30)
    rows = rng.permutation(np.repeat(np.arange(30), weight))
    weighted = cal.Gaussian(y, 0 * y, std, weight=weight)
    repeated = cal.Gaussian(y[rows], 0 * y[rows], std[rows])
    for metric in (cal.interval_error, cal.quantile_error, cal.pit_error, cal.coverage, cal.crps, cal.nll, cal.pinball):
        value = metric(repeated)
        assert metric(weighted) == pytest.approx(value, rel=1e-9)
    assert 0 <= cal.interval_error(weighted) <= 0.5


def test_coverage_counts_and_tells_the_sides():
    data = cal.Gaussian([-3.0, 0.0, 0.5, 3.0, 4.0], np.zeros(5), np.ones(5))
    result = cal.coverage(data, nominal=0.9)
    assert (result, result.details["below"], result.details["above"]) == pytest.approx((0.4, 0.2, 0.4))
    assert result.details["mean_width"] == pytest.approx(2 * stats.norm.ppf(0.95))
    assert result.details["null"]["sd"] == pytest.approx(np.sqrt(0.9 * 0.1 / 5))


def test_intervals_of_counts_and_of_draws_with_ties_reach_more_than_the_nominal_coverage():
    rng, rate = np.random.default_rng(0), np.repeat([0.4, 3.0], 10_000)
    data = cal.Distribution(rng.poisson(rate), stats.poisson(rate))
    counts, draws = cal.coverage(data), cal.coverage(cal.Samples(data.y_true, rng.poisson(rate, (19, 20_000)).T))
    low, high = stats.poisson(rate).ppf([[0.05], [0.95]])
    exact = (stats.poisson(rate).cdf(high) - stats.poisson(rate).cdf(low - 1)).mean()
    assert counts.details["null"]["mean"] == pytest.approx(exact)
    for found in (counts, draws):
        assert found.details["null"]["mean"] > 0.94
        assert found == pytest.approx(found.details["null"]["mean"], abs=0.006)
    few = cal.coverage(cal.Samples([0, 0, 1, 2], [[0, 0, 1], [0, 1, 2], [1, 1, 1], [3, 2, 2]]), nominal=0.5)
    assert few.details["null"]["mean"] == pytest.approx((3 + 3 + 4 + 3) / 16)  # single values at an end lie outside
    assert few.details["tied"] == 1.0


def test_an_ensemble_cannot_cover_more_than_its_range():
    rng = np.random.default_rng(0)
    result = cal.coverage(cal.Samples(rng.normal(size=4000), rng.normal(size=(4000, 9))), nominal=0.95)
    assert result.details["null"]["mean"] == 0.8
    assert result == pytest.approx(0.8, abs=0.02)


def test_group_coverage_finds_the_group_that_is_left_out():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 2000)
    y = rng.normal(size=4000) * np.where(group == "a", 0.8, 1.25)
    data = cal.Gaussian(y, 0 * y, 0 * y + 1, group=group)
    result = cal.estimators.group_coverage(data, nominal=0.9)
    groups = result.details["groups"]
    assert groups["a"]["coverage"] == pytest.approx(np.mean(np.abs(y[:2000]) <= stats.norm.ppf(0.95)))
    assert groups["a"]["z"] > 3 > -3 > groups["b"]["z"]
    assert result > result.details["null"]["high"]
    assert cal.estimators.group_coverage(data, nominal=0.9, by=rng.integers(0, 5, 4000)) < 0.03
    wide = cal.Gaussian(np.column_stack([y, y]), np.zeros((4000, 2)), np.ones((4000, 2)), group=group)
    assert cal.estimators.group_coverage(wide, nominal=0.9).details["outputs"] == pytest.approx([result, result])
    with pytest.raises(ValueError, match="Groups are needed"):
        cal.estimators.group_coverage(y, 0 * y, 0 * y + 1)


def test_random_spread_can_be_perfectly_interval_calibrated():
    """y is N(0, 1) and the forecast t_5(0, g) with g independent of y: F(y) is uniform, the spread is noise."""
    rng = np.random.default_rng(0)
    scale = np.sqrt(rng.chisquare(5, 50_000) / 5)
    data = cal.Distribution(rng.normal(size=50_000), stats.t(5, scale=scale))
    result = cal.quantile_error(data)
    assert result < result.details["null"]["high"]
    assert cal.ence(data, bins=cal.EqualMass(20)) == pytest.approx(0.290, abs=0.01)
    scaled = cal.recalibrate.StdScaling().fit(data).transform(data)
    assert cal.ence(scaled, bins=cal.EqualMass(20)) > 0.2


def test_the_cauchy_counterexample_of_the_paper():
    rng = np.random.default_rng(0)
    data = cal.Distribution(rng.normal(size=20_000), stats.cauchy(0, np.abs(rng.normal(size=20_000))))
    assert cal.pit_error(data).details["p_value"] > 0.01


def test_levels_outside_the_unit_interval_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"levels must lie in \[0, 1\]"):
        cal.interval_error(peer_rows()[0], levels=[0.5, 1.5])
    with pytest.raises(cal.InvalidPredictions, match=r"nominal must lie in \(0, 1\)"):
        cal.coverage(peer_rows()[0], nominal=1.0)
    with pytest.raises(ValueError, match="norm must be"):
        cal.interval_error(peer_rows()[0], norm=0.5)


def test_covid_forecasts_cover_as_published(shared_data):
    with np.load(shared_data / "regression" / "covid19_eu_quantile.npz") as file:
        data = cal.Quantiles(file["y"], file["levels"], file["quantiles"])
    assert cal.coverage(data, nominal=0.9) == pytest.approx(0.885, abs=1e-3)
    result = cal.quantile_error(data)
    assert result > result.details["null"]["high"]


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
