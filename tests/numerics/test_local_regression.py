"""Local polynomial regression."""

import numpy as np
import pytest

from calibrant.numerics.local_regression import loess

RNG = np.random.default_rng(2)
X = np.sort(RNG.random(60))
Y = np.sin(3 * X) + 0.1 * RNG.normal(size=60)


def written_out(at, span, degree):
    """The fit at one point, by weighted least squares."""
    distance = np.abs(X - at)
    width = np.sort(distance)[int(np.ceil(span * 60 - 1e-9)) - 1]
    root = np.sqrt(np.clip(1 - (distance / width) ** 3, 0, None) ** 3)
    design = np.vander(X - at, degree + 1, increasing=True)
    return np.linalg.lstsq(design * root[:, None], Y * root, rcond=None)[0][0]


@pytest.mark.parametrize(("span", "degree"), [(0.75, 2), (0.4, 1)])
def test_every_value_is_a_weighted_least_squares_fit(span, degree):
    found = loess(X, Y, np.ones(60), span=span, degree=degree)
    assert found == pytest.approx([written_out(at, span, degree) for at in X])


def test_weights_are_repeats_and_ties_are_averaged():
    weight = RNG.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    assert loess(X[rows], Y[rows], np.ones(len(rows))) == pytest.approx(loess(X, Y, weight.astype(float))[rows])
    assert loess(np.full(3, 0.2), np.array([0.0, 1.0, 1.0]), np.ones(3)) == pytest.approx(np.full(3, 2 / 3))
