"""Comparisons of models on the same rows, and results by group."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.inference.comparison import holm
from calibrant.simulate import PowerCurve, UniformScores, World

WORLD = World(UniformScores(), PowerCurve(1.5))
FEW = cal.Bootstrap(199, kind="bias-corrected")


def models(n=1500, seed=0):
    data = WORLD.sample(n, seed)
    return data, cal.Binary(data.y_true, data.y_prob**1.5)


def test_the_better_model_is_found():
    bad, good = models()
    found = cal.compare(cal.ece, bad, good, method=FEW)
    assert found.value_a == float(cal.ece(bad))
    assert found.p_value < 0.001
    assert 0 < found.interval.low < 0.1 < found.interval.high


def test_a_model_does_not_differ_from_itself():
    data, _ = models()
    found = cal.compare(cal.ece, data, data, method=FEW)
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_the_difference_of_a_mean_is_the_paired_textbook_one():
    bad, good = models(3000)
    loss = (bad.y_prob - bad.y_true) ** 2 - (good.y_prob - good.y_true) ** 2
    found = cal.compare(cal.brier, bad, good, method=cal.Bootstrap(399, kind="bias-corrected"))
    assert found.difference == pytest.approx(loss.mean(), abs=0.0005)
    reach = (found.interval.high - found.interval.low) / 2
    assert reach == pytest.approx(1.96 * loss.std() / np.sqrt(3000), rel=0.2)


def test_equal_models_are_told_apart_at_the_level():
    rng, alarms, few = np.random.default_rng(0), [], cal.Bootstrap(99, kind="bias-corrected")
    for _ in range(40):
        p = rng.random(300)
        noise = rng.normal(0, 0.5, (2, 300))
        a, b = (1 / (1 + (1 / p - 1) * np.exp(-shift)) for shift in noise)
        y = rng.random(300) < p
        alarms.append(cal.compare(cal.ece, cal.Binary(y, a), cal.Binary(y, b), method=few).p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


def seen_by_one(rng, n, sharper, blind):
    """Outcomes of chance σ(u + v); each model sees u or v alone and is overconfident by its factor."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    features = rng.standard_normal((2, n))
    y = rng.random(n) < expit(features.sum(axis=0))
    honest = [logit(expit(features[k][:, None] + nodes) @ weights / weights.sum()) for k in blind]
    return [cal.Binary(y, expit(factor * one)) for factor, one in zip(sharper, honest, strict=True)]


def test_true_errors_that_are_equal_are_called_different_at_most_at_the_level():
    alarms = []
    for k in range(80):
        a, b = seen_by_one(np.random.default_rng([1, k]), 600, (1.4, 1.4), (0, 1))
        alarms.append(
            cal.compare(partial(cal.debiased_ece, norm=2), a, b, method=cal.inference.PairedGaps(99, k)).p_value <= 0.05
        )
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


def test_the_interval_of_two_true_errors_covers_their_difference():
    truth = WORLD.true_error(2)
    covered = []
    for k in range(40):
        bad, good = models(800, seed=k)
        found = cal.compare(partial(cal.ece, norm=2), bad, good, method=cal.inference.PairedGaps(99, k)).interval
        covered.append(found.low <= truth <= found.high)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 40)


def test_interval_and_p_value_agree_and_turn_round_with_the_models():
    bad, good = models(700)
    for level in (0.5, 0.95, 0.999):
        found = cal.compare(cal.ece, good, bad, level=level, method=cal.inference.PairedGaps(199))
        back = cal.compare(cal.ece, bad, good, level=level, method=cal.inference.PairedGaps(199))
        assert (found.p_value <= 1 - level) == (not found.interval.low <= 0 <= found.interval.high)
        assert found.difference == pytest.approx(-back.difference, abs=1e-12)
    assert "PairedGaps" in cal.compare(cal.averaged_error, bad, good).interval.method
    assert "Bootstrap" in cal.compare(cal.brier, bad, good).interval.method


def test_what_is_far_from_equal_has_a_tiny_p_value():
    bad, good = models(50_000)
    found = cal.compare(cal.ece, bad, good, method=cal.inference.PairedGaps(199))
    assert found.interval.low > 0.09
    assert found.p_value < 1e-12


def test_copies_in_clusters_do_not_make_a_difference_surer():
    bad, good = models(400)
    spread = {}
    for copies in (1, 8):
        group = np.repeat(np.arange(400), copies)
        pair = [cal.Binary(np.repeat(m.y_true, copies), np.repeat(m.y_prob, copies), group=group) for m in (bad, good)]
        found = cal.compare(cal.ece, *pair, method=cal.inference.PairedGaps(499)).interval
        spread[copies] = found.high - found.low
    assert spread[8] == pytest.approx(spread[1], rel=0.2)


