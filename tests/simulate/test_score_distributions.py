"""Distributions of scores: draws and expectations, also next to 1 and with atoms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from calibrant import simulate as sim
from calibrant.simulate.score_distributions import graded, integral


def test_quadrature_is_exact_for_the_scores_of_confident_networks():
    """The first moments of Beta(2.8, 0.05) and a cubic gap, whose L1 error needs no absolute value."""
    a, b = 2.8, 0.05
    scores = sim.BetaScores(a, b)
    assert sim.World(scores).expect(lambda s, c: s) == pytest.approx(a / (a + b), abs=1e-12)
    cubic = sim.World(scores, sim.PowerCurve(3))
    third = a * (a + 1) * (a + 2) / ((a + b) * (a + b + 1) * (a + b + 2))
    assert cubic.true_error(1) == pytest.approx(a / (a + b) - third, abs=1e-10)


def test_an_empirical_world_averages_over_its_scores():
    world = sim.World(sim.EmpiricalScores([0.2, 0.6, 0.6, 1.0]), sim.PowerCurve(2))
    assert world.true_error(1) == pytest.approx(np.mean([0.16, 0.24, 0.24, 0.0]))
    assert set(world.sample(200).y_prob.round(12)) == {0.2, 0.6, 1.0}


def test_atoms_have_their_share_and_their_own_outcomes():
    scores = sim.WithAtoms(sim.UniformScores(), at_zero=0.1, at_one=0.3)
    world = sim.World(scores, sim.WithEnds(sim.IdentityCurve(), at_zero=0.2, at_one=0.5))
    assert world.true_error(1) == pytest.approx(0.1 * 0.2 + 0.3 * 0.5, abs=1e-9)
    data = world.sample(40_000, seed=1)
    ones = data.y_prob == 1
    assert ones.mean() == pytest.approx(0.3, abs=0.01)
    assert (data.y_prob == 0).mean() == pytest.approx(0.1, abs=0.01)
    assert data.y_true[ones].mean() == pytest.approx(0.5, abs=0.02)


def test_draws_of_a_beta_have_the_right_distribution_to_the_last_digit():
    """The share of scores within q of 1 is known; a naive draw has all of them at 1."""
    from scipy.special import betainc

    z = sim.BetaScores(2.8, 0.05).draw(np.random.default_rng(0), 200_000)
    assert np.mean(z > 40) > 0.1
    for s in (0.3, 0.9, 0.999):
        assert np.mean(z <= np.log(s / (1 - s))) == pytest.approx(betainc(2.8, 0.05, s), abs=0.003)
    far = 60.0  # 1 - s = e^-60: P(S > s) = q^b / (b B(a, b)) to first order
    from scipy.special import beta

    assert np.mean(z > far) == pytest.approx(np.exp(-0.05 * far) / (0.05 * beta(2.8, 0.05)), abs=0.003)


def test_a_mixture_of_gaussians_has_its_moments():
    scores = sim.LogitMixtureScores([-1, 3], [1, 2], [0.3, 0.7])
    assert scores.expect(lambda z: z) == pytest.approx(-0.3 + 2.1)
    assert scores.expect(lambda z: z**2) == pytest.approx(0.3 * (1 + 1) + 0.7 * (9 + 4))
    z = scores.draw(np.random.default_rng(0), 100_000)
    assert z.mean() == pytest.approx(1.8, abs=0.03)


def test_draws_take_any_shape():
    for scores in (sim.UniformScores(), sim.LogitMixtureScores([0], [1], [1]), sim.EmpiricalScores([0.2, 0.4])):
        assert sim.WithAtoms(scores, 0.5, 0.5).draw(np.random.default_rng(0), (3, 4)).shape == (3, 4)


def test_fixed_scores_are_the_same_in_every_sample():
    world = sim.World(sim.FixedScores([0.1, 0.5, 0.5, 1.0]), sim.PowerCurve(2))
    scores, outcomes = world.draw(np.random.default_rng(0), (200, 4))
    np.testing.assert_allclose(scores, np.tile([0.1, 0.5, 0.5, 1.0], (200, 1)))
    drawn = np.random.default_rng(0).random((200, 4)) < [0.01, 0.25, 0.25, 1.0]
    np.testing.assert_array_equal(outcomes, drawn)
    assert world.true_error(1) == pytest.approx((0.09 + 0.25 + 0.25) / 4)
    with pytest.raises(ValueError, match="samples of 4 rows, got 3"):
        world.sample(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.BetaScores(0, 1), "BetaScores needs two positive numbers"),
        (lambda: sim.WithAtoms(sim.UniformScores(), at_one=1.2), "shares of the mass"),
        (lambda: sim.LogitMixtureScores([0], [1], [0.5]), "weights that sum to 1"),
        (lambda: sim.EmpiricalScores([0.5, 1.5]), "must lie in"),
    ],
)
def test_invalid_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@given(st.floats(0.01, 0.99))
def test_a_kink_anywhere_is_found(at):
    assert integral(lambda x: np.abs(x - at), np.array([0.0, 1.0])) == pytest.approx((at**2 + (1 - at) ** 2) / 2)


@pytest.mark.no_cover
@given(st.floats(0.01, 0.99))
def test_a_step_anywhere_is_found(at):
    assert integral(lambda x: np.where(x > at, 1.0, 0.0), np.array([0.0, 0.5, 1.0])) == pytest.approx(1 - at, abs=1e-9)


def test_smooth_functions_are_those_of_scipy():
    expected = integrate.quad(lambda x: np.exp(-(x**2)) * np.cos(3 * x), -4, 5, epsabs=1e-13)[0]
    found = integral(lambda x: np.exp(-(x**2)) * np.cos(3 * x), np.linspace(-4, 5, 9))
    assert found == pytest.approx(expected, abs=1e-11)


def test_graded_panels_rise_and_are_narrow_about_zero():
    edges = graded(-1000.0, 200.0)
    width = np.diff(edges)
    assert (edges[0], edges[-1], len(edges)) == (pytest.approx(-1000), pytest.approx(200), 65)
    assert np.all(width > 0)
    assert abs(edges[np.argmin(width)]) < 1
