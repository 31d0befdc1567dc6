"""Simulated noise, fine cells with clusters, the least squares fit written out, and the choice of a resolution."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.inversion.binary_fit import (
    MOST_CLUSTERS,
    ClusterNoise,
    FineSample,
    HatFit,
    Resolution,
    RowNoise,
    effective_clusters,
    ladder,
)
from calibrant.inference.sample import PooledCells, knots_for


def cell_noise_cells_of(p, weight=None):
    y = np.zeros(len(p), dtype=int)
    return PooledCells.fine(cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.table.Distinct()).sums)


def test_noise_has_the_variance_of_outcomes_in_every_cell():
    p = np.random.default_rng(0).random(20_000)
    cells = cell_noise_cells_of(p, weight=np.random.default_rng(1).exponential(size=20_000))
    chance = np.where(np.arange(len(cells.share)) % 2, 0.001, 0.4)  # every other cell expects less than one event
    noise = RowNoise(cells, 4000, 0).outcomes(chance)
    np.testing.assert_allclose(noise.var(axis=1), chance * (1 - chance) / cells.count, rtol=0.35)
    np.testing.assert_allclose(noise.mean(axis=1), 0, atol=5 * np.sqrt(0.24 / cells.count.min() / 4000))


def test_few_expected_events_are_drawn_as_whole_numbers_whatever_n():
    """No switch on n: a rare event in 17,000 rows is as discrete as in 16,000."""
    p = np.full(17_000, 0.002)
    p[8000:] = np.random.default_rng(0).uniform(0.4, 0.6, 9000)
    cells = cell_noise_cells_of(p)
    rare = int(np.argmax(cells.count))
    events = (0.002 - RowNoise(cells, 50, 0).outcomes(cells.predicted)[rare]) * 8000
    np.testing.assert_allclose(events, np.round(events), atol=1e-6)


@pytest.mark.parametrize("clustered", [False, True])
def test_several_hypotheses_at_once_have_the_noise_of_each(clustered):
    rng = np.random.default_rng(2)
    p, group = rng.random(900) ** 3, np.arange(900) % 30
    data = cal.Binary(rng.random(900) < p, p, group=group if clustered else None)
    noise = FineSample.of(data, needed_by="a test").noise(40, 0)
    rows = np.stack([noise.cells.predicted, 0.5 * noise.cells.predicted, 0.01 + 0 * noise.cells.predicted])
    np.testing.assert_array_equal(noise.outcomes(rows), np.concatenate([noise.outcomes(row) for row in rows], axis=1))


def test_random_numbers_are_common_to_all_hypotheses():
    cells = cell_noise_cells_of(np.random.default_rng(0).random(400))
    noise = RowNoise(cells, 100, 0)
    one, other = noise.outcomes(np.full(len(cells.share), 0.30)), noise.outcomes(np.full(len(cells.share), 0.31))
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9
    np.testing.assert_array_equal(one, RowNoise(cells, 100, 0).outcomes(np.full(len(cells.share), 0.30)))


def test_errors_of_shares_are_multinomial():
    cells = cell_noise_cells_of(np.random.default_rng(0).random(900))
    drawn = RowNoise(cells, 5000, 0).shares
    np.testing.assert_allclose(drawn.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(drawn.var(axis=1), cells.share * (1 - cells.share) / 900, rtol=0.12)


def test_noise_of_clusters_flips_whole_clusters():
    rng = np.random.default_rng(0)
    p, group = rng.random(300), np.repeat(np.arange(30), 10)
    y = rng.random(300) < p
    sample = FineSample.of(cal.Binary(y, p, group=group), needed_by="")
    noise = sample.noise(2000, 0)
    assert isinstance(noise, ClusterNoise)
    assert noise.effective_clusters == pytest.approx(30)
    sums = np.bincount(group, p - y) / 300  # the total gap: its noise has the variance of the clusters' sums
    total = sample.cells.share @ noise.outcomes(sample.cells.predicted)
    # Scores of a cell are replaced by their mean, hence the tolerance.
    assert total.var() == pytest.approx((sums**2).sum() * 30 / 29, rel=0.15)
    np.testing.assert_allclose(noise.shares.sum(axis=0), 0, atol=1e-12)


def test_effective_clusters_are_those_of_kish():
    assert effective_clusters(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)


def grouped(n=600, copies=4, seed=0):
    rng = np.random.default_rng(seed)
    p = np.repeat(rng.random(n), copies)
    return cal.Binary(np.repeat(rng.random(n) < p[::copies], copies), p, group=np.repeat(np.arange(n), copies))


def test_clusters_add_up_to_the_cells():
    sample = FineSample.of(grouped(100), needed_by="")
    assert sample.clusters == 100
    np.testing.assert_allclose(sample.weight.sum(axis=0), sample.cells.share)
    np.testing.assert_allclose(sample.events.sum(axis=0), sample.cells.share * sample.cells.observed)
    coarse = sample.merged(5)
    np.testing.assert_allclose(coarse.weight.sum(axis=0), coarse.cells.share)
    np.testing.assert_allclose(coarse.events.sum(axis=0), coarse.cells.share * coarse.cells.observed)


def test_copies_are_thinned_to_the_rows_behind_them():
    sample = FineSample.of(grouped(400, copies=5), needed_by="")
    assert sample.cells.effective_n == pytest.approx(400, rel=0.02)
    assert sample.cells.count.sum() == pytest.approx(400, rel=0.05)


def test_many_clusters_are_united():
    sample = FineSample.of(grouped(2000, copies=2), needed_by="")
    assert sample.clusters <= MOST_CLUSTERS
    assert sample.weight.sum() == pytest.approx(1)


def test_clusters_of_one_row_are_independent_rows():
    rows = grouped(50, copies=1)
    assert FineSample.of(rows, needed_by="").clusters is None
    assert FineSample.of(cal.Binary(rows.y_true, rows.y_prob), needed_by="").merged(3).clusters is None


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


def found(curve, n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    sample = FineSample.of(cal.Binary(rng.random(n) < curve(p), p), needed_by="")
    noise = sample.noise(199, seed)
    return Resolution.of(sample.cells, noise), noise


@pytest.mark.parametrize(
    ("curve", "rungs"), [(lambda p: p**1.3, {0}), (lambda p: p + 0.08 * np.sin(12 * np.pi * p), {1, 2})]
)
def test_waves_need_more_knots_than_smooth_gaps(curve, rungs):
    assert {found(curve, 20_000, seed)[0].chosen for seed in range(3)} <= rungs


def test_zero_is_rejected_at_its_level_and_where_the_gap_is_large():
    p_values = [Resolution.p_value_of_zero(*found(lambda p: p, 400, seed)) for seed in range(60)]
    assert np.mean(np.array(p_values) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 60)
    assert Resolution.p_value_of_zero(*found(lambda p: p**2, 2000)) == pytest.approx(1 / 200)


def test_variances_have_a_floor():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.5, 1e-9, rng.random(2000))
    sample = FineSample.of(cal.Binary(rng.random(2000) < p, p), needed_by="")
    assert Resolution.of(sample.cells, sample.noise(49, 0)).sigma.min() > 0.02
