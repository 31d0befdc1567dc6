"""Results by group."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import calibrant as cal


def grouped(n=600):
    rng = np.random.default_rng(0)
    p, place = rng.random(3 * n), np.repeat(["a", "b", "c"], n)
    return cal.Binary(rng.random(3 * n) < np.where(place == "b", p**1.6, p), p), place


def test_each_group_has_its_estimate_interval_test_and_direction():
    data, place = grouped()
    found = cal.by_group(cal.ece, data, by=place)
    assert list(found.estimates) == ["a", "b", "c"]
    rows = place == "b"
    alone = cal.Binary(data.y_true[rows], data.y_prob[rows])
    assert found["b"] == cal.ece(alone)
    assert found["b"].interval == cal.interval(cal.ece, alone).interval
    assert found.worst.method.startswith("worst of 3 groups: b")
    assert found.worst.p_value < 1e-4
    first = found.ranked[0]
    assert (first.group, first.direction, first.n, first.events) == ("b", "too high", 600, alone.y_true.sum())
    assert first.gap == pytest.approx(alone.y_prob.mean() - alone.y_true.mean())
    assert found.tests["a"].p_value > 0.05


def test_sixty_reversed_groups_are_all_flagged_and_only_some_get_intervals():
    rng = np.random.default_rng(0)
    p = rng.random(60 * 50)
    found = cal.by_group(cal.ece, rng.random(len(p)) < 1 - p, p, by=np.arange(len(p)) % 60, intervals=3)
    assert max(test.p_value for test in found.tests.values()) < 0.01
    with_interval = [row for row in found.rows if row.estimate.interval is not None]
    assert [row.group for row in sorted(with_interval, key=lambda row: row.adjusted)] == [
        row.group for row in found.ranked[:3]
    ]


def test_the_worst_of_many_calibrated_groups_is_no_alarm():
    rng, alarms = np.random.default_rng(1), []
    for _ in range(25):
        p = rng.random(1000)
        data = cal.Binary(rng.random(1000) < p, p, group=np.arange(1000) % 10)
        found = cal.by_group(cal.brier, data, method=cal.Bootstrap(9), test=cal.inference.HosmerLemeshow())
        alarms.append(found.worst.p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 25)


def test_several_columns_and_their_cross():
    data, place = grouped(200)
    device = np.where(np.arange(600) % 2 == 0, "web", None)
    frame = pd.DataFrame({"place": place, "device": device})
    each = cal.by_group(cal.ece, data, by=frame, intervals=0)
    names = [*(("place", name) for name in "abc"), ("device", "web"), ("device", "(missing)")]
    assert sorted(each.estimates) == sorted(names)
    both = cal.by_group(cal.ece, data, by=frame, cross=True, intervals=0)
    assert len(both) == 6
    assert both[("b", "(missing)")].n == 100
    assert "place x device" in both.columns


def test_the_seed_and_the_number_of_draws_come_from_the_test():
    data, place = grouped(100)
    first, again, other = (
        cal.by_group(cal.ece, data, by=place, intervals=0, test=cal.inference.MultiScale(draws, seed))
        for draws, seed in ((49, 0), (49, 0), (99, 1))
    )
    assert first.to_dict() == again.to_dict() != other.to_dict()


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
    assert found.ranked[0].to_dict()["shrunk"] in shrunk


def test_forecasts_have_no_events_and_several_classes_those_of_the_predicted_class():
    rng = np.random.default_rng(0)
    place = np.repeat(["x", "y"], 100)
    gauss = cal.by_group(cal.crps, cal.Gaussian(rng.normal(size=200), np.zeros(200), np.ones(200)), by=place)
    assert gauss.rows[0].events is gauss.rows[0].gap is None
    assert "events" not in str(gauss)


def test_groups_must_be_given_and_clusters_within_them_are_refused():
    data, place = grouped(20)
    with pytest.raises(cal.InvalidPredictions, match="by"):
        cal.by_group(cal.ece, data)
    assert "2 groups" in repr(cal.by_group(cal.brier, data, by=np.arange(60) % 2, method=cal.Bootstrap(9)))
    clustered = cal.Binary(data.y_true, data.y_prob, group=np.arange(60) // 2)
    with pytest.raises(cal.InvalidPredictions, match="clusters"):
        cal.by_group(cal.ece, clustered, by=place)
    assert len(cal.by_group(cal.ece, clustered, intervals=0)) == 30
    assert clustered.group is not None
