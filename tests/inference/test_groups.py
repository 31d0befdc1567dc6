"""Results by group."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal


def grouped(n=600):
    rng = np.random.default_rng(0)
    p, place = rng.random(3 * n), np.repeat(["a", "b", "c"], n)
    return cal.Binary(rng.random(3 * n) < np.where(place == "b", p**1.6, p), p), place


def test_each_group_has_its_estimate_interval_and_test():
    data, place = grouped()
    found = cal.by_group(cal.ece, data, by=place)
    assert list(found.estimates) == ["a", "b", "c"]
    rows = place == "b"
    alone = cal.Binary(data.y_true[rows], data.y_prob[rows])
    assert found["b"] == cal.ece(alone)
    assert found["b"].interval == cal.interval(cal.ece, alone).interval
    assert found.worst.method.startswith("worst of 3 groups: b")
    assert found.worst.p_value == pytest.approx(3 * cal.calibration_test(alone).p_value)


def test_the_worst_of_many_calibrated_groups_is_no_alarm():
    rng, alarms = np.random.default_rng(1), []
    for _ in range(25):
        p = rng.random(1000)
        data = cal.Binary(rng.random(1000) < p, p, group=np.arange(1000) % 10)
        found = cal.by_group(cal.brier, data, method=cal.Bootstrap(9), test=cal.inference.HosmerLemeshow())
        alarms.append(found.worst.p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 25)


def test_shrinkage_draws_groups_together_and_small_ones_most():
    data, place = grouped(400)
    small = np.concatenate([np.flatnonzero(place == "a")[:40], np.flatnonzero(place != "a")])
    data = cal.Binary(data.y_true[small], data.y_prob[small])
    found = cal.by_group(partial(cal.debiased_ece, norm=1), data, by=place[small], shrink=True)
    values = np.array([float(e) for e in found.estimates.values()])
    shrunk = np.array([e.details["shrunk"] for e in found.estimates.values()])
    assert np.ptp(shrunk) < np.ptp(values)
    kept = np.abs(shrunk - shrunk.mean()) / np.abs(values - values.mean())
    assert kept[0] < kept[1]


def test_groups_must_be_given():
    data, _ = grouped(20)
    with pytest.raises(cal.InvalidPredictions, match="by"):
        cal.by_group(cal.ece, data)
    assert "2 groups" in repr(cal.by_group(cal.brier, data, by=np.arange(60) % 2, method=cal.Bootstrap(9)))
