"""Pooled cells, simulated noise, cells with clusters, the fit written out, and the choice of a resolution."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.sample import Sample
from calibrant.numerics.cells import (
    MOST_CLUSTERS,
    ClusterNoise,
    PooledCells,
    Resolution,
    RowNoise,
    effective_clusters,
    ladder,
)
from calibrant.numerics.inversion import knots_for
from calibrant.simulate import PAPER_WORLDS


def fine(data):
    return Sample.with_clusters(data, needed_by="a test").fine()


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
    noise = fine(data).noise(40, 0)
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
    sample = fine(cal.Binary(y, p, group=group))
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
    sample = fine(grouped(100))
    assert sample.clusters == 100
    np.testing.assert_allclose(sample.weight.sum(axis=0), sample.cells.share)
    np.testing.assert_allclose(sample.events.sum(axis=0), sample.cells.share * sample.cells.observed)
    coarse = sample.merged(5)
    np.testing.assert_allclose(coarse.weight.sum(axis=0), coarse.cells.share)
    np.testing.assert_allclose(coarse.events.sum(axis=0), coarse.cells.share * coarse.cells.observed)


def test_copies_are_thinned_to_the_rows_behind_them():
    sample = fine(grouped(400, copies=5))
    assert sample.cells.effective_n == pytest.approx(400, rel=0.02)
    assert sample.cells.count.sum() == pytest.approx(400, rel=0.05)


def test_many_clusters_are_united():
    sample = fine(grouped(2000, copies=2))
    assert sample.clusters <= MOST_CLUSTERS
    assert sample.weight.sum() == pytest.approx(1)


def test_clusters_of_one_row_are_independent_rows():
    rows = grouped(50, copies=1)
    assert fine(rows).clusters is None
    assert fine(cal.Binary(rows.y_true, rows.y_prob)).merged(3).clusters is None


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
    fit = cells.hat_fit(knots)
    np.testing.assert_allclose(fit(cells.gap), expected, atol=1e-8)
    np.testing.assert_allclose(fit(np.stack([cells.gap, 2 * cells.gap], axis=1))[:, 1], 2 * expected, atol=1e-8)


def test_a_projection_repeats_itself_and_never_raises_the_norm():
    cells = cells_of()
    fit = cells.hat_fit(12)
    once = fit(cells.gap)
    np.testing.assert_allclose(fit(once), once, atol=1e-7)
    assert cells.share @ once**2 < cells.share @ cells.gap**2


def test_the_variance_of_fitted_values_is_that_of_simulated_ones():
    cells = cells_of()
    fit, variance = cells.hat_fit(8), 1 / cells.count
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
    sample = fine(cal.Binary(rng.random(n) < curve(p), p))
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
    sample = fine(cal.Binary(rng.random(2000) < p, p))
    assert Resolution.of(sample.cells, sample.noise(49, 0)).sigma.min() > 0.02


def sums_of(p, y=None, weight=None):
    y = np.zeros(len(p), dtype=int) if y is None else y
    return cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.table.Distinct()).sums


def test_cells_keep_all_sums():
    data = PAPER_WORLDS["resnet110_c10"].sample(40_000)
    large, small = (Sample.of(d, needed_by="").pooled(96) for d in (data, cal.BinTable.of(data, cal.table.Distinct())))
    assert large.n == small.n == large.effective_n == 40_000
    assert float(large.share @ large.predicted) == pytest.approx(float(small.share @ small.predicted))
    assert float(large.share @ large.gap) == pytest.approx(float(np.mean(data.y_prob - data.y_true)))


def test_position_is_the_mean_of_rank_and_of_rank_among_standard_deviations():
    p = np.array([0.1, 0.2, 0.5, 0.9])
    spread = np.sqrt(p * (1 - p))
    running = np.cumsum(spread) - spread / 2
    expected = (np.arange(4) / 3 + (running - running[0]) / (running[-1] - running[0])) / 2
    cells = PooledCells.of(sums_of(p), 4)
    np.testing.assert_allclose(cells.position, expected)


def test_about_the_square_root_of_n_cells():
    p = np.random.default_rng(0).random(10_000)
    cells = PooledCells.fine(sums_of(p))
    assert 85 <= len(cells.share) <= 100
    assert not cells.single.any()
    assert not cells.atom.any()
    assert np.array_equal(np.unique(cells.number), np.arange(len(cells.share)))


def test_a_frequent_score_is_a_cell_and_a_very_frequent_one_an_atom():
    rng = np.random.default_rng(1)
    p = rng.random(10_000)
    p[:200], p[200:1500] = 0.25, 0.5
    cells = PooledCells.fine(sums_of(p))
    own = [int(np.flatnonzero(cells.predicted == score)[0]) for score in (0.25, 0.5)]
    assert cells.single[own].all()
    assert cells.count[own].tolist() == [200, 1300]
    assert cells.atom[own].tolist() == [False, True]  # 13 % of the rows, more than a knot's share


def test_few_distinct_scores_are_all_cells():
    p = np.round(np.random.default_rng(2).random(2000), 2)
    cells = PooledCells.fine(sums_of(p))
    assert cells.single.all()
    assert len(cells.share) == len(np.unique(p))


def test_merged_cells_keep_sums_and_atoms():
    rng = np.random.default_rng(3)
    p = rng.random(40_000)
    p[:9000] = 0.5
    fine = PooledCells.fine(sums_of(p, rng.random(40_000) < p, weight=rng.exponential(size=40_000)))
    coarse = fine.merged(20)
    assert len(coarse.share) <= 23
    assert coarse.atom.sum() == fine.atom.sum() == 1
    assert coarse.single.sum() == 1
    assert float(coarse.share @ coarse.gap) == pytest.approx(float(fine.share @ fine.gap))
    # The variance of a mean is share² / count: it adds up.
    np.testing.assert_allclose(
        coarse.share**2 / coarse.count, np.bincount(coarse.number, fine.share**2 / fine.count), rtol=1e-12
    )
    assert fine.merged(len(fine.share)) is fine


def test_effective_counts_are_those_of_kish_divided_by_the_design_effect():
    p, weight = np.array([0.2, 0.2, 0.7, 0.7]), np.array([1.0, 3.0, 2.0, 2.0])
    cells = PooledCells.of(sums_of(p, weight=weight), 4, design_effect=2.0)
    np.testing.assert_allclose(cells.count, [16 / 10 / 2, 2 / 2])
    assert cells.effective_n == pytest.approx(64 / 18 / 2)


def test_simulated_outcomes_have_the_variance_of_the_effective_count():
    cells = PooledCells.of(sums_of(np.array([0.2, 0.2, 0.7, 0.7]), weight=np.array([1.0, 3.0, 2.0, 2.0])), 4)
    drawn = cells.outcomes(np.array([0.3, 0.6]), 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.var(axis=1), [0.21 / 1.6, 0.24 / 2], rtol=0.05)
