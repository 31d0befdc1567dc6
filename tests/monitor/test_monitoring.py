from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.data.validation import InvalidPredictions
from calibrant.monitor import Monitor
from calibrant.numerics.arrays import expit


def days(seed, number, *, rows=100, shift=0.0, change=10**9, mean=-1.0):
    rng = np.random.default_rng(seed)
    for day in range(number):
        x = rng.normal(mean, 1.2, rows)
        yield day, rng.random(rows) < expit(x + shift * (day >= change)), expit(x)


def watched(monitor, stream, **options):
    for day, y, p in stream:
        status = monitor.update(y, p, time=day, batch=day, **options)
    return status


@pytest.fixture(scope="module")
def shifted():
    monitor = Monitor(tolerance=0.0)
    return monitor, watched(monitor, days(0, 80, rows=200, shift=0.4, change=50))


def test_a_calibrated_stream_raises_no_alarm():
    status = watched(Monitor(tolerance=0.0), days(1, 60))
    assert not status.alarm
    assert status.p_value > 0.05
    assert status.enough
    assert 0 in status.gap.interval
    assert 1 in status.observed_expected.interval
    assert (status.since, status.where, status.groups) == (None, None, ())


@pytest.mark.no_cover
def test_false_alarms_are_rare_over_many_looks():
    alarms = sum(watched(Monitor(tolerance=0.0), days(100 + k, 60, rows=60)).alarm for k in range(25))
    assert alarms <= 3  # 5 % at most: more than 3 of 25 has a probability of 3 %


def test_a_shift_raises_an_alarm_that_says_since_when_and_where(shifted):
    _, status = shifted
    assert status.alarm
    assert 50 <= int(status.first_alarm) < 66
    assert abs(int(status.since) - 50) <= 3
    assert int(status.since_set[0]) <= int(status.since) <= int(status.since_set[1])
    assert status.where.direction == "too low"
    assert status.gap.interval.low > 0
    assert status.observed_expected.interval.low > 1


def test_the_repair_undoes_the_shift(shifted):
    monitor, _ = shifted
    repaired = monitor.repair().predict_proba(np.array([0.1, 0.3, 0.6]))[:, 1]
    np.testing.assert_allclose(repaired, expit(np.log([0.1 / 0.9, 0.3 / 0.7, 1.5]) + 0.4), atol=0.04)


def test_the_curve_now_lies_above_the_diagonal_after_the_shift(shifted):
    monitor, _ = shifted
    curve = monitor.curve(half_life=10)
    middle = (curve.predicted > 0.1) & (curve.predicted < 0.8)
    assert (curve.observed - curve.predicted)[middle].mean() > 0.04


def test_the_improvement_uses_the_level_of_the_monitor(shifted):
    monitor, _ = shifted
    y, p = np.array([0, 1] * 200), np.full(400, 0.3)
    assert monitor.improvement(y, p, p + 0.2).interval.level == 0.95


def same(a, b):
    assert a.status().evidence == pytest.approx(b.status().evidence, abs=1e-9)


def test_order_of_rows_repeated_and_late_deliveries_change_nothing():
    stream, rng = list(days(3, 60, shift=0.2, change=40)), np.random.default_rng(0)
    plain, other = Monitor(reference=stream[0][2]), Monitor(reference=stream[0][2])
    watched(plain, stream)
    late = sorted(stream, key=lambda one: one[0] + (2.5 if one[0] % 2 and one[0] else 0))
    for day, y, p in late:
        order = rng.permutation(len(y))
        other.update(y[order], p[order], time=day, batch=day)
        if day % 7 == 0:
            assert "before" in str(other.update(y, p, time=day, batch=day))
    same(plain, other)
    assert plain.rows == other.rows == 6000


def test_one_large_delivery_equals_many_small_ones():
    stream = list(days(4, 20))
    small, large = (Monitor(reference=stream[0][2]) for _ in range(2))
    watched(small, stream)
    large.update(
        *(np.concatenate(column) for column in list(zip(*stream, strict=True))[1:]), time=np.repeat(range(20), 100)
    )
    same(small, large)


def test_merged_shards_equal_one_monitor_also_if_they_end_on_different_days():
    stream = list(days(5, 40))
    options = {"reference": stream[0][2], "origin": 0}
    whole, first, second = (Monitor(**options) for _ in range(3))
    watched(whole, stream)
    watched(first, ((day, y[::2], p[::2]) for day, y, p in stream[:31]))
    for day, y, p in stream:
        second.update(y[1::2] if day < 31 else y, p[1::2] if day < 31 else p, time=day, batch=(day, "b"))
    first.merge(second)
    same(whole, first)
    assert first.rows == whole.rows


