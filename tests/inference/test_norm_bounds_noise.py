"""Noise of residual sums: its laws, against formulas written out, and what it refuses."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.norm_bounds import ResidualNoise, largest_quantile
from calibrant.inference.sample import pooled
from tests.inference.worlds import BENT


def noise(data, draws=4000, size=4096):
    return ResidualNoise.of(data, draws=draws, seed=0, size=size, needed_by="a test")


def total_spread(data, **options):
    return next(noise(data, **options).drawn()).sum(axis=0).std()


def test_two_laws_have_the_variances_of_the_predictions_and_of_the_residuals():
    score, events = np.array([0.1, 0.5, 0.9]), np.array([5, 60, 70])
    y = np.concatenate([np.arange(100) < k for k in events])
    null, observed = noise(cal.Binary(y, np.repeat(score, 100))).drawn()
    share, mean = events / 100, score
    wanted = [mean * (1 - mean), share * (1 - mean) ** 2 + (1 - share) * mean**2 + 3 / 300]
    for law, variance in zip((null, observed), wanted, strict=True):
        assert law.var(axis=1) == pytest.approx(variance / 100 / 9, rel=0.1)
        assert law.mean(axis=1) == pytest.approx(0, abs=0.002)


def test_no_event_of_a_rare_kind_does_not_mean_no_noise():
    null, observed = noise(cal.Binary(np.zeros(1000), np.full(1000, 0.05))).drawn()
    assert null.std() == pytest.approx(np.sqrt(0.05 * 0.95 / 1000), rel=0.1)
    assert observed.std() < 0.5 * null.std()
    assert largest_quantile((null[0], observed[0]), 0.95) == np.quantile(null, 0.95, method="weibull")


def test_hard_scores_that_were_right_may_still_be_wrong():
    """The rule of three: no error among 30 rows excludes chances of an error above 1 - 0.05^(1/30) only."""
    null, observed = noise(cal.Binary([0, 1] * 15, [0.0, 1.0] * 15)).drawn()
    assert not null.any()
    assert np.quantile(np.abs(observed.sum(axis=0)), 0.95) == pytest.approx(1 - 0.05 ** (1 / 30), rel=0.25)


def test_clusters_change_their_sign_together():
    y, score = np.tile([1, 0, 0], 12), np.tile([0.2, 0.5, 0.8], 12)
    (law,) = noise(cal.Binary(y, score, group=np.repeat(np.arange(12), 3))).drawn()
    sums = np.array([0.2 - 1, 0.5, 0.8]) / 36  # each of the twelve clusters adds these, times its sign
    unseen = 3 / 36 / 12 / 9  # shares of 1/3, counts of 12
    assert law.var(axis=1) == pytest.approx(sums**2 * 12 * 12 / 11 + unseen, rel=0.1)
    together = sums[1] * sums[2] * 12 * 12 / 11
    assert np.cov(law)[1, 2] == pytest.approx(together, rel=0.15)
    assert np.cov(law)[0, 1] == pytest.approx(sums[0] * sums[1] * 12 * 12 / 11, rel=0.15)


def test_weights_reduce_the_effective_rows():
    data = BENT.sample(400)
    rng = np.random.default_rng(0)
    weighted = cal.Binary(data.y_true, data.y_prob, weight=np.exp(rng.normal(0, 1.5, 400)))
    ratio = total_spread(weighted) / total_spread(data)
    kish = 400 / (weighted.weight.sum() ** 2 / (weighted.weight**2).sum())
    assert ratio == pytest.approx(np.sqrt(kish), rel=0.15)


def test_many_scores_are_pooled():
    data = BENT.sample(3000)
    few = noise(data, draws=500, size=64)
    assert len(few.position) == 64
    assert total_spread(data, draws=500, size=64) == pytest.approx(total_spread(data, draws=500), rel=0.15)
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert pooled(table, 4096) is table


def test_few_clusters_are_refused():
    with pytest.raises(cal.InvalidPredictions, match=r"at least 8 groups.*got 5"):
        noise(cal.Binary([0, 1] * 50, [0.3, 0.6] * 50, group=np.arange(100) % 5))


@pytest.mark.parametrize(("events", "whole"), [(15, True), (30, False)])
def test_few_expected_events_are_drawn_as_whole_numbers(events, whole):
    null, _ = noise(cal.Binary([0, 1] * 500, np.full(1000, events / 1000))).drawn()
    drawn = events - 1000 * null
    assert np.allclose(drawn, np.round(drawn)) == whole
