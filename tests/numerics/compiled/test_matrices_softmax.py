"""Derivatives of softmax by compiled loops: those of NumPy, for mild logits and for extreme ones."""

import numpy as np
import pytest

from calibrant.numerics.logistic.multinomial import Penalty, VectorLogLoss, _softmax_derivatives, inverse_temperature
from tests.numerics.compiled.both_ways import with_and_without

pytest.importorskip("numba")

from calibrant.numerics.compiled.matrices import logarithm, power_of_two


@pytest.mark.no_cover
def test_powers_of_two_and_logarithms_keep_thirteen_digits():
    for t in [*np.random.default_rng(0).uniform(-1000, 1000, 400), 0.0, 0.5, -0.5, 1.5, 1000.0, -1000.0]:
        assert power_of_two(t) == pytest.approx(np.exp2(t), rel=3e-14)
        assert logarithm(np.exp2(t)) == pytest.approx(np.log(np.exp2(t)), rel=3e-14, abs=1e-15)


def world(n, classes, scale):
    rng = np.random.default_rng(classes)
    logits = scale * rng.normal(size=(n, classes))
    return logits, (logits / scale + rng.gumbel(size=logits.shape)).argmax(axis=1), rng.exponential(size=n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("b", [1e-7, 0.3, 1.0, 40.0, 1e7])
@pytest.mark.parametrize(("n", "classes"), [(1, 2), (2500, 3), (700, 50)])
def test_derivatives_by_the_temperature_are_the_same(n, classes, b, weighted, monkeypatch):
    logits, codes, weight = world(n, classes, 3.0)
    chosen = logits[np.arange(n), codes]
    sizes = (weight.sum() + n) * np.abs(logits).max() ** np.arange(1, 4)  # of what the results are differences of
    found, expected = with_and_without(
        monkeypatch, lambda: _softmax_derivatives(logits, chosen, weight if weighted else None)(b)
    )
    np.testing.assert_array_less(np.abs(np.subtract(found, expected)), 1e-12 * sizes)


def test_temperatures_are_the_same(monkeypatch):
    logits, codes, weight = world(3000, 20, 2.0)
    found, expected = with_and_without(monkeypatch, lambda: inverse_temperature(logits, codes, weight))
    assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize(("n", "classes"), [(1, 2), (3000, 3), (900, 70)])
def test_value_gradient_and_probabilities_of_vector_scaling_are_the_same(n, classes, scale, monkeypatch):
    logits, codes, weight = world(n, classes, scale)
    theta = np.random.default_rng(0).normal(size=(classes, 2)) / 4

    def evaluated():
        loss = VectorLogLoss(np.ascontiguousarray(logits.T), codes, weight, Penalty(1e-3, 1e-3, 0.0))
        return *loss.evaluate(theta), loss._p

    found, expected = with_and_without(monkeypatch, evaluated)
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-12 * scale)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-11, atol=1e-15)
