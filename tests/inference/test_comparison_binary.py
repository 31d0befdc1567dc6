"""Differences of true errors of two binary models: no bias by noise, level, coverage, clusters, weights."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.inference.comparison_binary import Resolutions, SquaredErrors, SquaredGap, of_errors
from calibrant.inference.sample import Sample
from tests.inference.worlds import BENT, models


def squares(size, chance, *, samples, n=240):
    """Squared gaps of samples with the same scores, p = 0.05 to 0.95 in order."""
    p = np.linspace(0.05, 0.95, n)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(samples):
        sample = Sample.of_rows(cal.Binary(rng.random(n) < chance(p), p))
        found.append(SquaredGap.in_cells(sample, p, size))
    return found


@pytest.mark.no_cover
def test_noise_does_not_bias_the_square():
    for gap in (0.0, 0.1):
        found = np.array([one.square for one in squares(20, lambda p, gap=gap: 0.8 * p + 0.1 + gap, samples=150)])
        p = np.linspace(0.05, 0.95, 240)
        truth = np.mean((0.2 * p - 0.1 - gap) ** 2)
        assert abs(found.mean() - truth) < 3 * found.std() / np.sqrt(150)


@pytest.mark.no_cover
def test_variance_of_zero_gaps_is_the_one_that_is_seen():
    found = squares(20, lambda p: p, samples=150)
    seen = np.var([one.square for one in found])
    assert np.mean([one.shared_noise(one) for one in found]) == pytest.approx(seen, rel=0.4)


def test_the_square_is_the_sum_over_pairs_of_different_rows():
    p, y = np.array([0.2, 0.2, 0.2, 0.7, 0.7]), np.array([0, 1, 0, 1, 0])
    sample = Sample.of_rows(cal.Binary(y, p))
    residual = p - y
    found = SquaredGap.of(sample, p * (1 - p), sample.cell)
    low = [residual[i] * residual[j] for i in range(3) for j in range(3) if i != j]
    assert found.square == pytest.approx(0.6 * np.mean(low) + 0.4 * residual[3] * residual[4])


def test_rows_of_one_cluster_are_no_pair():
    p, y = np.full(6, 0.3), np.array([0, 0, 1, 1, 0, 1])
    sample = Sample.of_rows(cal.Binary(y, p, group=np.repeat([0, 1, 2], 2)))
    sums = (p - y).reshape(3, 2).sum(axis=1)
    pairs = (sums.sum() ** 2 - (sums**2).sum()) / (36 - 12)
    assert SquaredGap.of(sample, p * (1 - p), sample.cell).square == pytest.approx(pairs)


def test_models_that_rank_rows_alike_have_the_same_cells():
    rng = np.random.default_rng(2)
    p = rng.beta(1, 8, 500)
    y = rng.random(500) < p
    samples = [Sample.of_rows(cal.Binary(y, q)) for q in (p, p**2)]
    mean = (p + p**2) / 2
    a, b = (SquaredGap.in_cells(sample, mean, 40) for sample in samples)
    assert np.array_equal(a.factor, b.factor)
    own, cross = a.shared_noise(a), a.shared_noise(b)
    assert cross == pytest.approx(own, rel=0.02)


def test_without_events_the_predictions_say_how_large_noise_is():
    p = np.full(50, 0.02)
    sample = Sample.of_rows(cal.Binary(np.zeros(50, int), p))
    found = SquaredGap.of(sample, p * (1 - p), sample.cell)
    assert found.shared_noise(found) == pytest.approx(2 * (0.02 * 0.98 / 50) ** 2, rel=0.1)
    linear = 4 * 0.02**2 * 0.02 * 0.98 / 50
    assert found.contributions @ found.contributions == pytest.approx(linear, rel=0.05)


def test_contributions_are_those_of_each_row_given_all_others():
    """The product with the mean residual of the other rows, not with a mean that contains the row itself."""
    p, y = np.full(6, 0.1), np.array([0, 0, 1, 0, 0, 0])
    sample = Sample.of_rows(cal.Binary(y, p))
    found = SquaredGap.of(sample, p * (1 - p), sample.cell).contributions[:6]
    residual = p - y
    others = (residual.sum() - residual) / 5
    apart = (residual - residual.mean()) * np.sqrt(6 / 5)
    assert found == pytest.approx(2 * apart * others / 6 * np.sqrt(6 / 5))


def resolutions(y, *scores):
    samples = [Sample.of_rows(cal.Binary(y, p)) for p in scores]
    return Resolutions.of(*samples, effective_n=len(y))


def test_roots_of_squares():
    a, b = np.array([0.09, 0.04, 0.0]), np.array([0.04, 0.09, 0.0])
    assert of_errors(a - b, a + b) == pytest.approx([0.1, -0.1, 0.0])
    assert of_errors(np.array(0.05), np.array(0.01)) == pytest.approx(np.sqrt(0.05))  # b estimated below zero


def test_a_model_does_not_differ_from_itself():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    found = resolutions(rng.random(300) < p, p, p)
    assert found.chosen.value[0] == 0
    assert found.chosen.error == pytest.approx(0, abs=1e-9)
    assert found.interval(2.0, squared=False) == pytest.approx((0, 0), abs=1e-9)


def test_models_that_rank_rows_alike_differ_by_their_brier_scores():
    """What outcomes share cancels: the standard error is that of the mean difference of the scores."""
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    y = rng.random(4000) < p
    loss = (p**1.3 - y) ** 2 - (p - y) ** 2
    found = resolutions(y, p**1.3, p).chosen
    assert found.value[0] == pytest.approx(loss.mean(), abs=0.2 * found.error)
    assert found.error == pytest.approx(loss.std() / np.sqrt(4000), rel=0.1)


@pytest.mark.no_cover
def test_covariance_of_difference_and_sum_where_events_are_few():
    """Seven times what is seen, if each row is multiplied by a mean gap that contains its own residual."""
    values, covariances = [], []
    for k in range(300):
        rng = np.random.default_rng([5, k])
        p = np.minimum(rng.beta(0.5, 40, 200), 0.5)
        found = resolutions(rng.random(200) < 2 * p, p, 2 * p).found[0]
        values.append(found.value)
        covariances.append(found.covariance[0, 1])
    seen = np.cov(np.transpose(values))
    assert abs(np.mean(covariances)) <= 0.5 * np.sqrt(seen[0, 0] * seen[1, 1])


def test_finer_cells_are_chosen_where_they_cost_nothing():
    rng = np.random.default_rng(3)
    p, other = rng.random((2, 2000))
    y = rng.random(2000) < p
    alike = resolutions(y, p**1.2, p)
    assert alike.chosen is alike.found[-1]
    strangers = resolutions(other < 0.5, *(0.5 + 0.01 * rng.standard_normal((2, 2000))))
    assert strangers.chosen is strangers.found[0]


def test_an_interval_that_excludes_zero_is_not_extended_towards_it():
    wide, narrow = (SquaredErrors(np.array([0.02, 0.03]), np.diag([v, 1e-6])) for v in (1e-3, 1e-6))
    found = Resolutions([narrow, wide], 100.0)
    low, high = found.interval(2.0, squared=True)
    assert low == pytest.approx(0.018)
    assert high == pytest.approx(0.02 + 2 * np.sqrt(1e-3))


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
        for estimator in (cal.ece, cal.brier, cal.auc):
            for pair in ((bad, other), (other, bad)):
                with pytest.raises(cal.InvalidPredictions, match="same weight="):
                    cal.compare(estimator, *pair)
        with pytest.raises(cal.InvalidPredictions, match="same weight="):
            cal.inference.PairedGaps().difference(bad, other, norm=1, level=0.95)
    unit = [cal.Binary(m.y_true, m.y_prob, weight=w) for m, w in ((bad, np.full(50, 2.0)), (good, np.full(50, 3.0)))]
    for estimator in (cal.brier, partial(cal.ece, norm=2)):  # only ratios of weights matter
        ends = [
            (one.interval.low, one.interval.high)
            for one in (cal.compare(estimator, *pair) for pair in (unit, (bad, good)))
        ]
        assert ends[0] == pytest.approx(ends[1], rel=1e-6)


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
    bad, good = models(2000, seed=1)
    found = cal.compare(partial(cal.variational_error, norm="squared"), bad, good)
    assert found.interval.low <= BENT.true_error("squared") <= found.interval.high
    assert found.difference < cal.compare(partial(cal.variational_error, norm=2), bad, good).difference


def test_paired_gaps_are_for_calibration_errors():
    with pytest.raises(TypeError, match="use Bootstrap"):
        cal.compare(cal.brier, *models(50), method=cal.inference.PairedGaps())
    with pytest.raises(ValueError, match="whole number"):
        cal.inference.PairedGaps(draws=1)


def answers(n, rng, *, over=(1.0, 1.0), skill=(0.5, 0.5), group=None):
    """Two models on the same questions: difficulty is shared, every answer is right or wrong by itself."""
    difficulty = rng.normal(size=n)
    found = []
    for factor, level in zip(over, skill, strict=True):
        z = level + difficulty + 0.7 * rng.normal(size=n)
        found.append(cal.Confidence(rng.random(n) < expit(z), expit(factor * z), group=group))
    return found


def test_two_models_have_outcomes_of_their_own():
    a, b = answers(2000, np.random.default_rng(0), over=(2.0, 1.0))
    for norm in (1, 2):
        found = cal.compare(partial(cal.averaged_error, norm=norm), a, b)
        assert 0 < found.interval.low < found.difference < found.interval.high
        swapped = cal.compare(partial(cal.averaged_error, norm=norm), b, a)
        assert (swapped.difference, swapped.interval.low) == pytest.approx((-found.difference, -found.interval.high))
        assert swapped.p_value == pytest.approx(found.p_value)
    with pytest.raises(cal.InvalidPredictions, match="other outcomes in"):
        cal.compare(cal.ece, cal.Binary(a.y_true, a.y_prob), cal.Binary(b.y_true, b.y_prob))
    with pytest.raises(cal.InvalidPredictions, match="the same group="):
        cal.compare(cal.ece, a, cal.Confidence(b.correct, b.confidence, group=np.arange(2000)))
    with pytest.raises(cal.InvalidPredictions, match="other predictions"):
        cal.compare(cal.ece, a, cal.Binary(b.y_true, b.y_prob))


def test_the_same_outcomes_are_compared_as_those_of_binary_models():
    rng = np.random.default_rng(3)
    p = rng.random(800)
    y, other = rng.random(800) < p, p**1.5
    for norm in (1, 2):
        measure = partial(cal.averaged_error, norm=norm)
        as_binary = cal.compare(measure, cal.Binary(y, p), cal.Binary(y, other))
        assert cal.compare(measure, cal.Confidence(y, p), cal.Confidence(y, other)) == as_binary


def test_unseen_variance_is_not_shared_by_outcomes_of_two_models():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.9, 0.99, 400)
    samples = [Sample.of_rows(cal.Confidence(np.ones(400, int), p)) for _ in range(2)]  # no error is seen
    gaps = [SquaredGap.in_cells(sample, p, 20) for sample in samples]
    own = gaps[0].apart(first=True), gaps[1].apart(first=False)
    together, apart = SquaredErrors.of(*gaps), SquaredErrors.of(*own)
    assert together.error == pytest.approx(0.0, abs=1e-12)
    alone = gaps[0].shared_noise(gaps[0])
    assert alone > 0
    assert [one.apart(first=True).shared_noise(one.apart(first=True)) for one in gaps] == pytest.approx([alone] * 2)
    assert own[0].shared_noise(own[1]) < alone / 2
    assert apart.value == pytest.approx(together.value)
    assert apart.error > 0


@pytest.mark.no_cover
@pytest.mark.parametrize("norm", [1, 2])
def test_equal_models_on_shared_questions_are_rarely_told_apart(norm):
    rng, measure = np.random.default_rng(11), partial(cal.averaged_error, norm=norm)
    p_values = [cal.compare(measure, *answers(400, rng, over=(1.5, 1.5))).p_value for _ in range(60)]
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
