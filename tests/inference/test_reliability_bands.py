"""The honest band: exact limits, simultaneous coverage, and bounds of the error in every norm."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import calibrant as cal
from calibrant.inference import isotonic_band
from calibrant.inference.reliability import blocks, clopper_pearson
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 200), st.data())
def test_limits_are_those_of_scipy(count, data):
    hits = data.draw(st.integers(0, count))
    low, high = clopper_pearson(np.array([float(hits)]), np.array([float(count)]), 0.025)
    theirs = binomtest(hits, count).proportion_ci(0.95, method="exact")
    assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_band_is_the_best_of_all_blocks_written_out():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(30))
    y = (rng.random(30) < p).astype(int)
    band = isotonic_band(cal.Binary(y, p), level=0.9)
    start, end = blocks(30)
    lower, upper = np.zeros(30), np.ones(30)
    for j, k in zip(start, end, strict=True):
        low, high = clopper_pearson(np.array([1.0 * y[j:k].sum()]), np.array([1.0 * (k - j)]), 0.05 / len(start))
        lower[k - 1 :] = np.maximum(lower[k - 1 :], low)
        upper[: j + 1] = np.minimum(upper[: j + 1], high)
    assert band.lower == pytest.approx(lower)
    assert band.upper == pytest.approx(upper)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "world", [World(UniformScores(), PowerCurve(2)), PAPER_WORLDS["densenet40_c10"]], ids=["bent", "skewed"]
)
def test_the_band_holds_the_whole_curve_and_bounds_every_error(world):
    outside, wrong = 0, 0
    for k in range(60):
        band = isotonic_band(world.sample(400, k))
        below = world.curve(band.high_score) < band.lower - 1e-9
        above = world.curve(band.low_score) > band.upper + 1e-9
        outside += bool(np.any(below | above))
        for norm in (1, 2):
            low, high = band.error(norm)
            wrong += not low <= world.true_error(norm) <= high
    assert outside <= 3
    assert wrong == 0


def test_more_rows_make_the_band_narrower():
    world = World(UniformScores(), PowerCurve(2))
    widths = [np.subtract(*isotonic_band(world.sample(n)).error(1)[::-1]) for n in (200, 2000, 50_000)]
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.13


def test_the_largest_gap_has_bounds():
    found = cal.inference.IsotonicBand().interval(World(UniformScores(), PowerCurve(2)).sample(5000), norm=math.inf)
    assert found.low < 0.25 < found.high


def test_weights_and_groups_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="weighted"):
        isotonic_band(cal.Binary([0, 1], [0.2, 0.7], weight=[1, 2]))
    with pytest.raises(cal.InvalidPredictions, match="group"):
        isotonic_band(cal.Binary([0, 1], [0.2, 0.7], group=[1, 2]))


@pytest.mark.parametrize(("scores", "cells"), [(4096, 4096), (9000, 4096)])
def test_more_scores_than_4096_are_pooled(scores, cells):
    band = cal.inference.isotonic_band(cal.Binary(np.zeros(scores, np.int8), np.arange(scores) / scores))
    assert len(band.share) == cells
