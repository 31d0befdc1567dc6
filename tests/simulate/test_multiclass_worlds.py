"""Worlds of several classes: published errors, samples, and two classes as a binary world."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim


@pytest.mark.parametrize(
    ("classes", "sharpness", "errors"),
    [
        (3, 0.3, {1: 0.4410, 2: 0.27581, np.inf: 0.2205, "squared": 0.0865}),
        (3, 2.0, {2: 0.15942}),
        (10, 0.3, {2: 0.24754}),
    ],
)
def test_multiclass_errors_are_those_of_the_variational_paper(classes, sharpness, errors):
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * classes), sim.TemperatureCurve(1 / sharpness))
    for norm, expected in errors.items():
        assert world.true_error(norm) == pytest.approx(expected, abs=8e-4)


def test_a_multiclass_sample_follows_its_true_probabilities():
    world = sim.MulticlassWorld(sim.DirichletScores([1.0, 2.0, 0.5]), lambda p: p**2)
    data = world.sample(40_000, seed=1)
    squares = data.y_prob**2
    chances = squares / squares.sum(axis=1, keepdims=True)
    for k in range(3):
        assert np.mean(data.y_true == k) == pytest.approx(chances[:, k].mean(), abs=0.01)
        assert np.mean((data.y_true == k) * data.y_prob[:, k]) == pytest.approx(
            np.mean(chances[:, k] * data.y_prob[:, k]), abs=0.01
        )


@pytest.mark.no_cover
def test_a_calibrated_multiclass_world_has_no_error_of_any_kind():
    world = sim.MulticlassWorld(sim.DirichletScores([0.7] * 4))
    assert [world.true_error(norm) for norm in (1, 2, "kl")] == pytest.approx([0, 0, 0], abs=1e-12)
    assert world.true_error(2, of="top_label") == pytest.approx(0, abs=1e-12)


def test_two_classes_are_a_binary_world():
    pair = sim.MulticlassWorld(sim.DirichletScores([2.0, 1.0]), sim.TemperatureCurve(2))
    single = sim.World(sim.BetaScores(2.0, 1.0), sim.TemperatureCurve(2))
    assert pair.true_error(1) == pytest.approx(2 * single.true_error(1), abs=5e-4)
    assert pair.true_error("kl") == pytest.approx(single.true_error("kl"), abs=5e-4)


def test_the_top_label_error_is_what_bins_of_confidence_see():
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * 3), sim.TemperatureCurve(2.5))
    data = world.sample(200_000, seed=0).top_label()
    assert cal.debiased_ece(data, bins=cal.EqualMass(50), norm=2) == pytest.approx(
        world.true_error(2, of="top_label"), abs=0.005
    )


def test_bias_works_in_a_multiclass_world():
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * 3))
    found = sim.bias(lambda data: cal.ece(data.top_label()), world, 100, repeats=20)
    assert found.truth == pytest.approx(0, abs=1e-12)
    assert found.bias > 0.03


@pytest.mark.parametrize("alpha", [[1.0], [1.0, 0.0]])
def test_a_dirichlet_needs_two_positive_numbers(alpha):
    with pytest.raises(ValueError, match="DirichletScores needs at least two positive numbers"):
        sim.DirichletScores(alpha)


def test_true_errors_are_the_same_on_every_day():
    world = sim.MulticlassWorld(sim.DirichletScores([0.5] * 3), sim.TemperatureCurve(1 / 0.3))
    assert world.true_error(2) == pytest.approx(0.27554711014638844, rel=1e-12)
    assert world.true_error(2, of="top_label") == pytest.approx(0.23224102389916704, rel=1e-12)
