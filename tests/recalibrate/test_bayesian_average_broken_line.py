"""Lines that stay close to a function."""

import numpy as np
import pytest

from calibrant.recalibrate.bayesian_average import broken_line


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
@pytest.mark.parametrize(
    "function", [np.sin, np.tanh, np.abs, lambda x: np.exp(-x * x)], ids=["sin", "tanh", "abs", "bell"]
)
def test_the_line_is_nowhere_further_off_than_asked_for(function, tolerance):
    x, y = broken_line(function, np.linspace(-5, 5, 11), tolerance=tolerance)
    dense = np.linspace(-5, 5, 20_001)
    assert np.abs(np.interp(dense, x, y) - function(dense)).max() < 1.2 * tolerance
    np.testing.assert_array_equal(y, function(x))
    assert (np.diff(x) > 0).all()


def test_a_line_is_left_as_it_is_and_a_curve_gets_points_where_it_bends():
    x, _ = broken_line(lambda x: 3 * x - 1, np.array([0.0, 2.0, 5.0]), tolerance=1e-9)
    assert x.tolist() == [0.0, 2.0, 5.0]
    x, _ = broken_line(lambda x: np.tanh(20 * x), np.linspace(-4, 4, 9), tolerance=1e-3)
    assert np.mean(np.abs(x) < 0.5) > 0.7


def test_a_jump_ends_the_search_instead_of_going_on_for_ever():
    x, y = broken_line(lambda x: (x > 0.3).astype(float), np.array([0.0, 1.0]), tolerance=1e-3)
    assert len(x) < 60
    assert np.interp(0.3001, x, y) == 1
