"""Evidence on forecasts: bias, the row that dominates, and levels of coverage."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.reporting.assembling import Assembly
from calibrant.reporting.forecast_evidence import ForecastPart, forecast_evidence, mean_standardised
from calibrant.reporting.verdicts.evidence import Words
from tests.reporting.samples import SPREAD

rng = np.random.default_rng(3)


def evidence(data):
    return forecast_evidence(ForecastPart(data), Assembly(), words=Words("forecast"), tolerance=None)


def test_the_bias_is_students_t():
    value, p = mean_standardised(ForecastPart(SPREAD))
    z = SPREAD.error() / SPREAD.std
    known = stats.ttest_1samp(z, 0)
    assert (value.value, p) == pytest.approx((z.mean(), known.pvalue))
    assert (value.low, value.high) == pytest.approx(tuple(known.confidence_interval(0.95)))


def test_the_bias_allows_for_clusters():
    z = np.repeat(rng.normal(size=50), 20)
    data = cal.Gaussian(z, np.zeros(1000), np.ones(1000), group=np.repeat(np.arange(50), 20))
    value, _ = mean_standardised(ForecastPart(data))
    assert value.high - value.low == pytest.approx(
        2 * stats.t.ppf(0.975, 49) * z[::20].std(ddof=1) / np.sqrt(50), rel=0.01
    )


def test_the_row_that_dominates_is_named():
    y = np.concatenate([rng.normal(size=300), [50.0]])
    found = evidence(cal.Gaussian(y, np.zeros(301), np.ones(301)))
    assert found.largest_row == 300
    assert found.largest_share > 0.8
    assert (found.largest_error, found.largest_spread) == (50.0, 1.0)


def test_coverage_is_of_the_widest_interval_up_to_90_percent():
    y = rng.normal(size=300)
    levels = [0.025, 0.1, 0.5, 0.9, 0.975]
    found = evidence(cal.Quantiles(y, levels, np.tile(stats.norm.ppf(levels), (300, 1))))
    assert found.level == pytest.approx(0.8)
    assert found.ratio is found.bias is None
    assert not found.by_spread


def test_draws_that_are_all_alike_are_counted_and_left_out():
    draws = rng.normal(size=(200, 10))
    draws[:4] = 0.5
    found = evidence(cal.Samples(rng.normal(size=200), draws))
    assert found.zero_spread == 4
    assert found.ratio is not None
