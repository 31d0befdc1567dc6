"""The averaged error: little bias, calibrated or not, and what must always hold."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.target import batched
from calibrant.simulate import PAPER_WORLDS, IdentityCurve, World

rows = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=30)
@given(rows, st.randoms(use_true_random=False))
def test_any_rows_in_any_order_give_a_number_between_zero_and_one(rows, random):
    values = []
    for order in (rows, random.sample(rows, len(rows))):
        p, y = (np.array(column, dtype=float) for column in zip(*order, strict=True))
        values.append(cal.averaged_error(y, p, norm=2))
    assert 0 <= values[0] <= 1
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_doubling_every_weight_changes_nothing():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p**1.5
    once, twice = (cal.averaged_error(cal.Binary(y, p, weight=np.full(300, w))) for w in (1.0, 2.0))
    assert once == pytest.approx(cal.averaged_error(y, p), abs=1e-9)
    assert twice == pytest.approx(once, abs=1e-9)


def test_rows_and_tables_agree():
    data = PAPER_WORLDS["resnet110_c100"].sample(3000, seed=1)
    exact, grid = (
        cal.averaged_error(cal.BinTable.of(data, cells)) for cells in (cal.table.Distinct(), cal.table.HybridGrid())
    )
    assert cal.averaged_error(data) == pytest.approx(exact, abs=1e-12)
    assert grid == pytest.approx(exact, abs=2e-3)


def test_many_rows_are_counted_on_the_grid_first():
    rng = np.random.default_rng(1)
    p = rng.random(100_000)
    y = rng.random(100_000) < p**2
    assert cal.averaged_error(y, p, norm=2) == pytest.approx(math.sqrt(1 / 30), abs=0.004)
    assert cal.averaged_error(y, p, norm=1) == pytest.approx(1 / 6, abs=0.004)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["resnet110_c10", "densenet40_c100", "densenet161_imgnet"])
def test_the_bias_is_small_in_published_worlds(name):
    world, repeats = PAPER_WORLDS[name], 40
    values = [cal.averaged_error(world.sample(800, seed=seed), norm=2) for seed in range(repeats)]
    assert abs(np.mean(values) - world.true_error(2)) < 0.004 + 3 * np.std(values) / math.sqrt(repeats)


@pytest.mark.no_cover
def test_a_calibrated_model_is_told_from_a_miscalibrated_one():
    world = World(PAPER_WORLDS["resnet110_c100"].scores, IdentityCurve())
    averaged, swept = zip(
        *(
            (cal.averaged_error(d, norm=2), cal.sweep_ece(d, norm=2))
            for d in (world.sample(800, seed=s) for s in range(40))
        ),
        strict=True,
    )
    assert np.mean(averaged) < 0.5 * np.mean(swept)


def test_unfit_norms_and_tables_are_refused():
    with pytest.raises(ValueError, match="finite norm"):
        cal.averaged_error([0, 1], [0.2, 0.7], norm=math.inf)
    with pytest.raises(ValueError, match="no outcomes per row"):
        cal.averaged_error(cal.PositiveUnlabeled([0.9], [0.2, 0.7], prior=0.5))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("digits", [2, 15])
def test_many_samples_at_once_are_each_by_itself(shared, digits):
    rng = np.random.default_rng(0)
    scores = np.round(np.tile(rng.random(300), (5, 1)) if shared else rng.random((5, 300)), digits)
    outcomes = (rng.random((5, 300)) < scores**1.5).astype(np.int8)
    together = batched(partial(cal.averaged_error, norm=2))(SortedSamples.of(scores, outcomes))
    alone = [cal.averaged_error(outcome, score, norm=2) for outcome, score in zip(outcomes, scores, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)


def test_the_square_is_the_plug_in_square_without_its_noise():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    found = cal.averaged_error(rng.random(300) < p**1.2, p, norm=2)
    plug_in, noise = found.details["plug_in"], found.details["noise"]
    assert 0.3 < noise / plug_in < 0.95
    assert found == pytest.approx(np.sqrt(plug_in * (1 - (noise / plug_in) ** 5)), rel=1e-9)
