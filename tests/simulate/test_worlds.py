"""Worlds of known error: the published ones, closed forms, and what a sample of them looks like."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

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
    world = sim.World(sim.BetaScores(a, b), sim.PowerCurve(d))
    by_quadrature = math.sqrt(world.expect(lambda s, c: (s - c) ** 2))
    assert by_quadrature == pytest.approx(world.true_error(2), abs=1e-6)


def test_quadrature_is_exact_for_the_scores_of_confident_networks():
    """The first moments of Beta(2.8, 0.05) and a cubic gap, whose L1 error needs no absolute value."""
    a, b = 2.8, 0.05
    scores = sim.BetaScores(a, b)
    assert sim.World(scores).expect(lambda s, c: s) == pytest.approx(a / (a + b), abs=1e-12)
    cubic = sim.World(scores, sim.PowerCurve(3))
    third = a * (a + 1) * (a + 2) / ((a + b) * (a + b + 1) * (a + b + 2))
    assert cubic.true_error(1) == pytest.approx(a / (a + b) - third, abs=1e-10)


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


def test_samples_follow_the_curve_and_the_scores():
    world = sim.World(sim.BetaScores(2, 3), sim.PowerCurve(2))
    data = world.sample(100_000, seed=3)
    assert data.y_prob.mean() == pytest.approx(0.4, abs=0.002)
    assert (data.y_prob**2).mean() == pytest.approx(0.2, abs=0.002)
    assert data.y_true.mean() == pytest.approx(0.2, abs=0.005)
    assert cal.ece(data, norm=1) == pytest.approx(world.true_error(1), abs=0.01)


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


def test_the_same_seed_gives_the_same_rows_and_another_does_not():
    world = sim.PAPER_WORLDS["resnet110_c100"]
    first, again, other = world.sample(50, seed=4), world.sample(50, seed=4), world.sample(50, seed=5)
    assert np.array_equal(first.y_prob, again.y_prob)
    assert np.array_equal(first.y_true, again.y_true)
    assert not np.array_equal(first.y_prob, other.y_prob)


def test_glm_families_are_their_formulas():
    s, b0, b1 = np.array([0.1, 0.5, 0.93]), -0.2, 0.6
    logistic = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    expected = {
        "logit_logit": logistic(b0 + b1 * np.log(s / (1 - s))),
        "logit_logflip": logistic(b0 + b1 * np.log(1 - s)),
        "log_log": np.exp(b0) * s**b1,
        "logflip_logflip": 1 - np.exp(b0) * (1 - s) ** b1,
    }
    for family, values in expected.items():
        assert sim.Glm(family, b0, b1)(s) == pytest.approx(values, abs=1e-14)


def test_a_glm_without_slope_is_constant_to_the_ends():
    assert sim.Glm("logit_logflip", b0=0.0)([0.0, 0.5, 1.0]) == pytest.approx([0.5] * 3)


@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=30), share=st.floats(0, 3))
@settings(max_examples=50, deadline=None)
def test_every_curve_is_a_probability(scores, share):
    curves = [
        sim.IdentityCurve(),
        sim.PowerCurve(3),
        sim.Glm("log_log", 0.5, -0.1),
        sim.Glm("logflip_logflip", -0.1, 0.3),
        sim.TemperatureCurve(0.3),
        sim.ShiftCurve(-0.4),
        sim.WavyCurve(2),
        sim.Blend(sim.PowerCurve(4), share),
        sim.WithEnds(sim.IdentityCurve(), 0.1, 0.9),
    ]
    for curve in curves:
        values = curve(scores)
        assert values.shape == (len(scores),)
        assert np.all((values >= 0) & (values <= 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.BetaScores(0, 1), "BetaScores needs two positive numbers"),
        (lambda: sim.PowerCurve(-1), "PowerCurve needs a positive d"),
        (lambda: sim.TemperatureCurve(0), "TemperatureCurve needs a positive t"),
        (lambda: sim.Glm("probit", 0, 1), "must be one of logit_logit"),
        (lambda: sim.WithAtoms(sim.UniformScores(), at_one=1.2), "shares of the mass"),
        (lambda: sim.LogitMixtureScores([0], [1], [0.5]), "weights that sum to 1"),
        (lambda: sim.EmpiricalScores([0.5, 1.5]), "must lie in"),
        (lambda: sim.World(sim.UniformScores()).true_error(0.5), "norm must be a number of at least 1"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
