"""The default test of binary predictions: level, slope and shape."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference.multiscale import _cells_that_count, _drawn_rows, _of_clusters, with_drawn
from calibrant.inference.sample import Sample
from tests.inference.worlds import BENT


def rare(k, factor=1.0, n=3000):
    rng = np.random.default_rng([3, k])
    p = 1 / (1 + np.exp(6.8 - rng.normal(size=n)))
    return cal.Binary(rng.random(n) < factor * p, p)


def test_no_event_where_five_were_predicted_is_seen():
    """With two-sided squares of the mean gap, 7 % of these were rejected, though O:E excluded 1 in all."""
    assert np.mean([cal.calibration_test(rare(k, 0.0)).p_value <= 0.05 for k in range(10)]) >= 0.9
    assert np.mean([cal.calibration_test(rare(k)).p_value <= 0.05 for k in range(50)]) <= 0.05 + 3 * 0.031


def clustered(k, sizes, shift):
    rng = np.random.default_rng([4, k])
    group = np.repeat(np.arange(len(sizes)), sizes)
    z = rng.normal(size=len(group))
    luck = np.sqrt(0.3) * rng.normal(size=len(sizes))[group] + np.sqrt(0.7) * rng.normal(size=len(group))
    return cal.Binary(stats.norm.cdf(luck) < 1 / (1 + np.exp(-z - shift)), 1 / (1 + np.exp(-z)), group=group)


WORLDS = {
    "rare": lambda k: rare(k, 0.3),
    "bent": lambda k: BENT.sample(400, k),
    "calibrated": lambda k: BENT.calibrated().sample(300, k),
    "twelve clusters": lambda k: clustered(k, [30] * 12, 0.5),
    "three large clusters": lambda k: clustered(k, [100] * 3 + [2] * 60, 0.7),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", WORLDS)
def test_what_stands_side_by_side_does_not_contradict_itself(name):
    """O:E excludes 1 => L1 and L2 exclude 0 => the test rejects; slopes likewise; no error is below the mean gap."""
    for k in range(12):
        data = WORLDS[name](k)
        test, share = cal.calibration_test(data), 0.25 if data.group is None else 0.5
        ratio = cal.interval(cal.observed_expected, data, level=1 - 0.05 * share).interval
        slope = cal.interval(cal.calibration_slope, data, level=1 - 0.05 / 10).interval
        lows = [one.low for one in cal.inference.Inversion().intervals(data, norms=(1.0, 2.0))]
        gap = data.y_prob.mean() * max(ratio.low - 1, 1 - ratio.high, 0)
        assert min(lows) >= gap - 1e-12
        if not (1 in ratio and 1 in slope) or max(lows) > 0:
            assert test.p_value <= 0.05
        level, steep, _ = test.components
        assert (level.p_value <= 0.05 * share) == (1 not in ratio)
        assert (steep.p_value <= 0.005) == (1 not in slope)
        assert test.p_value <= min(part.p_value / part.share for part in test.components)
        assert test.decided in test.components


def test_the_level_decides_where_all_scores_are_the_same():
    found = cal.calibration_test(np.repeat([1, 0], [14, 100]), np.full(114, 0.2))  # 22.8 expected
    assert found.p_value < 0.05 < 4 * found.components[0].p_value
    assert (found.decided.name, found.decided.direction) == ("level", 1)


def test_the_component_that_decided_and_its_direction():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 4000)
    odds = np.log(p / (1 - p))
    wave = 0.1 * np.sin(6 * np.pi * (p - 0.1) / 0.8) - 0.012  # no level, no slope
    worlds = {("level", 1): p - 0.05, ("level", -1): p + 0.05, ("shape", 0): p + wave}
    worlds |= {("slope", 1): 1 / (1 + np.exp(-0.6 * odds)), ("slope", -1): 1 / (1 + np.exp(-1.5 * odds))}
    for (name, direction), chance in worlds.items():
        found = cal.calibration_test(rng.random(4000) < chance, p).decided
        assert (found.name, found.direction) == (name, direction)
    found = cal.calibration_test(rng.random(4000) < 1 - (p - 0.05), 1 - p)
    assert (found.decided.name, found.decided.direction) == ("level", -1)


def test_exchanged_outcomes_and_renamed_clusters_give_the_same_p_value():
    for data in (BENT.sample(300), clustered(0, [20] * 30, 0.4)):
        turned = cal.Binary(1 - data.y_true, 1 - data.y_prob, group=data.group)
        assert cal.calibration_test(turned).p_value == pytest.approx(cal.calibration_test(data).p_value)
    names = np.random.default_rng(1).permutation(30)
    renamed = cal.Binary(data.y_true, data.y_prob, group=names[data.group])
    assert cal.calibration_test(renamed).p_value == cal.calibration_test(data).p_value


def test_clusters_are_tested_as_strongly_as_their_level_is_known():
    """The score test of intercept and slope rejects a fifth of these."""
    assert np.mean([cal.calibration_test(clustered(k, [30] * 12, 0.8)).p_value <= 0.05 for k in range(30)]) >= 0.4
    assert np.mean([cal.calibration_test(clustered(k, [30] * 12, 0.0)).p_value <= 0.05 for k in range(60)]) <= 0.13


def test_one_cluster_that_dominates_says_nothing():
    for k in range(5):
        found = cal.calibration_test(clustered(k, [500] + [5] * 15, 1.0))
        assert found.p_value == 1
        assert [part.p_value for part in found.components] == [1.0, 1.0, 1.0]


def test_clusters_that_share_all_of_their_luck_and_have_no_event_are_no_evidence():
    """Signs alone rejected 46 % of such samples: where no event is likely, all clusters deviate to one side."""
    rejected = 0
    for k in range(15):
        rng = np.random.default_rng([5, k])
        size = np.maximum(1, np.rint(15 * np.exp(rng.normal(-0.5, 1.0, 20)))).astype(int)
        group = np.repeat(np.arange(20), size)
        p = 1 / (1 + np.exp(4 - rng.normal(size=20)))[group]
        rejected += cal.calibration_test(cal.Binary(rng.random(20)[group] < p, p, group=group)).p_value <= 0.05
    assert rejected <= 3


def test_rows_of_clusters_count_by_their_sums_unless_few_have_events():
    for seed, by_sums in ((11, True), (3, False)):
        sample = Sample.with_clusters(clustered(seed, [30] * 12, -1.0), needed_by="a test")
        fine = sample.fine(facing=True).merged(128)
        expected = fine.cells.effective_n if by_sums else sample.few_counting
        assert _cells_that_count(sample, fine).effective_n == pytest.approx(expected)
        assert np.isinf(sample.few_counting) == by_sums


def test_a_cluster_that_is_large_does_not_silence_the_others():
    """With the design effect of rows that are as alike as they look, 38 % of these were rejected."""
    sizes = [600] + [20] * 40
    group = np.repeat(np.arange(41), sizes)
    rejected = 0
    for k in range(40):
        rng = np.random.default_rng([6, k])
        luck = np.sqrt(0.1) * rng.normal(size=41)[group] + np.sqrt(0.9) * rng.normal(size=len(group))
        z = rng.normal(size=len(group))
        data = cal.Binary(stats.norm.cdf(luck) < 1 / (1 + np.exp(-z - 0.5)), 1 / (1 + np.exp(-z)), group=group)
        rejected += cal.calibration_test(data).p_value <= 0.05
    assert rejected >= 20


def test_few_rows_of_unequal_weights_are_simulated_one_by_one():
    """A cell has no event with the chance that none of its rows has one, not that of as many rows as it is worth."""
    rng = np.random.default_rng(0)
    p, weight = np.sort(rng.beta(1, 9, 1200)), rng.choice([1.0, 30.0], 1200, p=[0.9, 0.1])
    sample = Sample.of(cal.Binary(rng.random(1200) < p, p, weight=weight), needed_by="a test")
    cells = sample.pooled(256, facing=True)
    none = np.exp(np.bincount(cells.number, np.log1p(-p)))
    one_by_one, alike = (
        np.mean(means <= means.min(axis=1, keepdims=True) + 1e-12, axis=1)
        for drawn in (_drawn_rows(sample, cells, 9999, rng), with_drawn(cells, 9999, rng))
        for means in [np.concatenate(list(drawn), axis=1)[:, 1:]]
    )
    np.testing.assert_allclose(one_by_one, none, atol=4.5 * np.sqrt(0.25 / 9999))
    assert np.abs(alike - none).max() > 0.03


def test_signs_of_clusters_are_those_of_sums_about_zero():
    """The p-value of all signs that there are; a correction for an estimated mean would make it twice as large."""
    size, events = np.array([61, 53, 42, 34, 23, 17, 12, 10, 9, 7]), np.array([34, 41, 25, 26, 11, 13, 7, 7, 5, 3])
    cluster = np.repeat(np.arange(10), size)
    data = cal.Binary(
        np.concatenate([np.arange(n) < k for n, k in zip(size, events, strict=True)]), np.full(268, 0.5), group=cluster
    )
    sums = np.abs(np.array(list(product((-1, 1), repeat=10))) @ (size / 2 - events))
    exact = np.mean(sums >= sums[0])
    assert _of_clusters(Sample.with_clusters(data, needed_by="a test"), 999, 0)[2] == pytest.approx(exact, abs=0.012)
