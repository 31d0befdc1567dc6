"""Simulated noise: binomial where events are few, normal elsewhere, whole clusters by signs."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.binary_error.cell_noise import ClusterNoise, RowNoise, effective_clusters
from calibrant.inference.binary_error.fine_sample import FineSample
from calibrant.inference.binary_error.pooled_cells import PooledCells


def cells_of(p, weight=None):
    y = np.zeros(len(p), dtype=int)
    return PooledCells.fine(cal.BinTable.of(cal.Binary(y, p, weight=weight), cal.table.Distinct()).sums)


def test_noise_has_the_variance_of_outcomes_in_every_cell():
    p = np.random.default_rng(0).random(20_000)
    cells = cells_of(p, weight=np.random.default_rng(1).exponential(size=20_000))
    chance = np.where(np.arange(len(cells.share)) % 2, 0.001, 0.4)  # every other cell expects less than one event
    noise = RowNoise(cells, 4000, 0).outcomes(chance)
    np.testing.assert_allclose(noise.var(axis=1), chance * (1 - chance) / cells.count, rtol=0.35)
    np.testing.assert_allclose(noise.mean(axis=1), 0, atol=5 * np.sqrt(0.24 / cells.count.min() / 4000))


def test_few_expected_events_are_drawn_as_whole_numbers_whatever_n():
    """No switch on n: a rare event in 17,000 rows is as discrete as in 16,000."""
    p = np.full(17_000, 0.002)
    p[8000:] = np.random.default_rng(0).uniform(0.4, 0.6, 9000)
    cells = cells_of(p)
    rare = int(np.argmax(cells.count))
    events = (0.002 - RowNoise(cells, 50, 0).outcomes(cells.predicted)[rare]) * 8000
    np.testing.assert_allclose(events, np.round(events), atol=1e-6)


def test_random_numbers_are_common_to_all_hypotheses():
    cells = cells_of(np.random.default_rng(0).random(400))
    noise = RowNoise(cells, 100, 0)
    one, other = noise.outcomes(np.full(len(cells.share), 0.30)), noise.outcomes(np.full(len(cells.share), 0.31))
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9
    np.testing.assert_array_equal(one, RowNoise(cells, 100, 0).outcomes(np.full(len(cells.share), 0.30)))


def test_errors_of_shares_are_multinomial():
    cells = cells_of(np.random.default_rng(0).random(900))
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
