"""Intervals of scale factor and coverage."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import LogScale, Wilson
from calibrant.inference.forecast_intervals import LogMeanSquare
from tests.inference.spreads import forecasts


def test_it_is_wilsons_interval():
    y = np.random.default_rng(0).normal(size=80)
    data = cal.Gaussian(y, np.zeros(80), np.ones(80))
    found = cal.interval(partial(cal.coverage, nominal=0.8), data, level=0.9)
    inside = round(float(found) * 80)
    theirs = stats.binomtest(inside, 80).proportion_ci(0.9, method="wilson")
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high))
    assert cal.interval(lambda d: cal.coverage(d, nominal=0.8), data, level=0.9).interval == found.interval


def test_every_kind_of_forecast_clusters_and_full_coverage():
    rng = np.random.default_rng(1)
    y, zero, one = rng.normal(size=60), np.zeros(60), np.ones(60)
    for data in (cal.Distribution(y, stats.norm(zero, one)), cal.Samples(y, rng.normal(size=(60, 30)))):
        found = cal.interval(cal.coverage, data)
        assert found.interval.low < found < found.interval.high
    everything = cal.interval(cal.coverage, cal.Gaussian(zero, zero, one)).interval
    assert everything.high == 1
    assert everything.low < 0.97
    rows = np.repeat(np.arange(60), 5)
    group = cal.Gaussian(y[rows], zero[rows], one[rows], group=rows)
    alone = cal.interval(cal.coverage, cal.Gaussian(y, zero, one)).interval
    together = cal.interval(cal.coverage, group).interval
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high), abs=1e-9)


def test_other_estimates_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="share of rows"):
        cal.interval(cal.ence, cal.Gaussian([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]), method=Wilson())


@pytest.mark.no_cover
@pytest.mark.parametrize("noise", ["normal", "t5", "skewed"])
def test_the_interval_covers_the_factor(noise):
    rng = np.random.default_rng(0)
    hits = [
        1.2 in cal.interval(cal.scale_factor, forecasts(rng, 200, noise=noise, factor=1.2)).interval for _ in range(200)
    ]
    assert np.mean(hits) >= 0.91


def test_the_factor_and_its_square_have_one_interval():
    data = forecasts(np.random.default_rng(1), 300)
    root, square = (cal.interval(f, data).interval for f in (cal.scale_factor, cal.mean_squared_z))
    assert (root.low**2, root.high**2) == pytest.approx((square.low, square.high))
    assert float(cal.scale_factor(data)) in root
    assert str(square.target) == "scale factor (squared)"


def test_for_normal_errors_the_standard_error_is_the_known_one():
    found = LogMeanSquare.of(forecasts(np.random.default_rng(2), 20_000), needed_by="test")
    assert found.error == pytest.approx(np.sqrt(2 / 20_000), rel=0.05)
    assert found.missing < 0.01
    assert not found.heavy_tails
    assert LogMeanSquare.of(forecasts(np.random.default_rng(2), 100, noise="t3"), needed_by="test").heavy_tails


def test_clusters_and_weights_widen_it():
    rng = np.random.default_rng(3)
    data = forecasts(rng, 600)
    common = np.repeat(rng.normal(size=120), 5)
    columns = (data.std * common, data.mean, data.std)
    clustered, plain = (
        cal.interval(cal.scale_factor, cal.Gaussian(*columns, group=group)).interval
        for group in (np.repeat(np.arange(120), 5), None)
    )
    assert clustered.high - clustered.low > 1.7 * (plain.high - plain.low)
    weight = np.where(np.arange(600) < 60, 50.0, 1.0)
    uneven = cal.interval(cal.scale_factor, forecasts(rng, 600, weight=weight)).interval
    even = cal.interval(cal.scale_factor, forecasts(rng, 600)).interval
    assert uneven.high - uneven.low > 1.7 * (even.high - even.low)


def test_a_small_mean_square_is_raised_by_what_may_be_missing():
    low, high = LogMeanSquare(-0.3, 0.1, 0.2, heavy_tails=False), LogMeanSquare(0.3, 0.1, 0.2, heavy_tails=False)
    assert low.statistic() == pytest.approx(-1)
    assert high.statistic() == pytest.approx(3)
    assert LogMeanSquare(-0.1, 0.1, 0.2, heavy_tails=False).statistic() == 0
    assert low.statistic(null=-0.3) == 0
    assert low.ends(0.95) == pytest.approx((-0.3 - 0.196, -0.3 + 0.196 + 0.2), abs=1e-3)


def test_another_target_is_refused():
    with pytest.raises(TypeError, match="scale_factor and mean_squared_z"):
        cal.interval(cal.ence, forecasts(np.random.default_rng(4), 50), method=LogScale())
