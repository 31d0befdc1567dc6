"""Samples on which an estimator of many samples at once must give what it gives on each."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.target import batched

WORLDS = {
    "confident": sim.PAPER_WORLDS["resnet110_c10"],
    "wide": sim.PAPER_WORLDS["densenet161_imgnet"],
    "ties": sim.World(sim.EmpiricalScores(np.arange(11) / 10)),
    "one score": sim.World(sim.EmpiricalScores([0.5])),
    "atoms": sim.World(sim.WithAtoms(sim.BetaScores(2, 2), 0.3, 0.3)),
    "all positive": sim.World(sim.UniformScores(), np.ones_like),
    "separable": sim.World(sim.UniformScores(), lambda c: c > 0.5),
}


def assert_as_one_by_one(estimator, *, sizes=(1, 2, 3, 7, 40, 333), samples=6, tolerance=1e-12):
    """A batch of samples of each world and size gives what each sample gives, whatever the order of its rows."""
    at_once = batched(estimator)
    for name, world in WORLDS.items():
        for n in sizes:
            rng = np.random.default_rng(n)
            scores, outcomes = world.draw(rng, (samples, n))
            expected = [float(estimator(cal.Binary(y, p))) for y, p in zip(outcomes, scores, strict=True)]
            found = at_once(SortedSamples.of(scores, outcomes))
            assert found == pytest.approx(expected, abs=tolerance), (name, n)
            order = rng.permutation(n)
            shuffled = at_once(SortedSamples.of(scores[:, order], outcomes[:, order]))
            assert shuffled == pytest.approx(found, abs=1e-12), (name, n)
