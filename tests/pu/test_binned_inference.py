"""Intervals and the score test: coverage and size in known worlds, and the drawing of samples."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant import pu
from tests.pu.worlds import BETTER, CALIBRATED, LESS, TRUE_ERROR, drawn, everybody

PAPER_ECE = partial(cal.ece, bins=pu.PaperBins())


def coverage(method, n, world, draws, seed):
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(draws):
        table = cal.BinTable.of(drawn(rng, n, 10 * n, world), cal.pu.PaperBins())
        hits += TRUE_ERROR[world] in method.interval(table, level=0.95)
    return hits / draws


@pytest.mark.no_cover
@pytest.mark.parametrize("world", [LESS, BETTER])
def test_the_debiased_interval_covers_away_from_calibration(world):
    assert coverage(pu.DebiasedDelta(), 100, LESS, 400, seed=0) >= 0.93
    assert coverage(pu.DebiasedDelta(), 1000, world, 300, seed=1) >= 0.93


@pytest.mark.no_cover
def test_the_score_test_has_its_size_and_sees_a_miscalibrated_model():
    rng = np.random.default_rng(3)
    for bins in (cal.EqualMass(10), cal.EqualWidth(10)):
        null = [
            cal.calibration_test(drawn(rng, 500, 5000, CALIBRATED), method=pu.PUScore(bins)).p_value for _ in range(600)
        ]
        assert 0.03 <= np.mean(np.array(null) < 0.05) <= 0.07
        power = [cal.calibration_test(drawn(rng, 500, 5000, LESS), method=pu.PUScore(bins)).p_value for _ in range(20)]
        assert max(power) < 0.001


def single_sample(rng, n, world, known):
    """A sample in which three positives of ten are labelled; their share or the prior is known."""
    p, y = everybody(rng, n, world)
    s = y & (rng.random(len(p)) < 0.3)
    value = {"label_frequency": 0.3, "prior": 0.5}[known]
    return cal.PositiveUnlabeled.from_labels(s, p, scenario="single-sample", **{known: value})


@pytest.mark.no_cover
@pytest.mark.parametrize("known", ["label_frequency", "prior"])
def test_the_score_test_has_its_size_in_a_single_sample(known):
    rng = np.random.default_rng(4)
    rejected = []
    for _ in range(600):
        data = single_sample(rng, 4000, CALIBRATED, known)
        rejected.append(cal.calibration_test(data).p_value < 0.05)
    assert 0.03 <= np.mean(rejected) <= 0.07


@pytest.mark.parametrize("known", ["label_frequency", "prior"])
def test_variances_of_a_single_sample_are_those_of_repeated_draws(known):
    rng = np.random.default_rng(6)
    gaps = []
    for _ in range(800):
        data = single_sample(rng, 2000, LESS, known)
        gaps.append(pu.Gaps.of(cal.BinTable.of(data, cal.EqualWidth(5))))
    seen = np.diag(np.cov([g.gap for g in gaps], rowvar=False))
    np.testing.assert_allclose(seen, np.mean([g.variance for g in gaps], axis=0), rtol=0.25)


def test_bin_intervals_cover_the_true_rates():
    rng = np.random.default_rng(8)
    p, y = everybody(rng, 2_000_000, LESS)
    edges = np.linspace(0, 1, 11)
    which = np.searchsorted(edges[1:-1], p, side="left")
    truth = np.bincount(which, y, 10) / np.bincount(which, minlength=10)
    inside = []
    for _ in range(200):
        result = pu.reliability(drawn(rng, 100, 1000, LESS), bins=cal.EqualWidth(10))
        inside.append((result.low <= truth) & (truth <= result.high))
    assert np.min(np.mean(inside, axis=0)) >= 0.90
    assert np.mean(inside) >= 0.93


def test_a_bin_without_a_labelled_positive_has_an_interval():
    result = pu.reliability(cal.PositiveUnlabeled([0.9], [0.1, 0.2, 0.9], prior=0.3), bins=cal.EqualWidth(2))
    assert result.rate[0] == 0
    assert 0 < result.low[0] < result.high[0]


def test_the_interval_of_a_table_is_that_of_its_rows():
    data = drawn(np.random.default_rng(9), 200, 2000, LESS)
    table = cal.BinTable.of(data, cal.table.Distinct())
    again = cal.interval(PAPER_ECE, table).interval
    assert again.low == pytest.approx(cal.interval(PAPER_ECE, data).interval.low, abs=1e-12)


def test_the_interval_is_that_of_the_bins_of_the_estimate():
    data = drawn(np.random.default_rng(9), 200, 2000, LESS)
    for bins in (cal.EqualMass(15), cal.EqualWidth(8), pu.PaperBins()):
        found = cal.interval(partial(cal.ece, bins=bins), data, method=pu.DebiasedDelta())
        assert found == cal.ece(data, bins=bins)
        expected = pu.DebiasedDelta().interval(cal.BinTable.of(data, bins))
        assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert found.interval.target == cal.results.Target("binned error", 1)
    paper = cal.interval(PAPER_ECE, data, method=pu.DebiasedDelta()).interval
    assert pu.DebiasedDelta().interval(data) == paper


def test_other_errors_and_other_data_are_refused():
    data = drawn(np.random.default_rng(9), 50, 200, LESS)
    for estimator in (partial(cal.ece, norm=2), cal.variational_error):
        with pytest.raises(cal.InvalidPredictions, match="norm=1"):
            cal.interval(estimator, data, method=pu.DebiasedDelta())
    with pytest.raises(cal.InvalidPredictions, match="L1"):
        pu.DebiasedDelta().interval(data, norm=2)
    with pytest.raises(TypeError, match="calibration errors"):
        cal.interval(cal.brier, data)
    with pytest.raises(cal.InvalidPredictions, match="positive-unlabeled"):
        cal.interval(cal.ece, cal.Binary([0, 1], [0.2, 0.7]), method=pu.DebiasedDelta())


def test_the_percentile_bootstrap_is_not_offered():
    assert not [name for name in pu.__all__ if "ercentile" in name]
    with pytest.raises(TypeError, match="method must be"):
        cal.interval(cal.ece, drawn(np.random.default_rng(0), 20, 50, LESS), method="percentile")


@pytest.mark.parametrize("known", [{"prior": 0.08}, {"label_frequency": 0.95}])
def test_the_score_test_of_one_sample_rejects_a_hopeless_prior(known):
    rng = np.random.default_rng(0)
    score = rng.beta(2, 6, 30_000)
    labelled = rng.random(30_000) < 0.3 * score
    data = cal.PositiveUnlabeled.from_labels(labelled, score, scenario="single-sample", **known)
    assert cal.calibration_test(data).p_value < 1e-12


@pytest.mark.parametrize("score", [0.0, 0.3])
def test_one_score_for_all_rows_is_compared_with_the_prior_without_noise(score):
    data = cal.PositiveUnlabeled(np.full(20, score), np.full(100, score), prior=0.3)
    assert (cal.calibration_test(data).p_value > 0.9) == (score == 0.3)


@pytest.mark.no_cover
@pytest.mark.parametrize("known", [{"prior": 1 / 21}, {"label_frequency": 0.1}])
def test_a_dozen_labelled_positives_do_not_condemn_a_calibrated_model(known):
    rejected = []
    for seed in range(300):
        rng = np.random.default_rng([seed, 7])
        score = rng.beta(1, 20, 3000)
        labelled = rng.random(3000) < 0.1 * score
        data = cal.PositiveUnlabeled.from_labels(labelled, score, scenario="single-sample", **known)
        rejected.append(cal.calibration_test(data).p_value < 0.05)
    assert np.mean(rejected) <= 0.06


def test_the_test_needs_positive_unlabeled_data():
    with pytest.raises(ValueError, match="positive-unlabeled data"):
        pu.PUScore().test(cal.Binary([0, 1], [0.2, 0.7]))
    with pytest.raises(TypeError, match="positive-unlabeled data"):
        cal.calibration_test(cal.Binary([0, 1], [0.2, 0.7]), method=pu.PUScore())


def test_the_diagram_draws_the_rates_it_was_given():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    result = pu.reliability(cal.PositiveUnlabeled([0.7, 0.8, 0.4, 0.9], [0.1, 0.2, 0.5, 0.8, 0.9], prior=0.5))
    ax = cal.plot.reliability_diagram(result, ax=plt.figure().subplots())
    x, y = ax.lines[1].get_data()
    np.testing.assert_allclose(x, result.predicted)
    np.testing.assert_allclose(y, np.minimum(result.rate, 1))
    plt.close("all")


def test_an_impossible_prior_is_warned_of_once():
    rng = np.random.default_rng(0)
    data = cal.PositiveUnlabeled(rng.beta(3, 1.2, 200), rng.beta(1.5, 2, 2000), prior=0.5)
    with pytest.warns(UserWarning, match="larger than the data allow") as caught:
        cal.interval(cal.ece, data)
    assert len(caught) == 1
