"""Limits along shapes, by duality and by misfit, each against its statistic written out."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import calibrant as cal
from calibrant.inference import Inversion
from calibrant.inference.sample import Sample
from calibrant.numerics.binary_inversion import FOLDS, DualBound, Limits, _differences, largest_norms
from calibrant.numerics.cells import PooledCells


def fine(data):
    return Sample.with_clusters(data, needed_by="a test").fine()


def limits_of(data, norms=(1.0, 2.0), draws=999, level=0.95):
    return Limits.of(fine(data), draws, 0, norms=norms, level=level)


def test_one_score_gives_binomial_limits():
    """400 rows of score 0.6 of which 190 are events: the gap is 0.125, and its limits those of a proportion."""
    part = limits_of(cal.Binary([1] * 190 + [0] * 210, [0.6] * 400)).smooth
    risk = 0.7 * 0.025
    chances = np.linspace(0.3, 0.6, 3001)
    kept = chances[(binom.cdf(190, 400, chances) > risk) & (binom.sf(189, 400, chances) > risk)]
    assert part.upper(0) == pytest.approx(0.6 - kept.min(), abs=0.006)
    assert part.lower(0) == pytest.approx(0.6 - kept.max(), abs=0.006)
    assert part.middle(0) == pytest.approx(0.125, abs=0.004)
    assert part.upper(1) == pytest.approx(part.upper(0), abs=1e-4)  # one score: all norms agree


def test_a_gap_smaller_than_typical_proves_nothing():
    """An even split at 0.5 has no gap at all, yet the limit is that of a typical calibrated sample."""
    lucky = limits_of(cal.Binary([0, 1] * 200, [0.5] * 400)).smooth
    assert lucky.observed[0] == 0
    assert lucky.upper(0) > 2 * np.sqrt(0.25 / 400)


def test_no_event_in_fifty_rows_leaves_room_for_a_rate_of_eight_per_cent():
    data = cal.Binary(np.zeros(50, dtype=int), np.zeros(50))
    exact = 1 - (0.7 * 0.025) ** (1 / 50)
    assert exact - 0.005 <= limits_of(data).upper(1.0) <= exact + 0.025


def square_wave(size, periods, n, seed):
    """A gap of the same size everywhere, with alternating sign."""
    rng = np.random.default_rng(seed)
    p = 0.1 + 0.8 * rng.random(n)
    return cal.Binary(rng.random(n) < p + size * np.sign(np.sin(2 * np.pi * periods * p)), p)


def test_the_upper_end_of_a_fine_fit_allows_for_a_gap_of_the_same_size_everywhere(monkeypatch):
    """Half of the fitted gap is noise: along its own uneven shape, noise would explain too much of the norm."""
    data = square_wave(0.06, 14, 20_000, seed=4)
    found = limits_of(data)
    assert found.smooth._fine
    assert not found.smooth.fit.identity
    lower, upper = found.lower(1.0), found.upper(1.0)
    monkeypatch.setattr("calibrant.numerics.binary_inversion.FINE", np.inf)
    along_its_shape = limits_of(data)
    assert along_its_shape.upper(1.0) < 0.06 < upper
    assert along_its_shape.lower(1.0) == lower


def test_an_uneven_gap_is_recognised_once_it_is_clear():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    sizes = np.where(np.sin(30 * np.pi * p) > 0.7, 0.3, 0.0) * np.minimum(p, 1 - p)
    part = limits_of(cal.Binary(rng.random(20_000) < p + sizes, p)).smooth
    assert part._fine
    assert not part._may_be_even


def bound_of(curve, n=2000, seed=0, group=None, draws=199):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    data = cal.Binary(rng.random(n) < curve(p), p, group=group)
    limits = Limits.of(fine(data), draws, seed, norms=(1.0,), level=0.95)
    return DualBound(limits.smooth, seed)


def test_the_statistic_is_the_held_out_gap_times_its_fitted_sign():
    bound = bound_of(lambda p: p**1.5)
    cells, rows = bound.part.cells, np.round(bound.part.cells.count)
    sums = np.random.default_rng(1).standard_normal((FOLDS, len(rows), 1))
    expected = 0.0
    for fold in range(FOLDS):
        others = (sums.sum(axis=0) - sums[fold])[:, 0] / rows
        ratio = bound.part.smoother(others) / bound._error
        expected += float((cells.share / rows) @ (np.clip(ratio, -1, 1) * sums[fold, :, 0]))
    assert bound.statistic(sums)[0] == pytest.approx(expected)


def test_folds_deal_out_every_row_once():
    bound = bound_of(lambda p: p)
    assert np.array_equal(bound._sizes.sum(axis=0), bound._rows)
    assert bound._sizes.max() - bound._rows.min() // FOLDS <= bound._rows.max() // FOLDS + 1


@pytest.mark.parametrize("group", [None, np.arange(2000) // 5])
def test_simulated_sums_have_mean_and_variance_of_outcomes(group):
    bound = bound_of(lambda p: p, group=group, draws=1000)
    gap = np.full(len(bound._rows), 0.05)
    total = bound.simulated(gap, bound.part.cells.predicted).sum(axis=0) / bound._rows[:, None]
    np.testing.assert_allclose(total.mean(axis=1), 0.05, atol=0.03)
    variance = bound.part.cells.predicted * (1 - bound.part.cells.predicted) / bound.part.cells.count
    assert float(np.mean(total.var(axis=1)) / np.mean(variance)) == pytest.approx(1, abs=0.25)


def test_the_limit_is_positive_for_a_large_gap_and_zero_for_none():
    for seed in range(3):
        assert 0.1 < bound_of(lambda p: p**2, seed=seed).limit() < 1 / 6
        assert bound_of(lambda p: p, seed=seed).limit() == 0


def test_where_all_outcomes_are_alike_the_limit_is_that_of_a_proportion():
    """No event in 50 rows of score 0.5 leaves room for a rate of 1 - risk^(1/50), which is 0.078."""
    data = cal.Binary(np.zeros(50, dtype=int), np.full(50, 0.5))
    found = Inversion(999).intervals(data, norms=(1.0, 2.0))
    assert all(0.36 < interval.low <= 0.5 - 0.07 for interval in found)


def test_a_limit_is_not_positive_by_rounding():
    rng = np.random.default_rng(0)
    for seed in range(20):  # no event, and hardly any expected: what is seen is what most simulated samples show
        data = cal.Binary(np.zeros(20, int), rng.beta(1, 499, 20))
        assert Inversion(99, seed).intervals(data, norms=(1.0,))[0].low == 0


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
        limits = Limits.of(fine(cal.Binary(y, p)), 99, seed, norms=(2.0,), level=0.95)
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
