"""The upper end: water-filling maximises the norm, squared misfit is recovered without bias."""

import numpy as np
import pytest
from scipy.optimize import minimize

import calibrant as cal
from calibrant.inference.binary_error.fine_sample import FineSample
from calibrant.inference.binary_error.inversion import Inversion, Limits
from calibrant.inference.binary_error.misfit_bound import _differences, largest_norms
from calibrant.inference.binary_error.pooled_cells import PooledCells


def cells_of(p, y=None):
    y = np.zeros(len(p), dtype=int) if y is None else y
    return PooledCells.fine(cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()).sums)


@pytest.mark.parametrize("norm", [1.0, 1.5])
def test_misfit_is_placed_where_it_raises_the_norm_most(norm):
    cells = cells_of(np.repeat([0.1, 0.3, 0.6, 0.8], [30, 10, 40, 20]))
    share, shape, level = cells.share, np.array([0.02, -0.01, 0.05, 0.0]), np.array([1.0, 0.5, 2.0, 1.5])
    size, misfit = 0.02, 0.003
    gap = np.abs(shape) / float(share @ np.abs(shape) ** norm) ** (1 / norm) * size

    def lost(free):  # squared misfits that use up the budget
        part = free**2 / np.sum(free**2) * misfit
        return -(float(share @ (gap**2 + part * level / share) ** (norm / 2)) ** (1 / norm))

    best = min(minimize(lost, start).fun for start in np.eye(4) + 0.3)
    found = largest_norms(cells, shape, np.array([size]), np.array([misfit]), level, norm)[0]
    assert found == pytest.approx(-best, rel=1e-4)


def test_squares_of_gap_and_misfit_add_in_l2():
    cells = cells_of(np.repeat([0.1, 0.6], 20))
    found = largest_norms(cells, np.ones(2), np.array([0.3]), np.array([0.16]), np.ones(2), 2.0)
    assert found[0] == pytest.approx(0.5)


def test_the_squared_misfit_of_a_wave_too_fast_for_the_fit_is_recovered():
    rng, likely, largest = np.random.default_rng(0), [], []
    for seed in range(30):
        p = rng.random(4000)
        y = rng.random(4000) < p + 0.05 * np.sin(40 * np.pi * p) * (4 * p * (1 - p))
        limits = Limits.of(FineSample.of(cal.Binary(y, p), needed_by=""), Inversion(99, seed), norms=(2.0,), level=0.95)
        if limits.resolution.chosen == 0:
            found = limits._misfit.squared_misfit(limits.sample.cells.share, within=0.0)
            likely.append(found[0])
            largest.append(found[1])
    truth = 0.05**2 / 2 * 8 / 15
    assert np.mean(likely) == pytest.approx(truth, rel=0.6)
    assert np.mean(np.array(largest) > 0.8 * truth) >= 0.9


def test_differences_within_are_of_cells_of_several_scores():
    p = np.linspace(0.01, 0.99, 400)
    y = (np.arange(400) % 3 == 0).astype(int)
    cells = cells_of(p, y)
    variance = 0.25 / cells.count
    gap, inner = cells.gap, cells.share[1:-1]
    expected = max(0.0, float(inner @ ((gap[2:] - gap[:-2]) ** 2 - variance[2:] - variance[:-2])))
    assert _differences(cells, cells.share, np.full(len(gap), 0.5)) == pytest.approx(expected)
    rounded = cells_of(np.round(p, 1), y)
    assert _differences(rounded, rounded.share, np.full(len(rounded.share), 0.5)) == 0
