"""Random draws follow their distributions, and folds have their sizes and keep clusters together."""

import numpy as np
import pytest
from scipy.stats import chi2

from calibrant.numerics import random_draws as binomial_draws
from calibrant.numerics.random_draws import (
    BinomialDraws,
    categorical_draws,
    fold_counts,
    fold_of_rows,
    independent_counts,
    normal_draws,
)


def test_covariance_and_mean_are_those_asked_for():
    root = np.random.default_rng(0).normal(size=(3, 3))
    covariance = root @ root.T
    drawn = normal_draws(covariance, 200_000, np.random.default_rng(1))
    assert drawn.shape == (200_000, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.03 * np.trace(covariance))


def test_a_singular_covariance_keeps_its_constraint():
    p = np.array([0.2, 0.3, 0.5])
    multinomial = np.diag(p) - np.outer(p, p)
    drawn = normal_draws(multinomial, 1000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.sum(axis=1), 0, atol=1e-7)
    assert drawn[:, 0].std() == pytest.approx(0.4, rel=0.1)


def test_the_generator_decides():
    first, again = (normal_draws(np.eye(2), 5, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_categorical_draws_have_their_probabilities():
    for classes in (3, 60):
        p = np.random.default_rng(0).dirichlet(np.full(classes, 0.5), 200)
        p[:, 1] = 0.0
        drawn = categorical_draws(p, 500, np.random.default_rng(1))
        counts = np.array([(drawn == k).sum() for k in range(classes)])
        expected = 500 * (p / p.sum(axis=1, keepdims=True)).sum(axis=0)
        assert counts[1] == 0
        assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
        assert drawn.dtype == np.int32


SIZE, CHANCE = np.array([1, 7, 400, 90_000, 30, 50]), np.array([0.3, 0.5, 0.04, 1e-4, 0.98, 0.0])


def test_counts_have_the_binomial_distribution():
    from scipy.stats import binom

    draws = 2000
    found = BinomialDraws.of(6, draws, np.random.default_rng(0)).counts(SIZE, CHANCE)
    for line, n, p in zip(found, SIZE, CHANCE, strict=True):
        reached = np.array([(line <= k).mean() for k in range(60)])
        np.testing.assert_allclose(reached, binom.cdf(np.arange(60), n, p), atol=1 / draws)


@pytest.mark.no_cover
def test_every_draw_by_itself_is_binomial_and_lines_are_independent():
    rng = np.random.default_rng(1)
    size, chance = np.array([20, 20]), np.array([0.1, 0.1])
    first = np.array([BinomialDraws.of(2, 7, rng).counts(size, chance)[:, 3] for _ in range(4000)])
    np.testing.assert_allclose(first.mean(axis=0), 2.0, atol=0.09)
    np.testing.assert_allclose(first.var(axis=0), 1.8, rtol=0.1)
    assert abs(np.corrcoef(first.T)[0, 1]) < 0.06


def test_counts_rise_with_the_probability_draw_by_draw():
    draws = BinomialDraws.of(1, 300, np.random.default_rng(2))
    few, more = (draws.counts(np.array([500]), np.array([p])) for p in (0.0100, 0.0102))
    assert (more >= few).all()
    assert (more != few).mean() < 0.2  # the mean is 0.1 larger


def test_chosen_lines_keep_their_random_numbers():
    draws = BinomialDraws.of(6, 50, np.random.default_rng(3))
    chosen = np.array([False, True, False, True, True, False])
    np.testing.assert_array_equal(
        draws.counts(SIZE[chosen], CHANCE[chosen], chosen), draws.counts(SIZE, CHANCE)[chosen]
    )


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_outcomes(p):
    assert (BinomialDraws.of(1, 5, np.random.default_rng(0)).counts(np.array([9]), np.array([p])) == 9 * p).all()


def test_independent_counts_have_mean_and_variance_of_the_binomial_distribution():
    size, chance = np.array([1, 7, 400, 90_000, 30, 50, 9000]), np.array([0.3, 0.5, 0.04, 1e-4, 0.98, 0.0, 0.5])
    found = independent_counts(size, chance, 4000, np.random.default_rng(4))
    spread = np.sqrt(size * chance * (1 - chance))
    assert (np.abs(found.mean(axis=1) - size * chance) <= 4 * spread / np.sqrt(4000)).all()
    np.testing.assert_allclose(found.std(axis=1), spread, rtol=0.06)
    assert np.abs(np.corrcoef(found[spread > 0])[np.triu_indices(6, 1)]).max() < 0.06
    assert ((found >= 0) & (found <= size[:, None]) & (found == np.round(found))).all()


def test_ends_are_reached_as_a_search_finds_them():
    rng = np.random.default_rng(3)
    ends = np.sort(
        np.concatenate([rng.random((30, 8)), rng.beta(0.1, 0.1, (30, 12)), np.ones((30, 2))], axis=1), axis=1
    )
    drawn = np.concatenate([rng.random((30, 200)), ends[:, ends[0] < 1], np.zeros((30, 1))], axis=1).clip(0, 1 - 1e-16)
    searched = [own.searchsorted(line, side="right") for own, line in zip(ends, drawn, strict=True)]
    assert np.array_equal(binomial_draws._ends_reached(ends, drawn), searched)
    assert not binomial_draws._ends_reached(ends[:, :0], drawn).any()


def test_few_and_many_expected_events_are_drawn_alike(monkeypatch):
    """A table of probabilities, and rejection."""
    draws = [independent_counts(np.array([300]), np.array([0.5]), 20_000, np.random.default_rng(5))]
    monkeypatch.setattr(binomial_draws, "_TABULATED", 1.0)
    draws.append(independent_counts(np.array([300]), np.array([0.5]), 20_000, np.random.default_rng(5)))
    assert not np.array_equal(*draws)
    quantiles = [np.quantile(one, [0.05, 0.25, 0.5, 0.75, 0.95]) for one in draws]
    np.testing.assert_allclose(*quantiles, atol=1)


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
