"""Bounds and tests by maps fitted to other rows: below the truth, not idle, level and power."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import LearnedTest, SequentialBound
from calibrant.inference.learned_bounds import judged_parts
from calibrant.simulate import PowerCurve, UniformScores, World
from tests.inference.class_worlds import sample
from tests.inference.worlds import BENT


def test_parts_are_all_rows_but_the_first_part_each_once():
    data, _ = sample(203, 4)
    parts = list(judged_parts(data, parts=5, seed=0, needed_by="test"))
    rows = np.concatenate([part.row for part in parts])
    assert len(parts) == 4
    assert len(rows) == len(set(rows.tolist())) == 203 - 41
    assert np.array_equal(np.concatenate([part.observed for part in parts]), data.y_true[rows])


def test_the_map_of_a_part_does_not_see_it():
    data, _ = sample(200, 3)
    first, *_ = judged_parts(data, parts=5, seed=0, needed_by="test")
    changed = data.y_true.copy()
    later = np.setdiff1d(np.arange(200), _rows_of_first_part(data))
    changed[later] = (changed[later] + 1) % 3
    again, *_ = judged_parts(cal.Multiclass(changed, data.y_prob), parts=5, seed=0, needed_by="test")
    assert np.allclose(first.fitted, again.fitted)


def _rows_of_first_part(data):
    judged = np.concatenate([part.row for part in judged_parts(data, parts=5, seed=0, needed_by="test")])
    return np.setdiff1d(np.arange(len(data)), judged)


def test_too_few_rows_and_other_tasks_are_refused():
    data, _ = sample(19)
    with pytest.raises(cal.InvalidPredictions, match="needs 20"):
        list(judged_parts(data, parts=5, seed=0, needed_by="test"))
    with pytest.raises(cal.InvalidPredictions, match="Multiclass"):
        list(judged_parts(data.top_label(), parts=5, seed=0, needed_by="test"))


def truth(norm):
    data, true = sample(100_000, 4, temperature=1.6, seed=99)
    gap = data.y_prob - true
    if norm == "kl":
        return float((true * np.log(true / data.y_prob)).sum(axis=1).mean())
    if norm == "squared":
        return float((gap**2).sum(axis=1).mean())
    return float(np.linalg.norm(gap, ord=norm, axis=1).mean())


@pytest.mark.parametrize("norm", [1, 2, "squared", "kl"])
def test_it_is_below_the_error_and_above_zero(norm):
    true = truth(norm)
    found = [SequentialBound(seed=k).interval(sample(1500, 4, temperature=1.6, seed=k)[0], norm=norm) for k in range(2)]
    assert all(0.1 * true < one.low < true for one in found)
    assert {one.side for one in found} == {"lower"}
    assert found[0].high == np.inf
    assert "lower bound only" in found[0].assumption


@pytest.mark.no_cover
def test_a_calibrated_model_is_rarely_bounded_away_from_zero():
    lows = [SequentialBound(seed=k).interval(sample(120, 3, seed=k)[0]).low for k in range(25)]
    assert np.mean(np.array(lows) > 0) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 25)


@pytest.mark.no_cover
def test_it_is_the_default_and_judges_more_rows_than_a_split():
    samples = [sample(2000, 3, temperature=1.4, seed=seed)[0] for seed in range(18)]
    found = [SequentialBound().interval(data, norm=1.0) for data in samples]
    split = [cal.inference.SplitLowerBound().interval(data, norm=1.0) for data in samples]
    default = cal.interval(cal.variational_error, samples[0])
    assert default.interval == found[0]
    assert default.interval.target == default.target
    assert np.mean([one.low for one in found]) > np.mean([one.low for one in split])


def test_clusters_widen_the_approximate_bound():
    data, _ = sample(600, 3, temperature=2.0)
    rows = np.repeat(np.arange(600), 3)
    y, p = data.y_true[rows], data.y_prob[rows]
    alone, together = (
        SequentialBound(exact=False).interval(cal.Multiclass(y, p, group=group)).low
        for group in (np.arange(1800), rows)
    )
    assert together < alone
    weighted = cal.Multiclass(data.y_true, data.y_prob, weight=np.linspace(1, 2, 600))
    assert 0 < SequentialBound().interval(weighted).low < 1
    with pytest.raises(ValueError, match="exact"):
        SequentialBound(exact=True).interval(weighted)


def test_what_it_is_not_for_is_refused():
    data, _ = sample(100)
    with pytest.raises(TypeError, match="true error"):
        cal.interval(partial(cal.classwise, cal.ece), data, method=SequentialBound())
    with pytest.raises(TypeError, match="Multiclass"):
        cal.interval(cal.ece, data.top_label(), method=SequentialBound())
    unbounded = cal.estimators.Distance(lambda f, q: (q - f)[:, 0] ** 2, lambda f, q: 2 * (q - f))
    with pytest.raises(ValueError, match="bound"):
        SequentialBound().interval(data, norm=unbounded)


@pytest.mark.no_cover
def test_the_level_is_exact():
    p_values = np.array([LearnedTest(99, parts=3, seed=k).test(sample(90, 3, seed=k)[0]).p_value for k in range(40)])
    assert np.mean(p_values <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert 0.3 < p_values.mean() < 0.7


def test_a_wrong_temperature_is_found():
    found = cal.calibration_test(sample(800, 4, temperature=1.5)[0], method=LearnedTest(199))
    assert found.p_value <= 0.01
    assert found.statistic > 2
    assert found == LearnedTest(199).test(sample(800, 4, temperature=1.5)[0])


def test_impossible_labels_are_found():
    p = np.tile([0.5, 0.5, 0.0], (60, 1))
    assert LearnedTest(199).test(cal.Multiclass(np.tile([0, 1, 2], 20), p)).p_value == 0.005


def test_clusters_and_weights_are_refused():
    data, _ = sample(50)
    for extra in ({"group": np.arange(50)}, {"weight": np.arange(50) + 1.0}):
        with pytest.raises(cal.InvalidPredictions, match="independent"):
            cal.inference.LearnedTest().test(cal.Multiclass(data.y_true, data.y_prob, **extra))


def test_split_lower_bound_is_below_the_error():
    found = cal.interval(
        cal.variational_error,
        World(UniformScores(), PowerCurve(3)).sample(3000),
        method=cal.inference.SplitLowerBound(),
    )
    assert found.interval.side == "lower"
    assert 0.1 < found.interval.low < 0.25


def test_a_table_has_no_rows_to_split():
    with pytest.raises(cal.InvalidPredictions, match="splits the rows"):
        cal.inference.SplitLowerBound().interval(cal.BinTable.of(BENT.sample(100), cal.table.Distinct()))
