"""The banded projection is the weighted least squares fit on hat functions, written out."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.binary_error.hat_fit import HatFit, ladder
from calibrant.inference.binary_error.pooled_cells import PooledCells, knots_for


def cells_of(n=2000, spike=0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p[:spike] = 0.5
    return PooledCells.fine(cal.BinTable.of(cal.Binary(rng.random(n) < p, p), cal.table.Distinct()).sums)


@pytest.mark.parametrize("spike", [0, 600])
def test_the_fit_is_weighted_least_squares_on_hats(spike):
    cells, knots = cells_of(spike=spike), 9
    free = ~cells.atom
    size = round(knots * float(cells.share[free].sum()))
    hats = np.maximum(0, 1 - np.abs(cells.position[free, None] * (size - 1) - np.arange(size)))
    root = np.sqrt(cells.share[free])
    expected = cells.gap.copy()
    expected[free] = hats @ np.linalg.lstsq(root[:, None] * hats, root * cells.gap[free], rcond=None)[0]
    fit = HatFit.of(cells, knots)
    np.testing.assert_allclose(fit(cells.gap), expected, atol=1e-8)
    np.testing.assert_allclose(fit(np.stack([cells.gap, 2 * cells.gap], axis=1))[:, 1], 2 * expected, atol=1e-8)


def test_a_projection_repeats_itself_and_never_raises_the_norm():
    cells = cells_of()
    fit = HatFit.of(cells, 12)
    once = fit(cells.gap)
    np.testing.assert_allclose(fit(once), once, atol=1e-7)
    assert cells.share @ once**2 < cells.share @ cells.gap**2


def test_the_variance_of_fitted_values_is_that_of_simulated_ones():
    cells = cells_of()
    fit, variance = HatFit.of(cells, 8), 1 / cells.count
    drawn = np.random.default_rng(0).standard_normal((len(variance), 20_000)) * np.sqrt(variance)[:, None]
    np.testing.assert_allclose(fit.variance(variance), fit(drawn).var(axis=1), rtol=0.08)


def test_the_ladder_doubles_the_knots_up_to_the_identity():
    cells = cells_of(10_000)
    fits = ladder(cells)
    assert [fit.knots / knots_for(10_000) for fit in fits] == [1, 2, 4, 8]
    assert [fit.identity for fit in fits] == [False, False, False, True]
    np.testing.assert_array_equal(fits[-1](cells.gap), cells.gap)


def test_all_scores_equal_leave_nothing_to_smooth():
    cells = PooledCells.fine(cal.BinTable.of(cal.Binary([0, 1, 1], [0.4] * 3), cal.table.Distinct()).sums)
    assert [fit.identity for fit in ladder(cells)] == [True]
