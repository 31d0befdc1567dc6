"""k-means partitions and kernel regression, against sums written out."""

import numpy as np
import pytest
from reproduce.nonparametric_maps import NadarayaWatson, Partition, SimplexKernel
from sklearn.base import clone

import calibrant as cal
from calibrant import recalibrate as rc
from reproduce import nonparametric_maps
from tests.recalibrate.worlds import squared_world


def test_partition_gives_the_class_shares_of_its_cluster():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 500)
    y = np.array([rng.choice(3, p=row) for row in p])
    fitted = Partition(clusters=6).fit(p, y)
    nearest = ((p[:, None] - fitted.centres_) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(6):
        share = np.bincount(y[nearest == cluster], minlength=3) / (nearest == cluster).sum()
        if share.all():
            np.testing.assert_allclose(fitted.values_[cluster], share)
    assert len(Partition().fit([0.1, 0.2, 0.2], [0, 1, 0]).centres_) == 2


def test_a_cluster_without_some_class_gives_it_laplaces_rule():
    fitted = Partition(clusters=1).fit([[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [0, 1])
    np.testing.assert_allclose(fitted.values_, [[0.4, 0.4, 0.2]])
    certain = Partition(clusters=1, allow_certainty=True).fit([[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [0, 1])
    np.testing.assert_allclose(certain.values_, [[0.5, 0.5, 0]])


def test_order_of_rows_ties_and_weights_do_not_change_the_partition():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 80)
    y = rng.integers(0, 3, 80)
    weight = rng.integers(1, 4, 80)
    order = rng.permutation(80)
    fitted = Partition(clusters=6).fit(p, y, weight)
    shuffled = Partition(clusters=6).fit(p[order], y[order], weight[order])
    repeated = Partition(clusters=6).fit(np.repeat(p, weight, axis=0), np.repeat(y, weight))
    for other in (shuffled, repeated):
        np.testing.assert_allclose(other.centres_, fitted.centres_, atol=1e-12)
        np.testing.assert_allclose(other.values_, fitted.values_, atol=1e-12)


def test_centres_rise_and_there_are_no_more_than_distinct_scores():
    fitted = Partition().fit([0.1, 0.5, 0.9, 0.9], [0, 1, 1, 1])
    np.testing.assert_allclose(fitted.centres_[:, 1], [0.1, 0.5, 0.9])
    assert Partition().seed == 0
    by_default = Partition().fit(*squared_world())
    assert len(by_default.centres_) == 15
    assert (np.diff(by_default.centres_[:, 1]) > 0).all()


def test_several_classes_have_thirty_clusters_by_default():
    rng = np.random.default_rng(2)
    fitted = Partition().fit(rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100))
    assert fitted.centres_.shape == (30, 3)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_nadaraya_watson_is_the_double_sum(bandwidth):
    p, y = squared_world(400)
    new = np.linspace(0, 1, 41)
    kernel = np.exp(-0.5 * ((new[:, None] - p) / bandwidth) ** 2)
    fitted = NadarayaWatson(bandwidth=bandwidth).fit(p, y)
    expected = np.clip(kernel @ y / kernel.sum(axis=1), 1 / 402, 401 / 402)
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], expected, atol=2e-5)


def test_nadaraya_watson_far_from_all_rows_takes_the_nearest_estimate():
    fitted = NadarayaWatson(bandwidth=0.01).fit([0.1, 0.11, 0.12], [0, 1, 0])
    assert fitted.predict_proba([0.9])[0, 1] == pytest.approx(1 / (3 + 2))  # beyond 0.12, where a 0 was seen
    with pytest.raises(ValueError, match="bandwidth must be"):
        NadarayaWatson(bandwidth=0).fit([0.1, 0.2], [0, 1])


def test_several_classes_are_the_double_sum_over_vectors(tmp_path):
    rng = np.random.default_rng(0)
    p, new = rng.dirichlet(np.ones(3), 200), rng.dirichlet(np.ones(3), 30)
    y, w = rng.integers(0, 3, 200), rng.uniform(0.5, 2, 200)
    fitted = NadarayaWatson().fit(p, y, w)
    kernel = w * np.exp(-((new[:, None] - p) ** 2).sum(axis=2) / 0.02)
    expected = np.stack([kernel[:, y == c].sum(axis=1) for c in range(3)], axis=1) / kernel.sum(axis=1, keepdims=True)
    expected = np.maximum(expected, 1 / (fitted.weight_ + 3))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(new), expected, atol=1e-9)
    fitted.save(tmp_path / "map.json")
    np.testing.assert_allclose(rc.load(tmp_path / "map.json").predict_proba(new), expected, atol=1e-9)
    with pytest.raises(TypeError, match="SQL"):
        fitted.to_sql(["a", "b", "c"])


@pytest.mark.parametrize("made", [Partition(clusters=4), NadarayaWatson()], ids=repr)
def test_a_table_gives_the_map_of_its_rows(made):
    p, y = squared_world(200)
    table = cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct())
    expected = clone(made).fit(p, y).predict_proba(p)
    np.testing.assert_allclose(clone(made).fit(table).predict_proba(p), expected, atol=1e-12)


def test_it_is_a_map_of_the_variational_estimator():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 1500)
    y = (rng.random((1500, 1)) > (p**2 / (p**2).sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    found = cal.variational_error(cal.Multiclass(y, p), recalibrator=NadarayaWatson(), norm=2)
    truth = np.sqrt(((p - p**2 / (p**2).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)).mean()
    assert 0.7 * truth < found < 1.1 * truth


def case(n=60, k=4):
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(k), n), rng.integers(0, k - 1, n), rng.uniform(0.5, 2, n)  # the last class is absent


@pytest.mark.parametrize("block", [10, 10**6])
def test_shares_are_the_double_sum(block, monkeypatch):
    monkeypatch.setattr(nonparametric_maps, "_BLOCK", block)
    p, y, w = case()
    new = np.random.default_rng(1).dirichlet(np.ones(4), 25)
    for h in (0.05, 0.1, 0.5):
        found = SimplexKernel.of(p, y, w).shares(new, h)
        for row, at in zip(found, new, strict=True):
            kernel = w * np.exp(-((at - p) ** 2).sum(axis=1) / (2 * h**2))
            np.testing.assert_allclose(row, np.bincount(y, kernel, 4) / kernel.sum(), atol=1e-9)


def test_far_from_all_rows_the_nearest_decides():
    kernel = SimplexKernel.of(np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1]]), np.array([2, 1]), None)
    np.testing.assert_allclose(kernel.shares(np.array([[1.0, 0.0, 0.0]]), 1e-3), [[0, 0, 1]], atol=1e-12)
