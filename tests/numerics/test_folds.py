"""Folds: sizes, clusters, chance, and counts of cells."""

import numpy as np
import pytest
from scipy.stats import chi2

from calibrant.numerics.folds import fold_counts, fold_of_rows


@pytest.mark.parametrize("n", [5, 7, 23, 1000])
@pytest.mark.parametrize("sizes", [[1] * 5, [1, 1], [3, 1], [0.16] * 5 + [0.2]])
def test_sizes_are_as_equal_as_whole_numbers_allow(n, sizes):
    counts = np.bincount(fold_of_rows(n, sizes, seed=0), minlength=len(sizes))
    assert counts.sum() == n
    if n >= 2 * len(sizes):
        assert np.abs(counts - n * np.array(sizes) / sum(sizes)).max() <= 1


def test_the_seed_decides_and_a_generator_moves_on():
    first, again = (fold_of_rows(50, [1] * 5, seed=[3, 1]) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (fold_of_rows(50, [1] * 5, seed=4) != first).any()
    rng = np.random.default_rng(0)
    assert (fold_of_rows(50, [1] * 5, seed=rng) != fold_of_rows(50, [1] * 5, seed=rng)).any()


def test_clusters_stay_together_whatever_their_names():
    cluster = np.random.default_rng(0).choice(["a", "b", "c", "d", "e", "f"], 200)
    fold = fold_of_rows(200, [1] * 3, seed=1, cluster=cluster)
    per_cluster = [set(fold[cluster == name]) for name in "abcdef"]
    assert all(len(found) == 1 for found in per_cluster)
    assert sorted(min(found) for found in per_cluster) == [0, 0, 1, 1, 2, 2]


def test_fewer_rows_than_folds_leave_the_last_folds_empty():
    assert sorted(fold_of_rows(3, [1] * 5, seed=0)) == [0, 1, 2]
    assert sorted(fold_of_rows(4, [1] * 5, seed=0, cluster=np.array([7, 7, 9, 9]))) == [0, 0, 1, 1]
    assert fold_of_rows(1, [1, 1], seed=0).tolist() == [0]


def test_every_pair_of_rows_is_as_likely_to_share_a_fold():
    same = np.zeros((6, 6))
    for seed in range(3000):
        fold = fold_of_rows(6, [1, 1], seed=seed)
        same += fold[:, None] == fold[None, :]
    share = same[np.triu_indices(6, 1)] / 3000
    np.testing.assert_allclose(share, 2 / 5, atol=4 * np.sqrt(0.4 * 0.6 / 3000))  # not 1/2: the sizes are equal


def test_outcomes_are_not_stratified():
    y = np.arange(100) < 20
    counts = [y[fold_of_rows(100, [1] * 5, seed=seed) == 0].sum() for seed in range(500)]
    hypergeometric = 20 * 0.2 * 0.8 * 80 / 99
    assert np.var(counts) == pytest.approx(hypergeometric, rel=0.25)


def test_counts_are_divided_without_loss():
    counts = np.array([[0.0, 3, 100], [7, 0, 5000]])
    parts = fold_counts(counts, [2, 1, 1], seed=0)
    assert parts.shape == (3, 2, 3)
    np.testing.assert_array_equal(parts.sum(axis=0), counts)
    np.testing.assert_array_equal(parts, np.round(parts))
    expected = 5000 * np.array([0.5, 0.25, 0.25])
    assert ((parts[:, 1, 2] - expected) ** 2 / expected).sum() < chi2.ppf(0.999, 2)


def test_single_rows_as_counts_fall_into_folds_like_rows():
    parts = fold_counts(np.ones(5000), [1] * 4, seed=2)
    assert set(parts.sum(axis=0)) == {1.0}
    np.testing.assert_allclose(parts.mean(axis=1), 0.25, atol=0.03)
