"""Pooled scores of positive-unlabeled data."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.pu.pooled import CELLS, PooledScores, fine_cells
from tests.pu.worlds import LESS, drawn


def test_pools_keep_all_mass_in_order():
    data = drawn(np.random.default_rng(0), 300, 3000, LESS)
    table = fine_cells(data, needed_by="test")
    scores = PooledScores.of(table)
    assert len(scores.position) <= CELLS
    assert np.all(np.diff(scores.position) > 0)
    assert np.all(np.diff(scores.score) > 0)
    gaps = scores.gaps
    assert (gaps.share.sum(), gaps.positive.sum()) == pytest.approx((1, 1))
    assert gaps.predicted.sum() == pytest.approx(data.unlabeled.mean())
    assert gaps.gap.sum() == pytest.approx(cal.pu.Gaps.of(table).gap.sum())


def test_positives_between_two_pools_belong_to_the_lower_one():
    data = cal.PositiveUnlabeled([0.05, 0.5, 0.95], [0.1, 0.2, 0.8, 0.9], prior=0.4)
    scores = PooledScores.of(fine_cells(data, needed_by="test"))
    assert scores.gaps.positive == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])


def test_rates_say_where_positives_are_and_clusters_count_less():
    data = drawn(np.random.default_rng(1), 100, 1000, LESS)
    table = fine_cells(data, needed_by="test")
    scores, half = PooledScores.of(table), PooledScores.of(table, 2.0)
    assert scores.positives(scores.score).sum() == pytest.approx(1)
    np.testing.assert_allclose(scores.positives(np.zeros(len(scores.score))), scores.gaps.share)
    assert half.information == pytest.approx(scores.information / 2)


def test_bins_are_refused():
    bins = cal.BinTable.of(drawn(np.random.default_rng(2), 50, 500, LESS), cal.EqualMass(5))
    with pytest.raises(ValueError, match="fine table"):
        fine_cells(bins, needed_by="PUInversion")
