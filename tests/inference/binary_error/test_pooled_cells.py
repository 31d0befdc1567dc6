"""Pooled cells keep the sums of the sample, and frequent scores are cells of their own."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.inference.sample import Sample
from calibrant.simulate import PAPER_WORLDS


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
