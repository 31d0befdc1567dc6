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
    both = cal.by_group(cal.ece, data, by=frame, depth=2)
    assert len(both) == 3 + 2 + 6 == both.search.groups
    assert both["place x device", ("b", "(missing)")].n == 100
    assert both.columns == ("place", "device", "place x device")
    some = cal.by_group(cal.ece, data, by=frame, depth=2, intervals=4)
    assert [row.label(some.columns) for row in some.ranked] == [row.label(both.columns) for row in both.ranked[:4]]
    assert "11 groups of 3 columns and crosses" in str(some)
    assert "Shown: the 4 groups" in str(some)


def interaction(n, rng, columns=2, error=0.15):
    """A model that is right for every value of each column, but off in every combination of the first two."""
    by = {f"c{k}": rng.integers(0, 4, n) for k in range(columns)}
    p = rng.uniform(0.2, 0.8, n)
    sign = np.where((by["c0"] + by["c1"]) % 2 == 0, 1, -1)
    return cal.Binary(rng.random(n) < p + error * sign, p), by


def test_an_error_that_only_combinations_show_is_found_by_them():
    data, by = interaction(20_000, np.random.default_rng(0), columns=6)
    each = cal.by_group(cal.ece, data, by=by, intervals=0)
    assert each.worst.p_value > 0.05
    found = cal.by_group(cal.ece, data, by=by, depth=2, intervals=16)
    assert {row.column for row in found.rows} == {"c0 x c1"}
    assert all(row.direction == ("too low" if sum(row.group) % 2 == 0 else "too high") for row in found.rows)
    assert all(row.adjusted < 1e-6 and row.estimate.interval.low > 0.05 for row in found.rows)
    assert all(0.1 < abs(row.shrunk_gap) < abs(row.gap) for row in found.rows)
    assert found.search.groups == 6 * 4 + 15 * 16
    assert found.search.significant >= 16


def test_what_is_found_on_one_half_is_confirmed_on_the_other():
    data, by = interaction(20_000, np.random.default_rng(1), columns=3)
    found = cal.by_group(cal.ece, data, by=by, depth=2, confirm=True, intervals=20)
    real = [row for row in found.rows if row.column == "c0 x c1"]
    assert len(real) == 16
    assert found.n == 10_000
    assert all(row.adjusted < 0.01 and row.found < 0.01 for row in real)
    assert sum(row.n for row in real) == 10_000
    assert "found on half of the rows" in str(found)
    calibrated = cal.Binary(np.random.default_rng(2).random(20_000) < data.y_prob, data.y_prob)
    again = cal.by_group(cal.ece, calibrated, by=by, depth=2, confirm=True, intervals=20)
    assert again.worst.p_value > 0.05
    assert again.search.groups == 20


def test_half_of_the_rows_is_needed_to_confirm():
    with pytest.raises(cal.InvalidPredictions, match="one row only"):
        cal.by_group(cal.ece, [1], [0.5], by=["a"], confirm=True)
    with pytest.raises(cal.InvalidPredictions, match="rows in both halves"):
        cal.by_group(cal.brier, [1, 0, 1, 0], [0.5] * 4, by=["a", "b", "c", "d"], confirm=True)


def test_numbers_are_divided_at_their_quantiles():
    rng = np.random.default_rng(0)
    age, p = rng.uniform(20, 80, 4000), rng.random(4000)
    data = cal.Binary(rng.random(4000) < np.where(age > 65, p**2, p), p)
    found = cal.by_group(cal.ece, data, by={"age": age, "sex": rng.integers(0, 2, 4000)}, quantiles=4, depth=2)
    assert found.search.groups == 4 + 2 + 8
    first = found.ranked[0]
    assert (first.column, str(first.group)[:2], first.direction) == ("age", "> ", "too high")
    with pytest.raises(ValueError, match="quantiles"):
        cal.by_group(cal.ece, data, by=age, quantiles=1)


def test_a_calibrated_model_has_no_slice_that_stands_out():
    rng, alarms = np.random.default_rng(3), []
    for _ in range(20):
        p = rng.beta(0.5, 5, 2000)
        by = {f"c{k}": rng.integers(0, 3, 2000) for k in range(12)}
        found = cal.by_group(cal.brier, cal.Binary(rng.random(2000) < p, p), by=by, depth=2, intervals=0)
        assert found.search.groups == 36 + 66 * 9
        alarms.append(found.worst.p_value < 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 20)


def test_the_seed_and_the_number_of_draws_come_from_the_test():
    data, place = grouped(100)
    first, again, other = (
        cal.by_group(cal.ece, data, by=place, intervals=0, test=cal.inference.MultiScale(draws, seed))
        for draws, seed in ((49, 0), (49, 0), (99, 1))
    )
    assert first.to_dict() == again.to_dict() != other.to_dict()


def test_shrinkage_draws_groups_together_and_small_ones_most():
    rng = np.random.default_rng(5)
    place = np.repeat(["a", "b", "c", "d"], [60, 1500, 1500, 1500])
    slope = np.repeat([0.3, 0.2, 0.6, 1.0], [60, 1500, 1500, 1500])
    p = rng.random(len(place))
    data = cal.Binary(rng.random(len(p)) < 0.5 + slope * (p - 0.5), p)
    found = cal.by_group(partial(cal.debiased_ece, norm=1), data, by=place, shrink=True)
    values = np.array([float(e) for e in found.estimates.values()])
    shrunk = np.array([e.details["shrunk"] for e in found.estimates.values()])
    assert np.ptp(shrunk) < np.ptp(values)
    kept = np.abs(shrunk - shrunk.mean()) / np.abs(values - values.mean())
    assert kept[0] < min(kept[1:])
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