@pytest.mark.parametrize("change", [{"tolerance": 0.2}, {"origin": 1}, {"reference": [0.5, 0.9]}, {"groups": ["a"]}])
def test_shards_of_other_settings_are_not_merged(change):
    options = {"reference": [0.1, 0.2], "origin": 0}
    shards = [Monitor(**options), Monitor(**(options | change))]
    for shard in shards:
        shard.update([0, 1], [0.2, 0.6], time=2)
    with pytest.raises(ValueError, match="Only shards with the same"):
        shards[0].merge(shards[1])


def test_shards_that_hold_the_same_delivery_are_not_merged():
    shards = [Monitor(reference=[0.1], origin=0) for _ in range(2)]
    for shard in shards:
        shard.update([0, 1], [0.2, 0.6], time=2, batch="monday")
    with pytest.raises(ValueError, match="in common"):
        shards[0].merge(shards[1])


def test_the_right_group_is_named_and_the_status_speaks_of_it():
    rng, monitor = np.random.default_rng(6), Monitor(tolerance=0.0)
    for day in range(130):
        x, group = rng.normal(-1, 1.2, 300), rng.choice(list("abcdef"), 300)
        y = rng.random(300) < expit(x + 0.9 * ((group == "d") & (day >= 80)))
        status = monitor.update(y, expit(x), time=day, group=group)
    assert status.groups == ("d",)
    assert status.series == "d"
    assert status.gap > 0.05


def test_a_class_that_becomes_more_frequent_is_named():
    rng, monitor = np.random.default_rng(7), Monitor(tolerance=0.0)
    for day in range(60):
        z = rng.normal(0, 1.5, (150, 3))
        true = z + np.array([0, 0, 0.7]) * (day >= 30)
        P, Q = (np.exp(one) / np.exp(one).sum(axis=1, keepdims=True) for one in (z, true))
        y = (rng.random(150)[:, None] > np.cumsum(Q, axis=1)).sum(axis=1)
        status = monitor.update(y, P, time=day)
    assert status.groups[0] == "class 2"
    assert status.series == "class 2"


@pytest.mark.parametrize("kind", ["gaussian", "distribution", "samples", "quantiles", "outputs"])
def test_forecasts_are_watched_through_their_probability_integral_transform(kind):
    rng, monitor = np.random.default_rng(8), Monitor(tolerance=0.0)
    made = {
        "gaussian": lambda y: cal.Gaussian(y, np.zeros(120), np.ones(120)),
        "distribution": lambda y: cal.Distribution(y, norm(loc=np.zeros(120))),
        "samples": lambda y: cal.Samples(y, rng.normal(size=(120, 19))),
        "quantiles": lambda y: cal.Quantiles(
            y, [0.1, 0.3, 0.5, 0.7, 0.9], np.tile(norm.ppf([0.1, 0.3, 0.5, 0.7, 0.9]), (120, 1))
        ),
        "outputs": lambda y: cal.Gaussian(np.c_[y, y], np.zeros((120, 2)), np.ones((120, 2))),
    }[kind]
    for day in range(40):
        status = monitor.update(made(rng.normal(0, 1, 120)), time=day)
    assert not status.alarm
    for day in range(40, 80):
        status = monitor.update(made(rng.normal(0, 1.6, 120)), time=day)
    assert status.alarm
    assert int(status.first_alarm) < 60
    assert status.gap > 0
    assert "spread is too small" in str(status)


def test_a_table_of_each_period_gives_nearly_the_evidence_of_its_rows():
    stream = list(days(9, 15, rows=400))
    rows, tables = (Monitor(reference=stream[0][2]) for _ in range(2))
    for day, y, p in stream:
        rows.update(y, p, time=day)
        status = tables.update(cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid()), time=day)
    assert status.evidence == pytest.approx(rows.status().evidence, abs=1e-4)
    assert status.rows == 6000


def test_a_table_of_billions_of_rows_needs_no_array_of_its_rows():
    small = cal.BinTable.of(cal.Binary([0, 1, 1, 0], [0.1, 0.7, 0.7, 0.3]), cal.table.Distinct())
    large = replace(small, sums=1e12 * small.sums)
    assert Monitor().update(large, time="2026-11-18").rows == 4 * 10**12


def test_a_cluster_counts_as_one_row():
    stream = list(days(10, 30, rows=200))
    once, often = (Monitor(reference=stream[0][2], tolerance=0.0) for _ in range(2))
    for day, y, p in stream:
        once.update(y[:100], p[:100], time=day)
        often.update(np.repeat(y[:100], 5), np.repeat(p[:100], 5), time=day, cluster=np.repeat(range(100), 5))
    same(once, often)


def test_weights_are_fractions_of_rows():
    y, p = np.array([0, 1, 1, 0] * 50), np.full(200, 0.5)
    half, whole = Monitor(), Monitor()
    half.update(np.tile(y, 2), np.tile(p, 2), weight=np.full(400, 0.5))
    whole.update(y, p)
    same(half, whole)


