"""The lower bound on the largest gap: below the truth in rough worlds, exact for one score."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.inference import IsotonicBand, LargestGapBound
from tests.inference.worlds import BENT


def test_one_score_gives_the_exact_binomial_limit():
    found = cal.interval(cal.mce, cal.Binary(np.arange(100) < 60, np.full(100, 0.3))).interval
    chance = 0.3 + found.low
    one_block = 0.05 / 2  # either direction; the whole sample is looked at once more as a block of its own
    assert binom.sf(59, 100, chance) == pytest.approx(one_block / 2, rel=1e-6)


def test_it_stays_below_the_largest_gap_of_rough_curves():
    """A wave whose gap is 0.08 at most, and a calibrated model: an isotonic band fails in the first."""
    rng = np.random.default_rng(0)
    bounds, calibrated = [], []
    for _ in range(40):
        p = rng.random(4000)
        bounds.append(LargestGapBound().interval(cal.Binary(rng.random(4000) < p + 0.08 * np.sin(12 * np.pi * p), p)))
        calibrated.append(LargestGapBound().interval(cal.Binary(rng.random(4000) < p, p)))
    assert sum(bound.low > 0.08 for bound in bounds) <= 6
    assert sum(bound.low > 0 for bound in calibrated) <= 6
    assert sum(bound.low > 0 for bound in bounds) >= 10


def test_it_is_one_sided_and_says_why():
    data = BENT.sample(500)
    for estimator in (cal.mce, partial(cal.ece, norm=math.inf)):
        found = cal.interval(estimator, data)
        assert found.interval.side == "lower"
        assert found.interval.high == math.inf
        assert "IsotonicBand" in found.interval.assumption
        assert found in found.interval
    two_sided = cal.interval(cal.mce, data, method=IsotonicBand()).interval
    assert two_sided.side == "two-sided"
    table = cal.BinTable.of(data, cal.table.Distinct())
    assert cal.interval(cal.mce, table).interval == cal.interval(cal.mce, data).interval


def test_tiny_samples_claim_nothing_much():
    for y in ([0], [1, 1], [0, 1, 1, 1, 0]):
        found = LargestGapBound().interval(cal.Binary(y, np.full(len(y), 0.5)))
        assert 0 <= found.low < 0.5


def test_what_it_cannot_do_is_refused():
    data = BENT.sample(100)
    with pytest.raises(ValueError, match="Inversion"):
        LargestGapBound().interval(data, norm=2)
    with pytest.raises(cal.InvalidPredictions, match=r"group.*use ece"):
        cal.interval(cal.mce, cal.Binary(data.y_true, data.y_prob, group=np.arange(100) // 2))
    with pytest.raises(cal.InvalidPredictions, match=r"weighted.*use ece"):
        cal.interval(cal.mce, cal.Binary(data.y_true, data.y_prob, weight=np.arange(1, 101)))
