"""Tests of many groups: any false alarm is rare, and one bad group among many is found."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import group_tests as slice_sums
from calibrant.inference.group_tests import (
    ScoreCells,
    adjusted_of_tables,
    adjusted_p_values,
    cells_of_groups,
    confirmed,
    default_draws,
    group_evidence,
    group_tests,
    one_by_one,
    slice_tests,
    strongest,
)
from calibrant.inference.groupings import Grouping, groupings
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import expit
from calibrant.numerics.confidence_limits import two_sided_tail
from tests.reporting.sections.worlds import binary


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


def slice_sums_rows(weight=None):
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(0.5, 2, 3000), 2)
    group = rng.integers(0, 3, 3000)
    return cal.Binary(rng.random(3000) < p, p, weight=weight), groupings(group, length=3000)[0]


def test_sums_are_those_of_the_rows_and_equal_scores_share_a_cell():
    data, grouping = slice_sums_rows()
    scores = ScoreCells.of(data)
    assert all(len(set(scores.cell[data.y_prob == p])) == 1 for p in np.unique(data.y_prob))
    found = scores.sums(grouping)
    for k in range(3):
        inside = grouping.index == k
        assert found.count[k].sum() == inside.sum()
        assert found.observed[k].sum() == data.y_true[inside].sum()
        gap = (data.y_prob[inside] - data.y_true[inside]).mean()
        assert found.gap[k] == pytest.approx(gap)
        p = data.y_prob[inside]
        assert found.gap_error[k] == pytest.approx(np.sqrt((p * (1 - p)).sum()) / len(p), rel=1e-3)


def test_equal_weights_change_nothing_and_many_groups_have_fewer_cells(monkeypatch):
    data, grouping = slice_sums_rows()
    plain = ScoreCells.of(data).sums(grouping)
    weighted = ScoreCells.of(slice_sums_rows(weight=np.full(3000, 7.0))[0]).sums(grouping)
    for name in ("count", "predicted", "observed"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name))
    monkeypatch.setattr(slice_sums, "_MOST_SLICES", 100)
    coarse = ScoreCells.of(data).sums(grouping)
    assert coarse.count.shape == (3, 32)
    assert coarse.count.sum(axis=1) == pytest.approx(plain.count.sum(axis=1))


def rows(n=4000):
    rng = np.random.default_rng(0)
    p, place = rng.random(n), rng.integers(0, 5, n)
    return cal.Binary(rng.random(n) < np.where(place == 3, p**1.7, p), p), groupings(place, length=n)


def test_the_strongest_keep_their_order():
    found = group_evidence(*rows(), None)
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    two = strongest(found, 2)
    assert 3 in [one.number for one in two]
    assert sorted(one.number for one in two) == [one.number for one in two]


def test_rows_that_confirm_are_not_those_that_found():
    data, columns = rows()
    half, found = confirmed(data, columns, None, 2)
    assert len(half) == 2000
    one = next(one for one in found if one.grouping.names[one.number] == 3)
    assert one.adjusted < 1e-3
    assert one.found < 2e-3  # of 899 draws none is as large
    assert len(one.grouping.index) == 2000
    inside = half.take(one.grouping.rows()[one.number])
    assert inside.y_prob.mean() > inside.y_true.mean()


def test_halves_consist_of_whole_clusters():
    data, columns = rows()
    data = cal.Binary(data.y_true, data.y_prob, group=np.arange(len(data)) // 7)
    half, found = confirmed(data, columns, None, 2)
    own = np.unique(half.group)
    assert len(own) == 572 // 2
    assert len(half) == np.isin(data.group, own).sum()
    assert next(one for one in found if one.grouping.names[one.number] == 3).adjusted < 1e-3
    one = cal.Binary([0, 1], [0.5, 0.5], group=[1, 1])
    with pytest.raises(cal.InvalidPredictions, match="one cluster only"):
        confirmed(one, groupings([0, 1], length=2), None, 2)


def test_the_result_names_the_test():
    data, columns = rows(50)

    def name(data, columns, test=None):
        return group_evidence(data, columns, test)[0].method

    assert name(data, columns) == "multi-scale and likelihood ratio tests"
    assert name(data, columns * 5) == "gap and likelihood ratio tests"
    assert name(data, columns, cal.inference.Spiegelhalter()) == "Spiegelhalter()"
    clustered = cal.Binary(data.y_true, data.y_prob, group=np.arange(len(data)))
    assert name(clustered, columns) == "clustered score test"
    assert name(clustered, columns, cal.inference.ClusteredScore()) == "ClusteredScore()"
    assert name(cal.Gaussian(data.y_true, data.y_prob, np.ones(len(data))), columns) == "default test"


def grouping(labels):
    return groupings(labels, length=len(labels))[0]


def test_rows_are_tested_as_by_group_does():
    data, labels = binary(2000, slope=0.6), np.arange(2000) % 4
    found = adjusted_p_values(data, grouping(labels))
    own = cal.by_group(cal.ece, data, by=labels, intervals=0)
    np.testing.assert_allclose(found, [own.tests[k].p_value for k in range(4)])


@pytest.mark.no_cover
def test_tables_can_be_flagged_among_hundreds():
    tables = [cal.BinTable.of(binary(150, seed=k), cal.table.Distinct()) for k in range(100)]
    tables[17] = cal.BinTable.of(binary(150, shift=-3.0, seed=500), cal.table.Distinct())
    found = adjusted_of_tables(tables)
    assert found[17] == 0.001
    assert np.delete(found, 17).min() > 0.02


def clustered(rng, *, shift=0.0, clusters=40, size=15):
    z = rng.normal(-0.5, 1, clusters * size)
    group = np.repeat(np.arange(clusters), size)
    own = np.sqrt(1 + 0.35) * (z + shift) + rng.normal(0, 1, clusters)[group]  # its mean over clusters is nearly p
    return rng.random(len(z)) < expit(own), expit(z), group


@pytest.mark.no_cover
def test_clusters_keep_the_level_where_rows_would_not():
    rng, rejected, naive = np.random.default_rng(3), 0, 0
    for _ in range(120):
        y, p, group = clustered(rng)
        whole = grouping(np.zeros(len(y), dtype=int))
        rejected += adjusted_p_values(cal.Binary(y, p, group=group), whole)[0] < 0.05
        naive += cal.inference.Cox().test(cal.Binary(y, p)).p_value < 0.05
    assert rejected <= 14  # 99.6 % of samples at a level of 5 %
    assert naive > 15


def test_clusters_do_not_hide_a_shift():
    y, p, group = clustered(np.random.default_rng(0), shift=-1.0)
    assert adjusted_p_values(cal.Binary(y, p, group=group), grouping(np.zeros(len(y), dtype=int)))[0] < 0.01


def test_few_clusters_cannot_be_tested():
    y, p, group = clustered(np.random.default_rng(0), clusters=4)
    assert np.isnan(adjusted_p_values(cal.Binary(y, p, group=group), grouping(np.zeros(len(y), dtype=int)))[0])


def test_forecasts_that_are_shifted_or_too_narrow():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1500)
    labels = np.repeat(["right", "shifted", "narrow"], 500)
    z += np.where(labels == "shifted", 0.3, 0.0)
    z *= np.where(labels == "narrow", 1.3, 1.0)
    data = cal.Gaussian(z, np.zeros(1500), np.ones(1500))
    found = dict(zip(sorted(set(labels)), adjusted_p_values(data, grouping(labels)), strict=True))
    assert found["right"] > 0.05 > max(found["shifted"], found["narrow"])


def test_several_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 1000)
    y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    p[500:] = p[500:, [1, 2, 0]]
    found = adjusted_p_values(cal.Multiclass(y, p), grouping(np.arange(1000) // 500))
    assert found[0] > 0.05 > found[1]


@pytest.mark.parametrize(("groups", "cells"), [(10, 128), (40_000, 64)])
def test_very_many_groups_have_fewer_cells_of_scores(groups, cells):
    n = 40_000
    data = cal.Binary(np.zeros(n, np.int8), np.arange(n) / n)
    assert ScoreCells.of(data).sums(grouping(np.arange(n) % groups)).count.shape == (groups, cells)


def test_the_number_of_events_needs_few_cells():
    """The p-value in 16 cells is that of all 128, within 4 % where it is 1e-7."""
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    y[np.flatnonzero(~y)[:280]] = True
    cells = ScoreCells.of(cal.Binary(y, p)).sums(grouping(np.zeros(20_000)))
    exact = two_sided_tail(cells.count, cells.probability, cells.observed.sum(axis=1))
    assert 1e-8 < exact[0] < 1e-6
    assert cells.gap_p_values() == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize(("groups", "columns", "draws"), [(10, 1, 999), (1000, 1, 781), (6000, 1, 199), (6000, 2, 398)])
def test_draws_by_default(groups, columns, draws):
    """As many as have 200 million outcomes, in 256 cells a group; 199 for each column, and no more than 999."""
    index = np.arange(groups * 300, dtype=np.intp) % groups
    assert default_draws([Grouping("", range(groups), (index,))] * columns) == draws


def test_groups_of_a_few_forecasts_are_rarely_flagged():
    flagged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        by = rng.integers(0, 20, 60)  # some have one row
        std = np.exp(0.5 * rng.normal(size=60))
        (grouping,) = groupings(by, length=60)
        flagged += (
            np.nanmin(adjusted_p_values(cal.Gaussian(std * rng.normal(size=60), np.zeros(60), std), grouping)) < 0.05
        )
    assert flagged <= 6
