"""Differences of true errors: level, coverage, clusters, weights."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from tests.inference.worlds import BENT, models


def seen_by_one(rng, n, sharper, blind):
    """Outcomes of chance σ(u + v); each model sees u or v alone and is overconfident by its factor."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    features = rng.standard_normal((2, n))
    y = rng.random(n) < expit(features.sum(axis=0))
    honest = [logit(expit(features[k][:, None] + nodes) @ weights / weights.sum()) for k in blind]
    return [cal.Binary(y, expit(factor * one)) for factor, one in zip(sharper, honest, strict=True)]


@pytest.mark.no_cover
def test_true_errors_that_are_equal_are_called_different_at_most_at_the_level():
    alarms = []
    for k in range(80):
        a, b = seen_by_one(np.random.default_rng([1, k]), 600, (1.4, 1.4), (0, 1))
        alarms.append(cal.compare(partial(cal.debiased_ece, norm=2), a, b).p_value <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


@pytest.mark.no_cover
def test_an_overconfident_model_is_told_from_a_better_one_of_the_same_ranks():
    """The limits of each model alone found this in a quarter of samples."""
    found = 0
    for k in range(40):
        a, b = seen_by_one(np.random.default_rng([2, k]), 1000, (1.4, 1.1), (0, 0))
        found += cal.compare(partial(cal.debiased_ece, norm=2), a, b).p_value <= 0.05
    assert found >= 13  # 0.55 of 100 other samples; at most 1 in 100 runs have fewer


@pytest.mark.no_cover
def test_equal_errors_of_different_curves_are_not_called_different():
    """Ten stairs lose part of their error inside cells of √n rows, a straight gap nothing."""
    alarms = 0
    for k in range(60):
        rng = np.random.default_rng([4, k])
        p = rng.random(2000)
        chance = (np.floor(10 * p) + 0.5) / 10
        y = rng.random(2000) < chance
        bent = chance + 0.1 / np.sqrt(12) * chance * (1 - chance) / np.sqrt(np.mean((chance * (1 - chance)) ** 2))
        alarms += cal.compare(partial(cal.ece, norm=2), cal.Binary(y, p), cal.Binary(y, bent)).p_value <= 0.05
    assert alarms <= 60 * 0.05 + 3 * np.sqrt(60 * 0.05 * 0.95)


def test_few_clusters_say_nothing():
    bad, good = models(400)
    pair = [cal.Binary(m.y_true, m.y_prob, group=np.arange(400) % 4) for m in (bad, good)]
    found = cal.compare(partial(cal.ece, norm=2), *pair)
    assert found.p_value == 1
    assert found.interval.low < -0.5 < 0.5 < found.interval.high


def test_models_of_the_same_rows_have_the_same_weights_and_groups():
    bad, good = models(50)
    weighted = cal.Binary(good.y_true, good.y_prob, weight=np.arange(1, 51))
    grouped = cal.Binary(good.y_true, good.y_prob, group=np.arange(50) // 2)
    for other in (weighted, grouped):
        with pytest.raises(cal.InvalidPredictions, match="same weight="):
            cal.compare(cal.ece, bad, other)


@pytest.mark.no_cover
def test_the_interval_of_two_true_errors_covers_their_difference():
    truth = BENT.true_error(2)
    covered = []
    for k in range(40):
        bad, good = models(800, seed=k)
        found = cal.compare(partial(cal.ece, norm=2), bad, good, method=cal.inference.PairedGaps(99, k)).interval
        covered.append(found.low <= truth <= found.high)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 40)


@pytest.mark.no_cover
def test_the_difference_is_covered_where_events_are_few():
    """Five events in the mean. The sum of squared errors seemed to rise with their difference: 0.91 were covered."""
    score = np.random.default_rng(6).beta(0.5, 40, 10**6)
    truth = np.sqrt(np.mean(score**2))
    covered = []
    for k in range(200):
        rng = np.random.default_rng([6, k])
        p = np.minimum(rng.beta(0.5, 40, 200), 0.5)
        y = rng.random(200) < 2 * p
        found = cal.inference.PairedGaps().difference(cal.Binary(y, p), cal.Binary(y, 2 * p), norm=2, level=0.95)
        covered.append(found.low <= truth <= found.high)
    assert np.mean(covered) >= 0.95


def test_a_wavy_model_against_an_honest_one_is_covered():
    """Fits of a dozen knots covered a fifth of these."""
    covered = []
    for k in range(12):
        rng = np.random.default_rng([k, 5000])
        p = rng.random(5000)
        chance = p + 0.08 * np.sin(12 * np.pi * p)
        y = rng.random(5000) < chance
        found = cal.inference.PairedGaps(99, k).difference(cal.Binary(y, p), cal.Binary(y, chance), norm=1, level=0.95)
        covered.append(found.low <= 0.16 / np.pi <= found.high)
    assert np.mean(covered) >= 0.75


def test_a_model_that_may_be_calibrated_is_never_the_worse_one():
    rng = np.random.default_rng(3)
    p = rng.random(300)
    y = rng.random(300) < p
    noisy = cal.Binary(y, np.clip(p + 0.1 * rng.standard_normal(300), 0, 1))
    limits = cal.inference.Inversion(99).interval(noisy, norm=1)
    found = cal.inference.PairedGaps(99).difference(cal.Binary(y, p), noisy, norm=1, level=0.95)
    assert found.low <= -limits.high + 1e-12


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
    assert found.interval.low > 0.085
    assert found.p_value < 1e-12


@pytest.mark.parametrize("norm", [1, 2])
def test_copies_in_clusters_do_not_make_a_difference_surer(norm):
    bad, good = models(400)
    spread = {}
    for copies in (1, 8):
        group = np.repeat(np.arange(400), copies)
        pair = [cal.Binary(np.repeat(m.y_true, copies), np.repeat(m.y_prob, copies), group=group) for m in (bad, good)]
        found = cal.compare(partial(cal.ece, norm=norm), *pair, method=cal.inference.PairedGaps(499)).interval
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
    assert found.interval.low <= BENT.true_error("squared") <= found.interval.high
    assert found.difference < cal.compare(partial(cal.calibration_error, norm=2), bad, good).difference


def test_paired_gaps_are_for_calibration_errors():
    with pytest.raises(TypeError, match="use Bootstrap"):
        cal.compare(cal.brier, *models(50), method=cal.inference.PairedGaps())
    with pytest.raises(ValueError, match="whole number"):
        cal.inference.PairedGaps(draws=1)
