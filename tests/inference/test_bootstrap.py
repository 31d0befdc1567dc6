"""The bootstrap: means, weights, clusters, estimators of rows."""

import math

import numpy as np
import pytest

import calibrant as cal
from tests.inference.worlds import BENT


def test_bootstrap_of_a_mean_is_the_textbook_interval():
    data = BENT.sample(2000)
    found = cal.interval(cal.brier, data, method=cal.Bootstrap(999)).interval
    squares = (data.y_true - data.y_prob) ** 2
    reach = 1.96 * squares.std() / math.sqrt(2000)
    assert found.low == pytest.approx(squares.mean() - reach, abs=reach / 6)
    assert found.high == pytest.approx(squares.mean() + reach, abs=reach / 6)
    other = cal.Bootstrap(999, kind="bias-corrected").interval(cal.brier, data)
    assert (other.low, other.high) == pytest.approx((found.low, found.high), abs=reach / 4)


def test_bootstrap_takes_weights_and_estimators_of_rows():
    data = BENT.sample(1500)
    plain = cal.Bootstrap(299).interval(cal.brier, data)
    weighted = cal.Bootstrap(299).interval(cal.brier, cal.Binary(data.y_true, data.y_prob, weight=np.ones(1500)))
    assert weighted.low == pytest.approx(plain.low, abs=0.004)
    by_rows = cal.Bootstrap(99).interval(lambda d: float(np.mean(d.y_true)), data)
    assert by_rows.low < data.y_true.mean() < by_rows.high
    gaussian = cal.Gaussian(np.sin(np.arange(200.0)), np.zeros(200), np.linspace(0.5, 1, 200))
    assert "Bootstrap" in cal.interval(cal.ence, gaussian, method=cal.Bootstrap(49)).interval.method


def test_clusters_are_drawn_whole():
    data = BENT.sample(300)
    tenfold = cal.Binary(np.repeat(data.y_true, 10), np.repeat(data.y_prob, 10), group=np.repeat(np.arange(300), 10))
    found = (
        cal.Bootstrap(299).interval(cal.brier, data),
        cal.inference.Clustered(299).interval(cal.brier, tenfold),
        cal.Bootstrap(299).interval(cal.brier, cal.Binary(tenfold.y_true, tenfold.y_prob)),
    )
    one, clustered, naive = (interval.high - interval.low for interval in found)
    assert clustered == pytest.approx(one, rel=0.2)
    assert naive < 0.5 * one


def test_percentile_intervals_are_refused():
    with pytest.raises(ValueError, match="percentile"):
        cal.Bootstrap(kind="percentile")
