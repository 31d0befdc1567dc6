"""Intervals of the O:E ratio and of the calibration intercept."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import MidP
from calibrant.numerics.binomial_interval import mid_p_interval

RNG = np.random.default_rng(4)
Z = RNG.normal(-1, 1.2, 200)
P = 1 / (1 + np.exp(-Z))
Y = (RNG.random(200) < P).astype(int)


def ends(estimator, data, **options):
    found = cal.interval(estimator, data, **options).interval
    return found.low, found.high


def test_of_one_constant_prediction_it_is_the_binomial_interval():
    y = np.arange(50) < 7
    rate = 50 * 0.14 * 0.86 / (50 * 0.14 * 0.86 * 50 / 49)
    low, high = mid_p_interval(7 * rate, 50 * rate, 0.9)
    data = cal.Binary(y, np.full(50, 0.2))
    assert ends(cal.observed_expected, data, level=0.9) == pytest.approx((low / 0.2, high / 0.2))
    odds = np.log(np.array([low, high]) / (1 - np.array([low, high]))) - np.log(0.25)
    assert ends(cal.calibration_intercept, data, level=0.9) == pytest.approx(tuple(odds))


def test_the_intercepts_are_those_at_which_so_many_events_are_expected():
    found = cal.interval(cal.calibration_intercept, cal.Binary(Y, P))
    assert found.interval.low < found < found.interval.high
    expected = [np.sum(1 / (1 + np.exp(-(a + Z)))) for a in (found.interval.low, found.interval.high)]
    score = Y - 1 / (1 + np.exp(-(found + Z)))
    variance = max(score @ score * 200 / 199, np.sum((Y - score) * (1 - Y + score))) / 200**2
    size = Y.mean() * (1 - Y.mean()) / variance
    assert expected == pytest.approx([200 * float(end) for end in mid_p_interval(Y.mean() * size, size, 0.95)])


def test_no_events_and_nothing_but_events():
    low, high = ends(cal.observed_expected, cal.Binary(np.zeros(100), np.full(100, 0.02)))
    assert low == 0
    assert high == pytest.approx((1 - 0.05 ** (1 / 100)) / 0.02)
    assert ends(cal.calibration_intercept, cal.Binary(np.zeros(100), np.full(100, 0.02)))[0] == -np.inf
    low, high = ends(cal.calibration_intercept, cal.Binary(np.ones(20), np.full(20, 0.5)))
    assert high == np.inf
    assert 0 < low < 3
    group = np.repeat(np.arange(10), 10)
    assert (
        ends(cal.observed_expected, cal.Binary(np.zeros(100), P[:100], group=group))[1]
        > 2 * (ends(cal.observed_expected, cal.Binary(np.zeros(100), P[:100]))[1])
    )


def test_copies_of_rows_in_one_cluster_tell_nothing_new():
    rows = np.repeat(np.arange(200), 4)
    for estimator in (cal.observed_expected, cal.calibration_intercept):
        alone = ends(estimator, cal.Binary(Y, P, group=np.arange(200)))
        assert ends(estimator, cal.Binary(Y[rows], P[rows], group=rows)) == pytest.approx(alone, rel=1e-6)
        assert ends(estimator, cal.BinTable.of(cal.Binary(Y, P), cal.table.Distinct())) == pytest.approx(
            ends(estimator, cal.Binary(Y, P))
        )


def test_rows_of_0_and_1_do_not_move_the_intercept():
    y, p = np.append(Y, [0, 1, 1]), np.append(P, [0.0, 1.0, 0.0])
    assert ends(cal.calibration_intercept, cal.Binary(y, p)) == pytest.approx(
        ends(cal.calibration_intercept, cal.Binary(Y, P)), rel=1e-3
    )


def test_other_estimates_are_refused():
    with pytest.raises(TypeError, match="observed_expected and calibration_intercept"):
        cal.interval(cal.ece, cal.Binary(Y, P), method=MidP())
    with pytest.raises(cal.InvalidPredictions):
        cal.interval(cal.observed_expected, cal.Multiclass([0, 1, 2], np.eye(3)))
