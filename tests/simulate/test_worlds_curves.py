"""Calibration curves: their formulas, and probabilities whatever the scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import simulate as sim
from calibrant.simulate.worlds import as_curve


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


def test_curves_are_their_formulas():
    s = np.array([0.1, 0.5, 0.93])
    odds = s / (1 - s)
    assert sim.TemperatureCurve(2)(s) == pytest.approx(np.sqrt(odds) / (1 + np.sqrt(odds)))
    assert sim.ShiftCurve(-0.2)(s) == pytest.approx([0.0, 0.3, 0.73])
    assert sim.Blend(sim.PowerCurve(2), 0.3)(s) == pytest.approx(0.7 * s + 0.3 * s**2)
    waves = 2 * np.sin(10 * np.pi * s) + np.sin(40 * np.pi * s / 3)
    assert sim.WavyCurve(0.5)(s) == pytest.approx(s + 0.5 * waves / (10 * np.pi))
    assert sim.WithEnds(sim.PowerCurve(2), 0.1, 0.7)([0.0, 0.5, 1.0]) == pytest.approx([0.1, 0.25, 0.7])


def test_curves_are_exact_next_to_1_on_log_odds():
    """At log-odds 60 the score is 1 in double precision, yet 1 - s^2 is 2 exp(-60)."""
    z = np.array([-60.0])
    assert sim.PowerCurve(2).at(z) == pytest.approx(np.exp(-120), rel=1e-9)
    assert sim.Glm("logflip_logflip", 0.0, 0.5).at(np.array([60.0])) == pytest.approx(1 - np.exp(-30), rel=1e-12)


def test_a_function_becomes_a_curve_that_knows_its_name():
    curve = as_curve(np.square)
    assert repr(curve) == "square"
    assert curve([0.5]) == pytest.approx([0.25])
    assert as_curve(curve) is curve


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.PowerCurve(-1), "PowerCurve needs a positive d"),
        (lambda: sim.TemperatureCurve(0), "TemperatureCurve needs a positive t"),
        (lambda: sim.Glm("probit", 0, 1), "must be one of logit_logit"),
    ],
)
def test_invalid_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
