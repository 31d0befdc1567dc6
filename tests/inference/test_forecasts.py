"""Tests of predicted distributions."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import ttest_1samp

import calibrant as cal
from calibrant.inference import MeanSquaredZ, PitUniformity, SpreadChiSquare
from calibrant.inference.forecasts import mean_standardised_error


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


def test_rows_are_students_test():
    rng = np.random.default_rng(0)
    y, std = rng.normal(0.2, 1.0, 60), rng.uniform(0.5, 2, 60)
    found, expected = mean_standardised_error(cal.Gaussian(y, np.zeros(60), std)), ttest_1samp(y / std, 0)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.value.low == pytest.approx(expected.confidence_interval().low)
    assert found.value.high == pytest.approx(expected.confidence_interval().high)


def test_clusters_are_units():
    y = np.repeat(np.random.default_rng(0).normal(0.3, 1, 20), 10)
    data = cal.Gaussian(y, np.zeros(200), np.ones(200), group=np.arange(200) // 10)
    assert mean_standardised_error(data).p_value == pytest.approx(ttest_1samp(y[::10], 0).pvalue)


def test_what_has_no_mean():
    assert mean_standardised_error(cal.Gaussian([1.0], [0.0], [1.0])) is None
    assert mean_standardised_error(cal.Quantiles([1.0, 2.0], [0.1, 0.9], [[0.0, 1.0], [0.0, 1.0]])) is None
