"""Ranks and their combination."""

import numpy as np

from calibrant.inference.hypothesis_tests.combination import cauchy_rank, rank_p_values


def test_ranks_are_uniform_and_ties_are_shared():
    values = np.random.default_rng(0).normal(size=(50, 3))
    assert np.array_equal(np.sort(rank_p_values(values)[:, 1]), np.arange(1, 51) / 50)
    tied = np.array([[1.0], [1.0 + 1e-15], [0.0]])
    assert rank_p_values(tied)[:, 0].tolist() == [2 / 3, 2 / 3, 1.0]


def test_the_combined_p_value_is_a_rank_of_exchangeable_lines():
    values = np.random.default_rng(1).normal(size=(40, 5))
    single = rank_p_values(values)
    found = [cauchy_rank(np.roll(single, -k, axis=0), np.ones(5)) for k in range(40)]
    assert np.allclose(np.sort(found), np.arange(1, 41) / 40)


def test_one_strong_column_is_enough():
    single = np.random.default_rng(2).random((100, 6))
    single[0] = [0.01, 0.5, 0.6, 0.4, 0.7, 0.5]
    single[1:, 0] = np.linspace(0.02, 1, 99)
    assert cauchy_rank(single, np.ones(6)) < 0.15
