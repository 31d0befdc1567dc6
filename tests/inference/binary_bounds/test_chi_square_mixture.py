"""The mixture of chi squares covers the L2 error of its bins."""

import math

import numpy as np
import pytest

import calibrant as cal


@pytest.mark.no_cover
def test_chi_square_mixture_covers_the_error_of_its_bins():
    atoms = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    rng = np.random.default_rng(0)
    for chance in (atoms, atoms**1.5):
        truth, held = math.sqrt(np.mean((atoms - chance) ** 2)), []
        for _ in range(150):
            p = np.repeat(atoms, 80)
            found = cal.inference.ChiSquareMixture().interval(cal.Binary(rng.random(400) < np.repeat(chance, 80), p))
            held.append(truth in found)
        assert np.mean(held) >= 0.89
