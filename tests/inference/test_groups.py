"""Results by group."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import calibrant as cal
from calibrant.inference.groups import balance
from calibrant.inference.multiplicity import shrunk


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


@pytest.mark.no_cover
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


@pytest.mark.no_cover
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


@pytest.mark.no_cover
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


@pytest.mark.no_cover
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


def test_groups_must_be_given():
    data, _ = grouped(20)
    with pytest.raises(cal.InvalidPredictions, match="by"):
        cal.by_group(cal.ece, data)
    assert "2 groups" in repr(cal.by_group(cal.brier, data, by=np.arange(60) % 2, method=cal.Bootstrap(9)))
    clustered = cal.Binary(data.y_true, data.y_prob, group=np.arange(60) // 2)
    assert len(cal.by_group(cal.ece, clustered, intervals=0)) == 30
    assert clustered.group is not None


def patients(rng, *, number=150, rows=8, truth=lambda p, by: p, shared=0.8, weight=None):
    """Rows of patients who share most of their luck, and two columns: one of patients, one of rows."""
    n = number * rows
    patient = np.repeat(np.arange(number), rows)
    by = {"clinic": rng.integers(0, 3, number)[patient], "device": rng.integers(0, 3, n)}
    p = rng.uniform(0.1, 0.9, n)
    luck = np.sqrt(shared) * rng.normal(size=number)[patient] + np.sqrt(1 - shared) * rng.normal(size=n)
    return cal.Binary(ndtr(luck) < truth(p, by), p, group=patient, weight=weight), by


@pytest.mark.no_cover
def test_clustered_groups_of_a_calibrated_model_are_no_alarm_where_rows_would_be():
    alarms, naive = [], []
    for k in range(20):
        data, by = patients(np.random.default_rng([4, k]))
        alone, cox = cal.Binary(data.y_true, data.y_prob), cal.inference.Cox()
        alarms.append(cal.by_group(cal.brier, data, by=by, depth=2, intervals=0).worst.p_value < 0.05)
        naive.append(cal.by_group(cal.brier, alone, by=by, depth=2, intervals=0, test=cox).worst.p_value < 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 20) < np.mean(naive)


def reversed_slice(p, by):
    return np.where((by["clinic"] == 1) & (by["device"] == 2), 1 - p, p)


def test_a_reversed_slice_of_clustered_rows_is_found_with_its_interval():
    data, by = patients(np.random.default_rng(0), number=400, truth=reversed_slice)
    found = cal.by_group(cal.calibration_slope, data, by=by, depth=2, intervals=3)
    first = found.ranked[0]
    assert (first.column, first.group) == ("clinic x device", (1, 2))
    inside = data.take((by["clinic"] == 1) & (by["device"] == 2))
    assert first.p_value == pytest.approx(cal.calibration_test(inside).p_value)
    assert first.adjusted == pytest.approx(15 * first.p_value)
    assert first.adjusted < 1e-3
    assert first.estimate.interval == cal.interval(cal.calibration_slope, inside).interval
    assert first.estimate.interval.high < 0
    assert found.worst.method.endswith("clustered score test, adjusted over 15 groups")
    halved = cal.by_group(cal.observed_expected, data, by=by, depth=2, confirm=True, intervals=5)
    assert halved.ranked[0].group == (1, 2)
    assert halved.worst.p_value < 0.01


def test_a_shift_of_clustered_rows_has_a_direction_and_a_shrunken_gap():
    def lower(p, by):
        return p - np.where(by["clinic"] == 1, 0.09, 0)

    data, by = patients(np.random.default_rng(0), number=600, truth=lower, shared=0.2)
    found = cal.by_group(cal.observed_expected, data, by=by, depth=2, quantiles=4, intervals=15)
    first = found.ranked[0]
    assert (first.column, first.group, first.direction) == ("clinic", 1, "too high")
    assert first.estimate.interval.high < 1
    assert 0.03 < first.shrunk_gap <= first.gap
    equal = cal.Binary(data.y_true, data.y_prob, group=data.group, weight=np.full(len(data), 2.5))
    weighted = cal.by_group(cal.observed_expected, equal, by=by, depth=2, intervals=0)
    assert weighted.worst.p_value == pytest.approx(found.worst.p_value)


def test_groups_of_few_clusters_are_said_not_to_be_tested():
    data, _ = patients(np.random.default_rng(0))
    by = np.where(data.group < 5, "few", "many")
    found = cal.by_group(cal.ece, data, by=by, shrink=True)
    assert [row.group for row in found.ranked] == ["many", "few"]
    few = found.ranked[1]
    assert not few.tested
    assert few.estimate.interval is None
    assert few.direction == ""
    assert (few.to_dict()["adjusted"], few.to_dict()["p_value"]) == (None, None)
    assert "shrunk" not in few.to_dict()
    assert found.worst.method.startswith("worst of 1 groups: many")
    assert "1 group of fewer than 8 clusters" in str(found)
    assert "not tested" in str(found)
    assert "not tested" in found._repr_html_()
    none = cal.by_group(cal.ece, data.take(data.group < 5), by={"a": by[data.group < 5]}, depth=2)
    assert np.isnan(none.worst.p_value)
    assert none.search.groups == 0
    assert none.search.untested == 1
    assert "no group has enough clusters" in repr(none)


def test_the_classes_of_clustered_rows_are_tested_by_the_predicted_one():
    rng = np.random.default_rng(0)
    top = rng.uniform(0.5, 1, 600)
    right = rng.random(600) < np.where(np.arange(600) < 300, top, 1 - top)
    data = cal.Multiclass(1 - right, np.stack([top, 1 - top], axis=1), group=np.arange(600) // 5)
    found = cal.by_group(cal.brier, data, by=np.arange(600) // 300, intervals=0)
    assert found.tests[1].p_value < 1e-3 < 0.05 < found.tests[0].p_value
    assert found.worst.method.split(", ")[1] == "clustered score test of the predicted class"


def test_other_tests_need_independent_rows():
    data, by = patients(np.random.default_rng(0))
    for method in (cal.inference.HosmerLemeshow(), cal.inference.Cox()):
        with pytest.raises(cal.InvalidPredictions, match="use MultiScale"):
            cal.by_group(cal.ece, data, by=by, test=method)
    forecast = cal.Gaussian(np.zeros(40), np.zeros(40), np.ones(40), group=np.arange(40) // 2)
    with pytest.raises(cal.InvalidPredictions, match="use ForecastTest"):
        cal.by_group(cal.crps, forecast, by=np.arange(40) % 2, test=cal.inference.PitUniformity())


def test_forecasts_of_clustered_rows_are_tested():
    rng = np.random.default_rng(0)
    y = rng.normal(size=800) * np.repeat([1, 2], 400)
    data = cal.Gaussian(y, np.zeros(800), np.ones(800), group=np.arange(800) // 4)
    found = cal.by_group(cal.crps, data, by=np.arange(800) // 400, intervals=0)
    assert found.tests[1].p_value < 0.01 < 0.05 < found.tests[0].p_value


def test_the_direction_is_said_where_it_is_clear():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    low = balance(cal.Binary(rng.random(500) < np.sqrt(p), p))
    assert low["direction"] == "too low"
    assert low["observed"] > low["predicted"] == p.mean()
    assert balance(cal.Binary([1, 0], [0.5, 0.4]))["direction"] == ""


def test_several_classes_count_right_predictions_and_forecasts_nothing():
    data = cal.Multiclass([0, 1, 2], [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    assert balance(data)["events"] == 2
    assert balance(cal.Gaussian([0.0], [0.0], [1.0])) == {}


def test_weights_count():
    found = balance(cal.Binary([1, 0], [0.5, 0.3], weight=[3, 1]))
    assert (found["observed"], found["events"]) == (0.75, 1)


def test_equal_groups_are_drawn_together_entirely_and_unlike_ones_hardly():
    rng = np.random.default_rng(0)
    error = np.full(400, 0.1)
    alike = shrunk(rng.normal(0.2, 0.05, 400), error)  # less spread than noise
    assert np.ptp(alike) == 0
    unlike = rng.normal(0, 2, 400)
    assert np.abs(shrunk(unlike, error) - unlike).max() < 0.05


def test_shrunken_estimates_are_closer_to_the_truth():
    rng = np.random.default_rng(1)
    truth, error = rng.normal(0, 0.1, 1000), rng.uniform(0.02, 0.4, 1000)
    seen = truth + error * rng.normal(size=1000)
    assert np.mean((shrunk(seen, error) - truth) ** 2) < 0.5 * np.mean((seen - truth) ** 2)
    assert shrunk(np.array([0.3]), np.array([0.1])) == [0.3]


@pytest.mark.parametrize(("events", "direction"), [(200, ""), (215, ""), (225, "too low"), (175, "too high")])
def test_a_direction_needs_two_standard_errors(events, direction):
    data = cal.Binary(np.arange(400) < events, np.full(400, 0.5))  # the standard error of the number of events is 10
    assert balance(data)["direction"] == direction