def test_rows_without_weight_change_nothing():
    bad, good = models(300)
    weight = np.ones(302)
    weight[300:] = 0.0
    y, more = np.append(bad.y_true, [0, 1]), [0.0, 1.0]
    pair = [cal.Binary(y, np.append(m.y_prob, more), weight=weight) for m in (bad, good)]
    found, plain = (cal.compare(cal.ece, *two, method=cal.inference.PairedGaps(99)) for two in (pair, (bad, good)))
    assert found.difference == pytest.approx(plain.difference, rel=1e-9)
    grouped = cal.Binary(y, pair[0].y_prob, weight=weight, group=np.arange(302) // 2)
    assert np.isfinite(cal.inference.Inversion(99).interval(grouped, norm=1).high)


def test_squared_errors_are_compared_as_squares():
    bad, good = models(2000)
    found = cal.compare(partial(cal.calibration_error, norm="squared"), bad, good)
    assert found.interval.low <= WORLD.true_error("squared") <= found.interval.high
    assert found.difference < cal.compare(partial(cal.calibration_error, norm=2), bad, good).difference


def test_paired_gaps_are_for_calibration_errors():
    with pytest.raises(TypeError, match="use Bootstrap"):
        cal.compare(cal.brier, *models(50), method=cal.inference.PairedGaps())
    with pytest.raises(ValueError, match="whole number"):
        cal.inference.PairedGaps(draws=1)


def test_many_models_share_the_risk():
    bad, good = models()
    worse = cal.Binary(bad.y_true, bad.y_prob**0.5)
    found = cal.compare_many(cal.brier, {"good": good, "bad": bad, "worse": worse}, method=FEW)
    assert [(one.a, one.b) for one in found] == [("bad", "good"), ("worse", "good")]
    assert all(one.adjusted >= one.p_value for one in found)
    assert found[0].interval.level == pytest.approx(0.975)
    assert holm([0.01, 0.02, 0.9]) == pytest.approx([0.03, 0.04, 0.9])


def test_estimators_of_rows_are_compared_too():
    bad, good = models(300)
    found = cal.compare(lambda d: float(np.mean(d.y_prob)), bad, good, method=cal.Bootstrap(49))
    assert found.difference == pytest.approx(bad.y_prob.mean() - good.y_prob.mean(), abs=0.01)


def test_comparisons_are_exact_by_seed_and_print_themselves():
    bad, good = models(400)
    one, other = (cal.compare(cal.ece, bad, good, method=FEW) for _ in range(2))
    assert one == other
    assert "a - b" in repr(one)
    assert one.to_dict()["interval"]["level"] == 0.95


def test_other_rows_are_refused():
    bad, good = models(100)
    with pytest.raises(cal.InvalidPredictions, match="same rows"):
        cal.compare(cal.ece, bad, cal.Binary(1 - good.y_true, good.y_prob))
    with pytest.raises(ValueError, match="two models"):
        cal.compare_many(cal.ece, {"a": bad})
    with pytest.raises(ValueError, match="reference"):
        cal.compare_many(cal.ece, {"a": bad, "b": good}, reference="c")


def grouped(n=600):
    rng = np.random.default_rng(0)
    p, place = rng.random(3 * n), np.repeat(["a", "b", "c"], n)
    return cal.Binary(rng.random(3 * n) < np.where(place == "b", p**1.6, p), p), place


def test_each_group_has_its_estimate_interval_and_test():
    data, place = grouped()
    found = cal.by_group(cal.ece, data, by=place)
    assert list(found.estimates) == ["a", "b", "c"]
    rows = place == "b"
    alone = cal.Binary(data.y_true[rows], data.y_prob[rows])
    assert found["b"] == cal.ece(alone)
    assert found["b"].interval == cal.interval(cal.ece, alone).interval
    assert found.worst.method.startswith("worst of 3 groups: b")
    assert found.worst.p_value == pytest.approx(3 * cal.calibration_test(alone).p_value)


def test_the_worst_of_many_calibrated_groups_is_no_alarm():
    rng, alarms = np.random.default_rng(1), []
    for _ in range(25):
        p = rng.random(1000)
        data = cal.Binary(rng.random(1000) < p, p, group=np.arange(1000) % 10)
        found = cal.by_group(cal.brier, data, method=cal.Bootstrap(9), test=cal.inference.HosmerLemeshow())
        alarms.append(found.worst.p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 25)


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


def test_groups_must_be_given():
    data, _ = grouped(20)
    with pytest.raises(cal.InvalidPredictions, match="by"):
        cal.by_group(cal.ece, data)
    assert "2 groups" in repr(cal.by_group(cal.brier, data, by=np.arange(60) % 2, method=cal.Bootstrap(9)))
