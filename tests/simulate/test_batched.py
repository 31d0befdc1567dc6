"""The estimators on many samples at once are the estimators on each."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import simulate as sim
from calibrant.results.target import name_of, norm_of
from calibrant.simulate.batched import Batch, largest_rising
from calibrant.simulate.estimator_metadata import vectorised

ESTIMATORS = [
    cal.ece,
    partial(cal.ece, bins=cal.EqualWidth(15), norm=2),
    partial(cal.ece, bins=cal.Edges([0, 0.3, 0.5, 1]), norm=3),
    partial(cal.ece, norm=math.inf),
    cal.mce,
    partial(cal.mce, bins=cal.EqualWidth(7)),
    partial(cal.debiased_ece, norm=2),
    partial(cal.debiased_ece, norm=1),
    cal.results.Clipped(partial(cal.debiased_ece, bins=cal.EqualWidth(10), norm=2)),
    cal.sweep_ece,
    partial(cal.sweep_ece, bins=cal.EqualWidth, norm=2),
    partial(partial(cal.ece, norm=2), bins=cal.EqualMass(5)),
]

WORLDS = {
    "confident": sim.PAPER_WORLDS["resnet110_c10"],
    "wide": sim.PAPER_WORLDS["densenet161_imgnet"],
    "ties": sim.World(sim.EmpiricalScores(np.arange(11) / 10)),
    "one score": sim.World(sim.EmpiricalScores([0.5])),
    "atoms": sim.World(sim.WithAtoms(sim.BetaScores(2, 2), 0.3, 0.3)),
    "all positive": sim.World(sim.UniformScores(), np.ones_like),
    "separable": sim.World(sim.UniformScores(), lambda c: c > 0.5),
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
@pytest.mark.parametrize("world", WORLDS)
def test_a_batch_gives_what_each_sample_gives(world, estimator):
    for n in (1, 2, 3, 7, 40, 333):
        scores, outcomes = WORLDS[world].draw(np.random.default_rng(n), (6, n))
        expected = [float(estimator(cal.Binary(y, p))) for y, p in zip(outcomes, scores, strict=True)]
        assert vectorised(estimator)(Batch.of(scores, outcomes)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("world", WORLDS)
def test_kernel_density_errors_agree_on_fewer_nodes(world, norm):
    for n in (1, 3, 40, 500):
        scores, outcomes = WORLDS[world].draw(np.random.default_rng(n), (3, n))
        expected = [float(cal.kde_ece(y, p, norm=norm)) for y, p in zip(outcomes, scores, strict=True)]
        found = vectorised(partial(cal.kde_ece, norm=norm))(Batch.of(scores, outcomes))
        assert found == pytest.approx(expected, abs=2e-5 if math.isfinite(norm) else 2e-3)


@given(
    scores=st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0]), min_size=8, max_size=8),
    outcomes=st.lists(st.integers(0, 1), min_size=8, max_size=8),
    order=st.permutations(range(8)),
)
@settings(max_examples=100, deadline=None)
def test_row_order_and_ties_do_not_matter(scores, outcomes, order):
    p, y = np.array([scores]), np.array([outcomes], dtype=np.int8)
    batch, shuffled = Batch.of(p, y), Batch.of(p[:, order], y[:, order])
    for estimator in ESTIMATORS:
        at_once = vectorised(estimator)
        assert at_once(shuffled) == pytest.approx(at_once(batch), abs=1e-12)
        assert at_once(batch)[0] == pytest.approx(float(estimator(cal.Binary(y[0], p[0]))), abs=1e-12)


@pytest.mark.parametrize("bins", [cal.EqualMass, cal.EqualWidth])
def test_the_number_of_bins_of_the_sweep_is_that_of_sweep_ece(bins):
    scores, outcomes = WORLDS["wide"].draw(np.random.default_rng(0), (20, 500))
    expected = [
        cal.sweep_ece(cal.Binary(y, p), bins=bins).details["bins"] for y, p in zip(outcomes, scores, strict=True)
    ]
    assert largest_rising(Batch.of(scores, outcomes), bins).tolist() == expected


@pytest.mark.parametrize(
    "estimator",
    [
        cal.ks_error,
        cal.brier,
        lambda data: 0.0,
        partial(cal.ece, bins=cal.EqualWidth(5, low=0.2, high=0.8)),
        partial(cal.estimators.label_binned_ece, norm=2),
    ],
)
def test_what_cannot_run_at_once_says_so(estimator):
    assert vectorised(estimator) is None


def test_names_and_norms_are_read_from_the_estimator():
    assert name_of(partial(cal.ece, norm=2)) == "ece(norm=2)"
    assert name_of(cal.results.Clipped(cal.debiased_ece)) == "Clipped(debiased_ece)"
    assert norm_of(cal.ece) == 1
    assert norm_of(partial(cal.sweep_ece, norm=3)) == 3
    assert norm_of(cal.results.Clipped(cal.debiased_ece)) == 1
    assert norm_of(cal.mce) == math.inf
    assert norm_of(cal.ks_error) == 1
    assert norm_of(float) == 1
