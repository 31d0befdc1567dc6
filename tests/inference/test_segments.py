"""Segments: found on one half, confirmed on the other, in words; none where there is nothing."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.data.features import Feature, coded
from calibrant.data.validation import InvalidPredictions
from calibrant.inference import segments as module
from calibrant.inference.segments import Condition, _alike, _Atoms, _Search, _tested, segments
from calibrant.recalibrate.feature_map import CodedRows


def world(n, seed=0, gap=0.2):
    rng = np.random.default_rng(seed)
    X = {
        "age": rng.integers(18, 80, n),
        "place": rng.choice(["DK", "SE", "NO"], n),
        "x": rng.normal(size=n),
        "z": rng.normal(size=n),
    }
    p = rng.uniform(0.1, 0.6, n)
    inside = (X["age"] >= 60) & (X["place"] == "SE")
    return X, p, (rng.random(n) < p + gap * inside).astype(int), inside


def test_segments_are_alike_if_they_share_half_their_rows_or_lie_within_each_other_with_one_direction():
    row, low, high = np.arange(100), SimpleNamespace(direction="too low"), SimpleNamespace(direction="too high")
    assert _alike(low, row < 60, high, row < 40)
    assert not _alike(low, row < 60, high, row < 30)
    assert _alike(low, row < 60, low, row < 20)
    assert not _alike(low, row < 60, high, row < 20)
    assert not _alike(low, row < 60, low, (row >= 52) & (row < 62))


def test_a_planted_segment_is_named_with_its_means():
    X, p, y, inside = world(8000)
    found = cal.audit(y, p, X).segments
    assert len(found) == 1
    (one,) = found
    rows = one.mask(X)
    assert (rows & inside).sum() > 0.7 * (rows | inside).sum()
    assert {c.feature.name for c in one.conditions} == {"age", "place"}
    assert "place = SE" in one.text
    assert one.direction == "too low"
    assert one.observed - one.predicted == pytest.approx(0.2, abs=0.06)
    assert one.observed in one.interval
    assert one.predicted not in one.interval
    assert one.p_value < one.adjusted < 1e-6
    assert one.share == pytest.approx(rows.mean())
    assert abs(one.n - rows.sum() / 2) < 4 * np.sqrt(rows.sum() / 4)
    assert one.to_dict()["segment"] == one.text


def test_calibrated_models_have_no_segments():
    false = sum(bool(segments(CodedRows.of(y, p, X), alpha=0.05, most=8)) for X, p, y, _ in _null(80))
    assert false <= 0.05 * 80 + 3 * np.sqrt(0.05 * 0.95 * 80)


def _null(samples):
    return (world(400, seed=seed, gap=0.0) for seed in range(samples))


def test_three_conditions():
    rng = np.random.default_rng(3)
    n = 12_000
    X = {name: rng.normal(size=n) for name in "abcdef"}
    inside = (X["a"] > 0) & (X["b"] > 0) & (X["c"] > 0)
    p = np.full(n, 0.3)
    y = (rng.random(n) < p + 0.35 * inside).astype(int)
    first = cal.audit(y, p, X).segments[0]
    assert {c.feature.name for c in first.conditions} == {"a", "b", "c"}
    assert module._EXTENDED == 4


def test_conditions_of_one_feature():
    (feature,), (code,) = coded({"x": np.random.default_rng(0).normal(size=5000)}, 5000)
    atoms = _Atoms(feature, code, 20)
    starts = {low for low, _ in atoms.ranges}
    assert len(starts) == 11  # every third of 32 codes begins an interval
    assert (0, feature.size - 2) not in atoms.ranges
    values = np.repeat([f"v{k}" for k in range(60)], 50)
    (feature,), (code,) = coded({"c": values}, 3000)
    assert len(_Atoms(feature, code, 20).ranges) == 40
    flag, codes = coded({"f": [True, False, None] * 40}, 120)
    assert sorted(_Atoms(flag[0], codes[0], 20).ranges) == [(0, 0), (0, 1), (1, 1), (2, 2)]


def test_small_segments_are_not_looked_for():
    X, p, y, _ = world(2000)
    rows = CodedRows.of(y, p, X)
    assert _Search(rows, slice(0, 1000)).least == 20
    many = CodedRows.of(*(np.tile(one, 10) for one in (y, p)), {k: np.tile(v, 10) for k, v in X.items()})
    assert _Search(many, slice(0, 10_000)).least == 50


def test_weak_candidates_are_not_tested():
    counts = [len(_Search(CodedRows.of(y, p, X), slice(0, 200)).found(8)) for X, p, y, _ in _null(20)]
    assert min(counts) == 1  # the first is always tested
    assert np.mean(counts) < 3
    assert module._KEPT == -2.0


def test_where_outcomes_vary_more_than_calibrated_ones_the_p_value_is_that_of_the_t_test():
    p = np.tile([0.03, 0.97], 20)
    y = np.where(np.arange(40) % 5 < 3, 1 - p.round(), p.round())
    y[[1, 5, 7]] = 1.0
    found = module._independent(y, p, np.ones(40), 1, 0)
    assert found == pytest.approx(stats.ttest_1samp(y - p, 0, alternative="greater").pvalue)
    assert found > stats.binom.sf(y.sum() - 1, 40, p.mean())


def test_a_known_law_alone_is_not_enough():
    """Gaps that cancel: the mean gap is zero, but outcomes vary less or more than their probabilities say."""
    rng = np.random.default_rng(0)
    n, rejected = 400, 0
    for _ in range(300):
        p = np.full(n, 0.05)
        true = np.where(np.arange(n) < n // 20, 1.0, 0.0)  # mean 0.05 as well, without any noise
        y = (rng.random(n) < true).astype(float)
        rejected += module._independent(y, p, np.ones(n), 1, 0) <= 0.05
    assert rejected == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_of_a_fixed_segment_keep_their_level(weighted):
    rng = np.random.default_rng(5)
    found = []
    for _ in range(300):
        p = rng.uniform(0.05, 0.4, 80)
        weight = np.exp(rng.normal(size=80)) if weighted else np.ones(80)
        found.append(module._independent((rng.random(80) < p).astype(float), p, weight, 1, 0))
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_clusters_widen_intervals_and_p_values():
    X, p, y, _ = world(3000)
    unit = np.repeat(np.arange(300), 10)
    same = {k: v[::10][unit] for k, v in X.items()}
    rng = np.random.default_rng(0)
    inside = (same["age"] >= 60) & (same["place"] == "SE")
    q = p[::10][unit]
    y = (rng.random(300)[unit] < q + 0.3 * inside).astype(int)
    alone, together = (CodedRows.of(y, q, same, None, group) for group in (None, unit))
    half = slice(0, int(alone.place.searchsorted(0.5)))
    candidate = _Search(alone, half).found(1)[0]
    first, second = (_tested(rows, slice(0, 3000), candidate) for rows in (alone, together))
    assert second.effective_n < first.effective_n / 4
    assert second.p_value > first.p_value


def test_segments_that_overlap_are_shown_once():
    X, p, y, _ = world(8000, gap=0.3)
    found = cal.audit(y, p, {**X, "years": X["age"] + 0.5}).segments
    masks = [one.mask({**X, "years": X["age"] + 0.5}) for one in found]
    for k, first in enumerate(masks):
        for second in masks[:k]:
            assert (first & second).sum() <= 0.5 * (first | second).sum()


def test_a_condition_on_the_prediction_needs_it():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 6000)
    y = (rng.random(6000) < np.where(p > 0.7, p - 0.25, p)).astype(int)
    one = cal.audit(y, p, {"noise": rng.normal(size=6000)}).segments[0]
    assert "predicted probability >= 0.7" in one.text
    with pytest.raises(TypeError, match="pass y_prob"):
        one.mask({"noise": [1.0]})
    assert one.mask({"noise": [1.0, 1.0]}, [0.8, 0.2]).tolist() == [True, False]
    planted = cal.audit(y, p, {"high": p > 0.7}).segments[0]
    with pytest.raises(InvalidPredictions, match="X lacks the column 'high', which is needed"):
        planted.mask({"noise": [1.0]}, [0.8])


def test_names_are_printable():
    assert str(Condition(Feature("a\x1b[31m", "flag", cuts=(1.0,)), 1, 1)) == "a\\x1b[31m = True"
