"""The suite of worlds in short: intervals cover where gaps are rough, scores repeat, events are rare, rows cluster.

Bounds are so loose that intervals with their nominal coverage never fail them; intervals that assume a smooth gap do.
The full suite is `reproduce.coverage`, its results are in docs/evidence/coverage.md.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

sys.path.insert(0, str(Path(__file__).parents[2]))
coverage = pytest.importorskip("reproduce.coverage", reason="the scripts of the repository are not beside the tests")

DRAWS, SAMPLES = 199, 12


@cache
def intervals(name, n, side="two-sided"):
    """Intervals of the L1 and the L2 error in so many samples of a world."""
    world, method = coverage.the_worlds()[name], cal.inference.Inversion
    samples = [world.sample(n, np.random.default_rng([n, k])) for k in range(SAMPLES)]
    return [method(DRAWS, k, side=side).intervals(data, norms=(1.0, 2.0)) for k, data in enumerate(samples)]


def truths(name):
    return [coverage.the_worlds()[name].true_error(norm) for norm in (1.0, 2.0)]


ROUGH = {
    "wave, 6 periods": 20_000,
    "ten stairs": 20_000,
    "wrong in the top 2 %": 20_000,
    "101 atoms, zigzag": 1000,
    "a quarter at 0.5, chance 0.7": 20_000,
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ROUGH)
def test_rough_gaps_are_covered(name):
    found = intervals(name, ROUGH[name])
    for k, truth in enumerate(truths(name)):
        assert sum(truth in both[k] for both in found) >= SAMPLES - 3


@pytest.mark.parametrize("name", ["wrong in the top 2 %", "one-sided dip at 0.9"])
def test_lower_bounds_claim_no_more_than_the_truth(name):
    found = intervals(name, 20_000, side="lower")
    for k, truth in enumerate(truths(name)):
        assert sum(bound[k].low > truth for bound in found) <= 3


@pytest.mark.parametrize("name", ["11 atoms, calibrated", "1 % events, calibrated", "beta(0.3, 0.3), calibrated"])
@pytest.mark.parametrize("n", [50, 1000])
def test_calibrated_models_are_not_accused(name, n):
    for k in (0, 1):
        assert sum(both[k].low > 0 for both in intervals(name, n)) <= 2


@pytest.mark.parametrize("scores", ["independent", "correlated"])
@pytest.mark.parametrize("words", ["calibrated", "temperature 1.8"])
def test_uneven_clusters_are_covered(scores, words):
    name = f"uneven clusters, {scores} scores, {words}"
    found = intervals(name, 60)
    for k, truth in enumerate(truths(name)):
        assert sum(truth in both[k] for both in found) >= SAMPLES - 3
