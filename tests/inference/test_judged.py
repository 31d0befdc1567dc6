"""Intervals, groups and comparisons of judged data: formulas, worlds of known truth, and what is refused."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit, ndtri, stdtrit

import calibrant as cal
from calibrant.inference import judged
from calibrant.inference.judged import RectifiedMean

ESTIMATORS = (cal.accuracy, cal.observed_expected, cal.calibration_slope, cal.averaged_error)


def world(seed, *, rows=1500, labels=150, agreement=0.9, slope=0.6, rare=False, questions=0):
    """Judged answers of known calibration; whole questions are labelled where rows belong to some."""
    rng = np.random.default_rng([seed, 17])
    p = rng.beta(30, 1, rows) if rare else rng.beta(4, 2, rows)
    h = 1 - 0.6 * (1 - p) if rare else expit(slope * logit(p))
    group = np.arange(rows) // questions if questions else None
    if questions:
        luck = rng.normal(0, 1, rows // questions)[group]
        h = expit(0.8 + luck)
    y = (rng.random(rows) < h).astype(float)
    judge = np.where(rng.random(rows) < agreement, y, 1 - y)
    unit = np.arange(rows) if group is None else group
    chosen = rng.choice(unit.max() + 1, labels // max(questions, 1), replace=False)
    return cal.Judged(np.where(np.isin(unit, chosen), y, np.nan), p, judge=judge, group=group), y, h


def width(found):
    return found.interval.high - found.interval.low


def test_without_a_judge_the_interval_of_the_mean_is_the_longer_of_wilsons_and_students():
    gold = np.r_[np.ones(30), np.zeros(10), np.full(40_000, np.nan)]
    data = cal.Judged(gold, np.full(len(gold), 0.7), judge=np.zeros(len(gold)))
    z, n, x = ndtri(0.975), 40, 30
    wilson = [(x + z**2 / 2 + s * z * np.sqrt(x * (n - x) / n + z**2 / 4)) / (n + z**2) for s in (-1, 1)]
    student = [0.75 + s * stdtrit(39, 0.975) * np.sqrt(0.75 * 0.25 / n) for s in (-1, 1)]
    low, high = cal.interval(cal.accuracy, data).interval
    assert low == pytest.approx(min(wilson[0], student[0]), abs=4e-3)
    assert high == pytest.approx(max(wilson[1], student[1]), abs=4e-3)


def test_an_end_is_where_the_distance_is_what_the_larger_variance_allows():
    data, _, _ = world(1)
    mean = RectifiedMean.of(data)
    found = mean.ends(0.95)
    z, t = ndtri(0.975), stdtrit(149, 0.975)
    for end in (found.low, found.high):
        m = expit(logit(data.forecast) + mean._shift_to(end))
        w = np.where(data.known, 10.0, 0.0)
        by_model = ((w**2 * m * (1 - m)).sum() + ((m - end) ** 2).sum()) / 1500**2
        by_squares = ((data.rectified - end) ** 2).sum() / 1500**2
        assert abs(found.value - end) == pytest.approx(max(z * by_model**0.5, t * by_squares**0.5), rel=1e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_order_of_rows_and_the_unit_of_weights_change_nothing_that_matters(estimator):
    data, y, _ = world(2)
    weight = np.where(data.known, 3.0, np.nan)
    again = cal.Judged(data.gold, data.y_prob, judge=data.scores, weight=weight)
    first, second = cal.interval(estimator, data), cal.interval(estimator, again)
    assert tuple(first.interval) == pytest.approx(tuple(second.interval))
    assert "all with the same probability" in first.interval.assumption
    assert "with the probabilities that weight says" in second.interval.assumption
    assert first.details["gold"] == 150
    assert first.n == len(y)


def test_the_ratio_of_equal_confidences_is_the_mean_over_them():
    data, _, _ = world(3)
    data = cal.Judged(data.gold, np.full(len(data), 0.8), judge=data.scores)
    mean, ratio = (cal.interval(one, data) for one in (cal.accuracy, cal.observed_expected))
    assert float(ratio) == pytest.approx(float(mean) / 0.8)
    assert tuple(ratio.interval) == pytest.approx([end / 0.8 for end in mean.interval], rel=1e-5)


def test_a_useful_judge_shortens_intervals_and_a_useless_one_hardly_lengthens_them():
    ratios = {0.9: [], 0.5: []}
    for agreement, found in ratios.items():
        for seed in range(8):
            data, _, _ = world(seed, agreement=agreement)
            alone = cal.interval(cal.observed_expected, data.labelled())
            found.append(width(cal.interval(cal.observed_expected, data)) / width(alone))
    assert np.mean(ratios[0.9]) < 0.75
    assert np.mean(ratios[0.5]) < 1.08


@pytest.mark.parametrize("options", [{}, {"rare": True, "labels": 50}, {"questions": 4}])
def test_intervals_of_the_mean_cover(options):
    """Of 60 samples a coverage of 0.93 leaves out more than 11 in one of a thousand."""
    rng = np.random.default_rng(0)
    truth = expit(0.6 * logit(rng.beta(4, 2, 400_000))).mean()
    truth = 1 - 0.6 / 31 if options.get("rare") else truth
    truth = expit(0.8 + rng.normal(0, 1, 400_000)).mean() if options.get("questions") else truth
    missed = [truth not in cal.interval(cal.accuracy, world(seed, **options)[0]).interval for seed in range(60)]
    assert sum(missed) <= 11


def test_the_error_and_the_slope_are_those_of_the_world():
    rng = np.random.default_rng(0)
    p = rng.beta(4, 2, 400_000)
    h = expit(0.6 * logit(p))
    truth = {1: np.abs(p - h).mean(), 2: np.sqrt(((p - h) ** 2).mean())}
    data, _, _ = world(9, rows=6000, labels=600, agreement=0.97)
    for norm, error in truth.items():
        found = cal.interval(partial(cal.ece, norm=norm), data)
        assert error in found.interval
        assert found.interval.low > 0
        assert found.name == f"Calibration error (L{norm})"
        assert found.interval.low <= float(found) <= found.interval.high
    squared = cal.interval(partial(cal.variational_error, norm="squared"), data).interval
    plain = cal.interval(partial(cal.averaged_error, norm=2), data).interval
    assert tuple(squared) == pytest.approx([end**2 for end in plain])
    slope = cal.interval(cal.calibration_slope, data)
    assert 0.6 in slope.interval
    assert slope.interval.high < 1


def test_few_labels_of_the_rarer_outcome_leave_errors_and_slopes_to_the_gold_labels():
    data, _, _ = world(1, rare=True)
    for estimator in (cal.averaged_error, cal.calibration_slope):
        found, alone = cal.interval(estimator, data), cal.interval(estimator, data.labelled())
        assert tuple(found.interval) == pytest.approx(tuple(alone.interval), nan_ok=True)
        assert "fewer than 20 gold labels of the rarer outcome" in found.method
        assert float(found) == pytest.approx(float(alone))
    cubic = cal.interval(partial(cal.ece, norm=3), data)  # ends follow from those of L2, but no estimate does
    assert np.isnan(cubic)
    assert 0 <= cubic.interval.low < cubic.interval.high


def test_fewer_than_twenty_labelled_groups_state_no_error():
    data, _, _ = world(1, questions=10, labels=190)
    found = cal.interval(cal.averaged_error, data)
    assert found.interval.low == 0
    assert np.isnan(found)
    assert "so all are possible" in found.interval.assumption
    data, _, _ = world(1, questions=10, labels=200)
    assert not np.isnan(cal.interval(cal.averaged_error, data))


def test_what_has_no_interval_is_refused_with_what_has_one():
    data, _, _ = world(1)
    for estimator in (cal.brier, cal.auc, cal.ks_error, cal.calibration_intercept):
        with pytest.raises(cal.InvalidPredictions, match="accuracy, observed_expected, calibration_slope"):
            cal.interval(estimator, data)
    with pytest.raises(ValueError, match="finite norms"):
        cal.interval(cal.mce, data)
    with pytest.raises(TypeError, match="Judged data have one method"):
        cal.interval(cal.accuracy, data, method="bootstrap")
    with pytest.raises(cal.InvalidPredictions, match="None of these rows has a gold label"):
        cal.interval(cal.accuracy, data.take(~data.known))
    assert cal.interval(lambda some: cal.ece(some), data).name == "Calibration error (L1)"
    certain = cal.Judged(data.gold, np.where(data.known, 1.0, data.y_prob), judge=data.scores)
    with pytest.raises(cal.InvalidPredictions, match="gold labels of rows whose p lies strictly between 0 and 1"):
        cal.interval(cal.calibration_slope, certain)


def test_groups_have_the_interval_of_their_rows_and_none_without_gold():
    data, _, _ = world(4)
    by = np.where(data.known | (np.arange(len(data)) % 2 == 0), np.arange(len(data)) % 3, 9)
    by = np.where(~data.known & (by == 9), "unlabelled", by.astype(str))
    made = cal.Judged(data.gold, data.y_prob, judge=data.scores, by={"model": by})
    found = cal.by_group(cal.accuracy, made)
    assert [row.group for row in found.rows] == ["0", "1", "2", "unlabelled"]
    for row in found.rows[:3]:
        part = made.take(by == row.group)
        assert tuple(row.estimate.interval) == tuple(cal.interval(cal.accuracy, part).interval)
        assert row.observed == pytest.approx(part.rectified.mean())
        assert row.events == np.nansum(part.gold)
    last = found.rows[3]
    assert np.isnan(last.estimate)
    assert last.estimate.interval is None
    assert last.estimate.method == "no gold label"
    assert "Not tested, and without an interval: 1 group without a gold label." in str(found)
    assert cal.by_group(cal.accuracy, made, by=by)["0"] == found["0"]
    with pytest.raises(TypeError, match="leave out confirm, depth and test"):
        cal.by_group(cal.accuracy, made, confirm=True)


def test_a_group_is_significant_where_its_interval_of_the_ratio_leaves_out_one():
    data, _, _ = world(6, slope=0.2)
    found = cal.by_group(cal.observed_expected, data, by=np.arange(len(data)) % 2)
    for row in found.rows:
        assert (row.p_value < 0.05) == (1 not in row.estimate.interval)
        assert row.direction == ("too high" if row.p_value < 0.05 else "")
    assert found.worst.p_value == min(min(row.adjusted for row in found.rows), 1)


def test_two_models_are_compared_row_by_row():
    first, y, _ = world(7, labels=400)
    second = cal.Judged(
        np.where(first.known, 1 - (1 - y) * (np.arange(len(y)) % 2), np.nan),
        first.y_prob,
        judge=np.maximum(first.scores, np.arange(len(y))[:, None] % 2 == 0),
    )
    found = cal.compare(cal.accuracy, first, second)
    a, b = (cal.interval(cal.accuracy, data) for data in (first, second))
    assert found.difference == pytest.approx(float(a) - float(b))
    one, other = float(a) - a.interval.low, b.interval.high - float(b)
    shared = np.corrcoef(first.rectified - a, second.rectified - b)[0, 1]
    below = np.sqrt(one**2 + other**2 - 2 * shared * one * other)
    assert found.interval.low == pytest.approx(found.difference - below, rel=1e-2)
    assert found.p_value < 0.01
    assert 0 not in found.interval
    assert "row i of both models is the same case" in found.interval.assumption
    same = cal.compare(cal.accuracy, first, first)
    assert same.difference == 0
    assert same.p_value == 1
    with pytest.raises(cal.InvalidPredictions, match="same rows in the same order"):
        cal.compare(cal.accuracy, first, second.take(np.arange(100)))


def test_units_hold_one_labelled_cluster_each_and_share_the_others():
    known = np.zeros(3000, bool)
    known[:100] = True
    unit = judged._units(known, None)
    assert len(np.unique(unit[:100])) == 100
    assert len(np.unique(unit)) == 512
    clusters = judged._units(known, np.arange(3000) // 10)
    assert (clusters.reshape(-1, 10) == clusters.reshape(-1, 10)[:, :1]).all()


def test_what_chance_would_do_in_half_of_all_samples_has_no_direction():
    tests = [cal.calibration_test(world(seed, slope=1.0)[0]) for seed in range(4)]
    level, slope, shape = zip(*(found.components for found in tests), strict=True)
    assert [one.direction for one in level] == [0, 1, -1, 1]
    assert all((one.direction != 0) == (one.p_value <= 0.5) for one in (*level, *slope))
    assert {one.direction for one in shape} == {0}
