"""The sample behind intervals and tests: its table, pooled cells, clusters, resamples and design effect."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.sample import (
    Sample,
    cluster_labels,
    coarse_cells,
    design_effect,
    row_clusters,
    rows_that_count,
)
from calibrant.numerics.arrays import EXACT_ROWS
from tests.inference.worlds import BENT


def weighted(n, **more):
    data = BENT.sample(n)
    return cal.Binary(data.y_true, data.y_prob, weight=np.random.default_rng(0).integers(1, 4, n), **more)


def test_few_rows_have_a_cell_per_score_and_many_are_counted_on_a_grid():
    few, many = (Sample.of(BENT.sample(n), needed_by="") for n in (100, EXACT_ROWS + 1))
    assert isinstance(few.table.cut, cal.table.Distinct)
    assert isinstance(many.table.cut, cal.table.HybridGrid)
    assert many.table.n == EXACT_ROWS + 1
    assert np.all(np.diff(many.table.low) > 0)


def test_rows_know_their_cells_and_clusters():
    sample = Sample.of_rows(weighted(200, group=np.arange(200) // 4))
    table = sample.table
    np.testing.assert_array_equal(table.key[sample.cell], sample.rows.key)
    np.testing.assert_allclose(np.bincount(sample.cell, sample.row_share * table.total), table.weight)
    pooled = sample.pooled(32)
    np.testing.assert_allclose(np.bincount(pooled.number[sample.cell], sample.row_share), pooled.share)
    assert sample.clusters == 50
    np.testing.assert_allclose(sample.by_cluster(sample.residual[:, None])[:, 0], sample.residual.reshape(50, 4).sum(1))
    assert sample.effective_n == pytest.approx(sample.rows.weight.sum() ** 2 / (sample.rows.weight**2).sum())


def test_rows_without_weight_are_left_out():
    data = weighted(50)
    data = cal.Binary(data.y_true, data.y_prob, weight=np.where(np.arange(50) < 20, 0.0, data.weight))
    assert len(Sample.of_rows(data).rows.key) == 30


def test_a_coarse_table_keeps_the_sums():
    table = Sample.of(BENT.sample(3000), needed_by="").table
    coarse = coarse_cells(table)
    assert len(coarse) <= 512
    np.testing.assert_allclose(coarse.sums.sum(axis=1), table.sums.sum(axis=1))
    assert coarse_cells(coarse) is coarse


@pytest.mark.parametrize("clustered", [False, True])
def test_resamples_vary_about_the_sample_as_samples_do(clustered):
    data = BENT.sample(400)
    sample = Sample.of_clusters(data) if clustered else Sample.of(data, needed_by="")
    tables = list(sample.resample(500, np.random.default_rng(0)))
    assert {table.n for table in tables} == {400}
    rates = np.array([table.observed.sum() for table in tables]) / 400
    rate = data.y_true.mean()
    assert rates.mean() == pytest.approx(rate, abs=0.005)
    assert rates.std() == pytest.approx(np.sqrt(rate * (1 - rate) / 400), rel=0.12)


def test_each_cluster_once_is_the_sample():
    sample = Sample.of_clusters(weighted(300, group=np.arange(300) % 60))
    (again,) = sample.repeated(np.ones((1, 60)))
    np.testing.assert_allclose(again.sums, sample.coarse.sums)
    (tripled,) = sample.repeated(np.full((1, 60), 3.0))
    np.testing.assert_allclose(tripled.sums, 3 * sample.coarse.sums)


def test_independent_rows_are_divided_into_random_clusters():
    data = BENT.sample(5000)
    labels = cluster_labels(data, 5000)
    assert len(np.unique(labels)) == 1024
    assert np.array_equal(labels, cluster_labels(data, 5000))
    assert np.array_equal(cluster_labels(data, 10), np.arange(10))


def test_other_tasks_and_weighted_tables_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="Here needs binary"):
        Sample.of(cal.Gaussian([0.0, 1.0], [0.0, 0.0], [1.0, 1.0]), needed_by="Here")
    table = cal.BinTable.of(cal.PositiveUnlabeled([0.5, 0.7], [0.1, 0.6], prior=0.5), cal.table.Distinct())
    with pytest.raises(cal.InvalidPredictions, match="does not support positive-unlabeled"):
        Sample.of(table, needed_by="Here")
    table = cal.BinTable.of(weighted(50), cal.table.Distinct())
    with pytest.raises(cal.InvalidPredictions, match="weighted rows"):
        list(Sample.of(table, needed_by="").resample(2, np.random.default_rng(0)))
    with pytest.raises(cal.InvalidPredictions, match="no rows"):
        _ = Sample.of(table, needed_by="").rows


def test_the_table_of_clusters_keeps_its_task():
    rng = np.random.default_rng(0)
    std = rng.lognormal(size=50)
    sample = Sample.of_clusters(cal.Gaussian(std * rng.normal(size=50), np.zeros(50), std))
    assert sample.table.task == cal.table.Spread()
    assert next(sample.resample(1, rng)).task == cal.table.Spread()  # so that ENCE takes resampled tables


def test_copies_say_nothing_new_and_independent_rows_count_in_full():
    rng = np.random.default_rng(0)
    once = rng.normal(size=(400, 2))
    labels = np.repeat(np.arange(400), 3)
    copies = list(np.repeat(once, 3, axis=0).T)
    assert design_effect(copies, labels) == pytest.approx(3)
    assert rows_that_count(None, copies, labels, 1200) == pytest.approx(400)
    assert design_effect(once.T, None) == 1
    assert design_effect([np.zeros(4)], np.zeros(4, dtype=int)) == 1
    assert rows_that_count(np.array([1.0, 1.0, 0.0]), once[:3].T, None, 3) == pytest.approx(2)


def test_clusters_are_groups_or_rows_of_several_outputs():
    zero, one = np.zeros((3, 2)), np.ones((3, 2))
    assert row_clusters(cal.Gaussian(zero, zero, one), 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert row_clusters(cal.Gaussian(zero, zero, one, group=["b", "a", "b"]), 6).tolist() == [1, 1, 0, 0, 1, 1]
    assert row_clusters(cal.Gaussian(zero[:, 0], zero[:, 0], one[:, 0]), 3) is None
