"""Limits along shapes, by duality and by misfit, each against its statistic written out."""

import numpy as np
import pytest
from scipy.optimize import minimize

import calibrant as cal
from calibrant.inference import Inversion
from calibrant.inference.sample import Sample
from calibrant.numerics.binary_inversion import (
    FOLDS,
    ClusterDual,
    Limits,
    RowDual,
    _differences,
    _means_of_cut,
    largest_norms,
)
from calibrant.numerics.cells import PooledCells


def fine(data):
    return Sample.with_clusters(data, needed_by="a test").fine()


def limits_of(data, norms=(1.0, 2.0), draws=999, level=0.95):
    return Limits.of(fine(data), draws, 0, norms=norms, level=level)


def test_no_event_in_fifty_rows_leaves_room_for_a_rate_of_eight_per_cent():
    data = cal.Binary(np.zeros(50, dtype=int), np.zeros(50))
    exact = 1 - (0.7 * 0.025) ** (1 / 50)
    assert exact - 0.005 <= limits_of(data).upper(1.0) <= exact + 0.025


def bound_of(curve, n=2000, seed=0, group=None, draws=199):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    data = cal.Binary(rng.random(n) < curve(p), p, group=group)
    return Limits.of(fine(data), draws, seed, norms=(1.0,), level=0.95).dual


@pytest.mark.no_cover
def test_the_statistic_of_rows_is_the_mean_over_all_ways_to_deal_them_to_folds():
    """The held-out gap times its fitted sign, for 4,000 random divisions of one sample."""
    bound = bound_of(lambda p: p**1.5)
    assert isinstance(bound, RowDual)
    cells, rng = bound.part.cells, np.random.default_rng(1)
    rows = np.round(cells.count).astype(int)
    events = np.round(cells.observed * rows).astype(int)
    found = []
    for _ in range(4000):
        left, remaining, sums = rows.copy(), events.copy(), []
        for fold in range(FOLDS):
            size = left // (FOLDS - fold)
            taken = rng.hypergeometric(remaining, left - remaining, size)
            left, remaining = left - size, remaining - taken
            sums.append(size * cells.predicted - taken)
        total = np.sum(sums, axis=0)
        psi = 0.0
        for own in sums:
            ratio = bound.part.smoother((total - own) / rows) / bound.error
            psi += float((cells.share / rows) @ (np.clip(ratio, -1, 1) * own))
        found.append(psi)
    assert bound.observed == pytest.approx(np.mean(found), abs=0.02 * np.mean(found) + 4 * np.std(found) / 63)


def test_the_statistic_of_clusters_is_the_held_out_gap_times_its_fitted_sign():
    bound = bound_of(lambda p: p**1.5, group=np.arange(2000) // 5)
    assert isinstance(bound, ClusterDual)
    cells = bound.part.cells
    sums = [np.random.default_rng(fold).standard_normal((len(cells.share), 1)) for fold in range(FOLDS)]
    expected = 0.0
    for fold in range(FOLDS):
        ratio = bound.part.smoother((np.sum(sums, axis=0) - sums[fold])[:, 0]) / bound.error
        expected += float(cells.share @ (np.clip(ratio, -1, 1) * sums[fold][:, 0]))
    assert bound._psi(sums)[0] == pytest.approx(expected)
    assert sorted(np.concatenate(bound._folds)) == list(range(len(bound.noise.weight)))


def test_normal_variables_that_are_cut():
    rng = np.random.default_rng(0)
    for mean in (-3.0, -0.7, 0.0, 0.333, 1.2, 9.0):
        drawn = mean + 0.4 * rng.standard_normal(400_000)
        cut, kept = _means_of_cut(np.array([mean]))
        assert cut[0] == pytest.approx(np.clip(drawn, -1, 1).mean(), abs=0.003)
        assert kept[0] == pytest.approx((np.abs(drawn) < 1).mean(), abs=0.004)


@pytest.mark.parametrize("group", [None, np.arange(2000) // 5])
def test_without_a_gap_the_simulated_statistic_has_mean_zero(group):
    bound = bound_of(lambda p: p, group=group, draws=1000)
    drawn = bound.simulated(np.zeros(len(bound.part.cells.share)), bound.part.cells.predicted)
    assert len(drawn) == max(1000, 799)
    assert drawn.mean() == pytest.approx(0, abs=4 * drawn.std() / np.sqrt(len(drawn)) + 0.05 * drawn.std())


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
