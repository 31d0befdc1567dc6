"""Interval of the scale factor, and the robust test behind it."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import LogScale
from calibrant.inference.forecasts.scale_factor import LogMeanSquare
from tests.inference.spreads import forecasts


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
