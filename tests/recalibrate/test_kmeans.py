"""The partition by k-means: class shares, Laplace's rule, and independence of the order of rows."""

import numpy as np

from calibrant import recalibrate as rc
from tests.recalibrate.worlds import squared_world


def test_partition_gives_the_class_shares_of_its_cluster():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 500)
    y = np.array([rng.choice(3, p=row) for row in p])
    fitted = rc.Partition(clusters=6).fit(p, y)
    nearest = ((p[:, None] - fitted.centres_) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(6):
        share = np.bincount(y[nearest == cluster], minlength=3) / (nearest == cluster).sum()
        if share.all():
            np.testing.assert_allclose(fitted.values_[cluster], share)
    assert len(rc.Partition().fit([0.1, 0.2, 0.2], [0, 1, 0]).centres_) == 2


def test_a_cluster_without_some_class_gives_it_laplaces_rule():
    fitted = rc.Partition(clusters=1).fit([[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [0, 1])
    np.testing.assert_allclose(fitted.values_, [[0.4, 0.4, 0.2]])
    certain = rc.Partition(clusters=1, allow_certainty=True).fit([[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], [0, 1])
    np.testing.assert_allclose(certain.values_, [[0.5, 0.5, 0]])


def test_order_of_rows_ties_and_weights_do_not_change_the_partition():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 80)
    y = rng.integers(0, 3, 80)
    weight = rng.integers(1, 4, 80)
    order = rng.permutation(80)
    fitted = rc.Partition(clusters=6).fit(p, y, weight)
    shuffled = rc.Partition(clusters=6).fit(p[order], y[order], weight[order])
    repeated = rc.Partition(clusters=6).fit(np.repeat(p, weight, axis=0), np.repeat(y, weight))
    for other in (shuffled, repeated):
        np.testing.assert_allclose(other.centres_, fitted.centres_, atol=1e-12)
        np.testing.assert_allclose(other.values_, fitted.values_, atol=1e-12)


def test_centres_rise_and_there_are_no_more_than_distinct_scores():
    fitted = rc.Partition().fit([0.1, 0.5, 0.9, 0.9], [0, 1, 1, 1])
    np.testing.assert_allclose(fitted.centres_[:, 1], [0.1, 0.5, 0.9])
    assert rc.Partition().seed == 0
    by_default = rc.Partition().fit(*squared_world())
    assert len(by_default.centres_) == 15
    assert (np.diff(by_default.centres_[:, 1]) > 0).all()


def test_several_classes_have_thirty_clusters_by_default():
    rng = np.random.default_rng(2)
    fitted = rc.Partition().fit(rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100))
    assert fitted.centres_.shape == (30, 3)