def test_a_mean_time_between_false_alarms_is_kept():
    lengths = []
    for k in range(12):
        monitor = Monitor(arl=20, tolerance=0.0)
        for day, y, p in days(200 + k, 60, rows=40):
            if monitor.update(y, p, time=day).alarm:
                break
        lengths.append(day + 1)
    assert np.mean(lengths) >= 20
    assert monitor.status().p_value is None


@pytest.mark.no_cover
def test_the_evidence_over_time_is_kept_in_a_bounded_list():
    monitor = Monitor()
    for day in range(450):
        monitor.update([0, 1], [0.3, 0.6], time=day)
    assert len(monitor.history) <= 200
    assert monitor.history[-1][0] == 449
    assert [day for day, _ in monitor.history] == sorted(day for day, _ in monitor.history)


def test_few_rows_are_not_enough():
    status = Monitor().update([0, 1, 0], [0.2, 0.6, 0.1])
    assert not status.enough
    assert status.exit_code == 3
    assert "Not enough yet" in str(status)


def test_many_rows_without_expected_events_are_not_enough():
    assert not Monitor().update(np.zeros(5000), np.full(5000, 1e-6)).enough


def test_groups_that_come_later_are_watched_too():
    monitor = Monitor(tolerance=0.0)
    monitor.update([0, 1], [0.3, 0.6], group=["a", "b"])
    for _ in range(40):
        status = monitor.update(np.ones(20), np.full(20, 0.3), group=["new"] * 20)
    assert "new" in status.groups
    assert sum(monitor.shares.values()) <= 1


def refused(monitor, match, *args, **options):
    before = (monitor.rows, monitor.deliveries, monitor.now, monitor.status().evidence)
    with pytest.raises(InvalidPredictions, match=match):
        monitor.update(*args, **options)
    assert (monitor.rows, monitor.deliveries, monitor.now, monitor.status().evidence) == before


def test_what_is_refused_changes_nothing():
    monitor = Monitor(horizon=0)
    monitor.update([0, 1], [0.3, 0.6], time=["2026-11-01", "2026-11-02"], batch="first")
    today = "2026-11-03"
    refused(monitor, "mistyped", [0, 1], [0.3, 0.6], time="2226-11-03")
    refused(monitor, "no longer known", [0, 1], [0.3, 0.6], time=["2025-01-01", "2025-11-20"], force=True)
    refused(monitor, "numbers", [0, 1], [0.3, 0.6], time=3)
    refused(monitor, "pass time", [0, 1], [0.3, 0.6])
    refused(monitor, r"\[0, 1\]", [0, 1], [0.3, 0.6], time=today, weight=[1, 2])
    refused(monitor, "binary", cal.Gaussian([0.0], [0.0], [1.0]), time=today)
    refused(monitor, "no groups", [0, 1], [0.3, 0.6], time=today, group=["a", "b"])
    refused(monitor, "another name", [0, 1, 1], [0.3, 0.6, 0.7], time=today, batch="first")
    refused(monitor, "must be known", [0, 1], [0.3, 0.6], time=["2026-11-03", None])
    refused(monitor, "y_prob must lie in", [0, 1], [0.3, 1.6], time=today)


def test_a_date_far_ahead_is_accepted_if_it_is_right():
    monitor = Monitor()
    monitor.update([0, 1], [0.3, 0.6], time="2020-01-01")
    assert monitor.update([0, 1], [0.3, 0.6], time="2026-01-01", force=True).now == "2026-01-01"


def test_rows_whose_outcomes_are_not_final_are_refused():
    monitor = Monitor(horizon=30)
    monitor.update([0, 1], [0.3, 0.6], time="2026-10-01", today="2026-11-18")
    refused(monitor, "at most 2026-10-19", [0, 1], [0.3, 0.6], time="2026-10-20", today="2026-11-18")
    refused(monitor, "needs today", [0, 1], [0.3, 0.6], time="2026-10-02")


@pytest.mark.parametrize(
    ("options", "match"),
    [({"alpha": 0}, "alpha"), ({"tolerance": -1}, "tolerance"), ({"arl": 0.5}, "arl"), ({"horizon": -1}, "horizon")],
)
def test_settings_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        Monitor(**options)


def test_a_monitor_without_rows_has_no_status():
    with pytest.raises(ValueError, match="no rows yet"):
        Monitor().status()


def test_repair_and_curve_of_other_tasks_point_to_the_rows():
    monitor = Monitor()
    monitor.update(cal.Gaussian([0.0, 1.0], [0.0, 0.5], [1.0, 1.0]))
    for call in (monitor.repair, monitor.curve):
        with pytest.raises(ValueError, match="AutoForecast"):
            call()


def test_clustered_rows_are_repaired_by_platt_scaling():
    monitor = Monitor()
    rng = np.random.default_rng(11)
    p = rng.random(900)
    monitor.update(rng.random(900) < p**2, p, cluster=np.repeat(range(300), 3))
    assert isinstance(monitor.repair(), cal.recalibrate.Platt)
