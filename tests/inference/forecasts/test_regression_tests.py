"""Tests of predicted distributions."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import MeanSquaredZ, PitUniformity, SpreadChiSquare


@pytest.mark.parametrize("method", [MeanSquaredZ(), PitUniformity(), SpreadChiSquare()], ids=lambda m: type(m).__name__)
def test_forecasts_are_judged_at_the_level_and_found_out(method):
    rng = np.random.default_rng(0)
    level, power = [], []
    for _ in range(120):
        mean, std = rng.normal(size=300), rng.uniform(0.5, 2, 300)
        noise = rng.normal(size=300) * std
        level.append(cal.calibration_test(cal.Gaussian(mean + noise, mean, std), method=method).p_value <= 0.05)
        power.append(cal.calibration_test(cal.Gaussian(mean + 1.5 * noise, mean, std), method=method).p_value <= 0.05)
    assert np.mean(level) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert np.mean(power) > 0.8


def test_pit_uniformity_is_the_kolmogorov_smirnov_test():
    y = np.random.default_rng(1).normal(size=1000)
    found = cal.calibration_test(cal.Gaussian(y, np.zeros(1000), np.full(1000, 1.1)))
    theirs = stats.kstest(stats.norm.cdf(y / 1.1), "uniform")
    assert found.statistic == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=0.05)
