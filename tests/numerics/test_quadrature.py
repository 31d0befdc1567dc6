"""Integrals of functions with kinks and steps, against closed forms and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from calibrant.numerics.quadrature import graded, integral


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
