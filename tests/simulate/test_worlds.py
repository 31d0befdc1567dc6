"""Worlds of known error: the published ones, closed forms, and what a sample of them looks like."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

import calibrant as cal
from calibrant import simulate as sim

PUBLISHED_L2 = [10.709, 9.531, 10.126, 10.372, 20.366, 18.519, 21.261, 23.359, 8.605, 5.468]


@pytest.mark.parametrize(("name", "percent"), list(zip(sim.PAPER_WORLDS, PUBLISHED_L2, strict=True)))
def test_the_published_fits_have_their_true_error(name, percent):
    assert 100 * sim.PAPER_WORLDS[name].true_error(2) == pytest.approx(percent, abs=0.002)


def test_the_logistic_curve_on_uniform_scores():
    world = sim.World(sim.UniformScores(), lambda c: 1 / (1 + np.exp(5 - 10 * c)))
    assert 100 * world.true_error(2) == pytest.approx(12.633, abs=0.001)


@pytest.mark.parametrize(
    ("scores", "d", "percent"),
    [
        (sim.UniformScores(), 1.05, 1.328),
        (sim.UniformScores(), 2, 18.257),
        (sim.UniformScores(), 10, 46.291),
        (sim.BetaScores(1.1, 0.1), 2, 8.463),
        (sim.BetaScores(1.1, 0.1), 10, 27.934),
    ],
)
def test_powers_have_the_error_of_the_paper(scores, d, percent):
    assert 100 * sim.World(scores, sim.PowerCurve(d)).true_error(2) == pytest.approx(percent, abs=0.001)


@given(a=st.floats(0.05, 5), b=st.floats(0.03, 5), d=st.floats(1.01, 10))
@settings(max_examples=40, deadline=None)
def test_quadrature_equals_the_closed_form(a, b, d):
    moments = special.betaln(a + np.array([2, d + 1, 2 * d]), b) - special.betaln(a, b)
    second, cross, power = np.exp(moments)  # of the score, of score and curve, of the curve
    by_quadrature = sim.World(sim.BetaScores(a, b), sim.PowerCurve(d)).true_error(2)
    assert by_quadrature == pytest.approx(math.sqrt(max(second - 2 * cross + power, 0)), abs=1e-6)


def test_quadrature_agrees_with_scipy_on_a_kinked_curve():
    world = sim.World(sim.BetaScores(2, 3), lambda c: np.where(c > 0.4, 0.9 * c, c + 0.1))
    density = lambda s: abs(s - world.curve(s)) * 12 * s * (1 - s) ** 2  # noqa: E731
    expected = integrate.quad(density, 0, 0.4, epsabs=1e-12)[0] + integrate.quad(density, 0.4, 1, epsabs=1e-12)[0]
    assert world.true_error(1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("curve", "first", "squared", "divergence"),
    [
        (sim.Glm("logit_logit", 0.3, 0.4), 0.137157, 0.024507, 0.12444),
        (sim.ShiftCurve(0.02), 0.018797, 0.000371, 0.0054),
        (sim.Glm("logit_logit", 1, 4), 0.131246, 0.027886, 0.1145),
        (sim.TemperatureCurve(2.5), 0.128660, 0.019893, 0.1113),
        (sim.TemperatureCurve(0.25), 0.127572, 0.025402, 0.1090),
        (sim.WavyCurve(), 0.040069, 0.002235, 0.0175),
    ],
)
def test_the_worlds_of_the_variational_paper(curve, first, squared, divergence):
    world = sim.World(sim.BetaScores(0.5, 0.5), curve)
    assert world.true_error(1) == pytest.approx(first, abs=1e-6)
    assert world.true_error("squared") == pytest.approx(squared, abs=1e-6)
    assert world.true_error("kl") == pytest.approx(divergence, abs=1e-4)


@pytest.mark.parametrize(
    "scores", [sim.UniformScores(), sim.BetaScores(2.8, 0.05), sim.LogitMixtureScores([0, 3], [1, 2], [0.4, 0.6])]
)
def test_a_calibrated_world_has_no_error(scores):
    world = sim.World(scores, sim.PowerCurve(2)).calibrated()
    assert [world.true_error(norm) for norm in (1, 2, 3.5, math.inf, "squared", "kl")] == pytest.approx(
        [0] * 6, abs=1e-9
    )


def test_the_largest_gap_is_the_infinite_norm():
    assert sim.World(sim.UniformScores(), sim.PowerCurve(2)).true_error(math.inf) == pytest.approx(0.25, abs=1e-6)


def test_samples_follow_the_curve_and_the_scores():
    world = sim.World(sim.BetaScores(2, 3), sim.PowerCurve(2))
    data = world.sample(100_000, seed=3)
    assert data.y_prob.mean() == pytest.approx(0.4, abs=0.002)
    assert (data.y_prob**2).mean() == pytest.approx(0.2, abs=0.002)
    assert data.y_true.mean() == pytest.approx(0.2, abs=0.005)
    assert cal.ece(data, norm=1) == pytest.approx(world.true_error(1), abs=0.01)


def test_the_same_seed_gives_the_same_rows_and_another_does_not():
    world = sim.PAPER_WORLDS["resnet110_c100"]
    first, again, other = world.sample(50, seed=4), world.sample(50, seed=4), world.sample(50, seed=5)
    assert np.array_equal(first.y_prob, again.y_prob)
    assert np.array_equal(first.y_true, again.y_true)
    assert not np.array_equal(first.y_prob, other.y_prob)


def test_a_norm_below_1_is_refused():
    with pytest.raises(ValueError, match="norm must be a number of at least 1"):
        sim.World(sim.UniformScores()).true_error(0.5)
