"""Tests of many groups: any false alarm is rare, and one bad group among many is found."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.group_tests import cells_of_groups, group_tests, one_by_one, slice_tests
from calibrant.inference.groupings import groupings
from calibrant.inference.sample import Sample


def some_groups(seed, groups, rows, truth=lambda p, group: p, scores=lambda rng, size: rng.random(size)):
    rng = np.random.default_rng(seed)
    group = np.arange(groups * rows) % groups
    p = scores(rng, groups * rows)
    return cal.Binary(rng.random(len(p)) < truth(p, group), p), groupings(group, length=len(p))


@pytest.mark.no_cover
def test_any_false_alarm_is_rare_for_unlike_groups():
    def scores(rng, size):
        return np.where(np.arange(size) % 2 == 0, rng.beta(0.3, 8, size), np.round(rng.beta(2, 0.1, size), 2))

    smallest = [
        group_tests(*some_groups(seed, 20, 30, scores=scores), draws=49, seed=seed)[0].adjusted.min()
        for seed in range(50)
    ]
    assert np.mean(np.array(smallest) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 50)


def test_one_reversed_group_of_very_many_is_found_beyond_the_number_of_draws():
    data, columns = some_groups(0, 300, 60, lambda p, group: np.where(group == 7, 1 - p, p))
    found = group_tests(data, columns, draws=49)[0]
    assert found.adjusted[7] < 1e-9
    assert np.delete(found.adjusted, 7).min() > 0.05


def test_every_group_reversed_is_every_group_flagged():
    data, columns = some_groups(0, 60, 40, lambda p, group: 1 - p)
    assert group_tests(data, columns)[0].adjusted.max() < 0.05


def test_several_columns_share_the_significance():
    data, (alone,) = some_groups(0, 10, 100, lambda p, group: np.where(group == 3, p**2, p))
    other = groupings(np.arange(len(data)) // 500, length=len(data))[0]
    first, second = group_tests(data, [alone, other], draws=199)
    assert first.adjusted.argmin() == 3
    assert len(second.adjusted) == 2
    assert np.all(first.adjusted >= 2 * group_tests(data, [alone], draws=199)[0].adjusted.clip(max=0.4) * 0.7)


def test_weighted_rows_are_not_draws_from_their_predictions():
    """Half of the negatives were left out, and those kept count twice: calibrated, but not row by row."""
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    kept = y | (rng.random(20_000) < 0.5)
    p, y = p[kept], y[kept]
    columns = groupings(np.arange(len(p)) % 5, length=len(p))
    weighted = cal.Binary(y, p, weight=np.where(y, 1, 2))
    assert group_tests(weighted, columns, draws=199)[0].adjusted.min() > 0.01
    assert group_tests(cal.Binary(y, p), columns, draws=199)[0].adjusted.max() < 1e-6


def test_tests_of_sums_agree_with_those_of_rows_and_are_adjusted_over_all_columns():
    data, (alone,) = some_groups(0, 10, 300, lambda p, group: np.where(group == 3, p**1.5, p))
    other = groupings(np.arange(len(data)) // 600, length=len(data))[0]
    first, second = slice_tests(data, [alone, other])
    assert first.adjusted.argmin() == 3
    assert first.adjusted[3] == pytest.approx(15 * first.p_value[3])
    assert first.adjusted[3] < 1e-4 < 0.05 < np.delete(first.adjusted, 3).min()
    assert len(second.adjusted) == 5
    flat = some_groups(1, 4, 400, lambda p, group: np.where(group == 2, 0.5 + 0.3 * (p - 0.5), p))
    assert slice_tests(*flat)[0].adjusted[2] < 1e-3  # no mean gap, but too extreme


def test_slices_of_weighted_rows_are_not_draws_from_their_predictions():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    kept = y | (rng.random(20_000) < 0.5)
    p, y = p[kept], y[kept]
    columns = groupings(np.arange(len(p)) % 5, length=len(p))
    assert slice_tests(cal.Binary(y, p, weight=np.where(y, 1, 2)), columns)[0].adjusted.min() > 0.01
    assert slice_tests(cal.Binary(y, p), columns)[0].adjusted.max() < 1e-6


def test_other_tasks_are_tested_one_by_one():
    rng = np.random.default_rng(0)
    place = groupings(np.repeat([0, 1], 200), length=400)
    forecast = cal.Gaussian(rng.normal(size=400) * np.repeat([1, 3], 200), np.zeros(400), np.ones(400))
    found = one_by_one(forecast, place, None)[0]
    assert found.adjusted[1] < 1e-6 < 0.05 < found.adjusted[0]
    assert found.adjusted[1] == pytest.approx(2 * found.p_value[1])


def test_several_classes_are_found_among_many_groups_by_their_confidence(monkeypatch):
    """A test whose p-value is at least 1 / 1000 cannot reject among 100 groups by itself."""
    least = cal.Significance(0.0, 0.001, "at its limit", 9)
    monkeypatch.setattr("calibrant.inference.group_tests.calibration_test", lambda data, method: least)
    rng = np.random.default_rng(0)
    top = rng.uniform(0.5, 1, 4000)
    group = np.arange(4000) % 100
    right = rng.random(4000) < np.where(group == 7, 1 - top, top)
    data = cal.Multiclass(np.where(right, 0, 1), np.stack([top, 1 - top], axis=1))
    found = one_by_one(data, groupings(group, length=4000), None)[0]
    assert found.adjusted[7] < 1e-3
    assert np.delete(found.adjusted, 7).min() >= 0.05


def test_cells_of_groups_are_those_of_their_rows():
    rng = np.random.default_rng(1)
    p, group, weight = rng.random(600).round(2), rng.integers(0, 3, 600), rng.integers(0, 3, 600).astype(float)
    data = cal.Binary(rng.random(600) < p, p, weight=weight)
    column = groupings(group, length=600)[0]
    for cells, rows in zip(cells_of_groups(data, column), column.rows(), strict=True):
        alone = Sample.of(data.take(rows), needed_by="").pooled(256)
        for name in ("count", "share", "predicted", "observed", "position"):
            np.testing.assert_allclose(getattr(cells, name), getattr(alone, name))


def test_a_group_without_weight_is_named():
    data = cal.Binary([0, 1, 1, 0], [0.1, 0.7, 0.8, 0.3], weight=[1, 1, 0, 0])
    with pytest.raises(cal.InvalidPredictions, match="group 'b' have weight 0"):
        group_tests(data, groupings(["a", "a", "b", "b"], length=4))


def test_impossible_outcomes_are_found_without_warnings():
    p = np.repeat([0.0, 1.0], 30)
    found = cal.by_group(cal.brier, np.tile([0, 1, 1], 20), p, by=np.zeros(60), intervals=0)
    assert found.rows[0].adjusted < 0.01
