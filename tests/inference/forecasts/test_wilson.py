"""Wilson's interval of one coverage."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference import Wilson


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
