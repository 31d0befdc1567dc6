"""Estimates drawn towards their mean."""

import numpy as np

from calibrant.inference.shrinkage import shrunk


def test_equal_groups_are_drawn_together_entirely_and_unlike_ones_hardly():
    rng = np.random.default_rng(0)
    error = np.full(400, 0.1)
    alike = shrunk(rng.normal(0.2, 0.05, 400), error)  # less spread than noise
    assert np.ptp(alike) == 0
    unlike = rng.normal(0, 2, 400)
    assert np.abs(shrunk(unlike, error) - unlike).max() < 0.05


def test_shrunken_estimates_are_closer_to_the_truth():
    rng = np.random.default_rng(1)
    truth, error = rng.normal(0, 0.1, 1000), rng.uniform(0.02, 0.4, 1000)
    seen = truth + error * rng.normal(size=1000)
    assert np.mean((shrunk(seen, error) - truth) ** 2) < 0.5 * np.mean((seen - truth) ** 2)
    assert shrunk(np.array([0.3]), np.array([0.1])) == [0.3]
