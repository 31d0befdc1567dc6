"""Adjusted and combined p-values, and bands that hold everywhere at once: definition and level."""

import numpy as np
import pytest

from calibrant.inference.multiplicity import (
    between_groups,
    cauchy_combined,
    cauchy_rank,
    check_band,
    equal_tails,
    gamma_tails,
    holm,
    pointwise_level,
    rank_p,
    rank_p_values,
    shrunk,
    step_down_min,
)


def test_holm_multiplies_by_the_number_of_hypotheses_left_and_never_falls():
    assert holm([0.01, 0.02, 0.9]) == pytest.approx([0.03, 0.04, 0.9])
    assert holm([0.03, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([]) == []


def test_holm_leaves_out_what_was_not_tested():
    assert holm([0.01, np.nan, 0.04]) == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)
    assert holm([np.nan, 0.01, 0.01], weights=[8, 1, 1]) == pytest.approx([np.nan, 0.02, 0.02], nan_ok=True)


def test_weights_divide_the_level():
    p, weights = [0.02, 0.004, 0.3], [1.0, 0.2, 0.8]
    assert holm(p, weights) == pytest.approx([0.04, 0.04, 0.3])
    assert holm(p, [5.0, 5.0, 5.0]) == holm(p)


def test_step_down_is_its_definition():
    rng = np.random.default_rng(0)
    observed, draws = rng.random(6) * 0.3, rng.random((49, 6))
    order, largest, expected = np.argsort(observed), 0.0, np.empty(6)
    for place, group in enumerate(order):
        left = order[place:]
        largest = max(largest, (1 + sum(min(line[left]) <= observed[group] for line in draws)) / 50)
        expected[group] = largest
    np.testing.assert_allclose(step_down_min(observed, draws), expected)


def test_the_smallest_adjusted_value_does_not_grow_with_the_number_of_hypotheses():
    draws = np.random.default_rng(0).random((199, 5000))
    observed = np.r_[1e-9, np.random.default_rng(1).random(4999)]
    assert step_down_min(observed, draws)[0] == pytest.approx(1 / 200)
    assert step_down_min(observed, draws)[1:].min() > 0.05


@pytest.mark.parametrize("dependent", [False, True])
def test_any_false_rejection_is_as_rare_as_promised(dependent):
    rng, any_rejected = np.random.default_rng(2), 0
    for _ in range(400):
        q = rng.random((100, 20))
        q = (q + rng.random((100, 1))) / 2 if dependent else q
        any_rejected += step_down_min(q[0], q[1:]).min() <= 0.05
    assert any_rejected / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_equal_statistics_count_as_evidence_against_a_rejection():
    assert rank_p(np.array([0.2]), np.full((9, 1), 0.2)) == 1


def test_gamma_tails_are_those_of_the_law_with_the_same_moments():
    draws = np.random.default_rng(0).gamma(3, 2, (100_000, 1))
    tails = gamma_tails(draws, np.array([[6.0], [20.0]]))[:, 0]
    assert tails == pytest.approx([np.mean(draws > 6), np.mean(draws > 20)], abs=0.005)
    assert gamma_tails(np.zeros((5, 1)), np.array([[0.0]])) == 1  # a statistic without variance is no evidence


def test_the_combined_tail_of_equal_tails_is_theirs_and_stays_positive():
    assert cauchy_combined(np.full(4, 0.03), [1, 2, 3, 4]) == pytest.approx(0.03)
    assert 0 < cauchy_combined(np.array([0.0, 0.5]), [1, 1]) < 1e-290


def test_points_that_do_not_vary_are_left_out():
    assert pointwise_level(np.zeros((3, 3)), 0.9) == 0.9
    one = np.diag([2.0, 0.0])
    assert pointwise_level(one, 0.9) == pytest.approx(0.9, abs=0.01)


def test_bands_of_correlated_gaussians_hold_together():
    rng = np.random.default_rng(5)
    covariance = np.exp(-np.abs(np.subtract.outer(np.arange(20), np.arange(20))) / 5.0)
    drawn = rng.multivariate_normal(np.zeros(20), covariance, 4000)
    from scipy.special import ndtri

    k = ndtri((1 + pointwise_level(covariance, 0.95)) / 2)
    assert np.mean(np.abs(drawn).max(axis=1) <= k) == pytest.approx(0.95, abs=0.015)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="band must be one of"):
        check_band("uniform")


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


def test_a_tail_near_1_does_not_outweigh_the_others():
    assert cauchy_combined(np.array([[0.01, 1.0]]), [1, 1])[0] < 0.03
    assert cauchy_combined(np.array([[0.9, 0.9]]), [1, 1])[0] == pytest.approx(0.9)


def test_statistics_that_differ_by_rounding_are_equal():
    draws = 0.2 * (1 + np.array([[0.7e-9], [1.5e-9]]))
    assert rank_p(np.array([0.2]), draws) == pytest.approx(2 / 3)  # the first draw is a tie, the second is not


def test_equal_tails_of_a_column_and_ties():
    found = equal_tails(np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 0.0], [5.0, 0.0], [9.0, 1.0]]))
    assert found[:, 0] == pytest.approx([0.2, 0.8, 0.8, 0.6, 0.2])
    assert found[:, 1] == pytest.approx([0.8, 0.8, 0.8, 0.8, 0.2])


def test_groups_are_shrunk_by_the_variance_between_them():
    """DerSimonian and Laird's example of two groups: weights 1 and 4, mean 3.2, Q = 12.8."""
    values, variance = np.array([0.0, 4.0]), np.array([1.0, 0.25])
    between = (12.8 - 1) / (5 - 17 / 5)
    assert between_groups(values, variance) == pytest.approx((3.2, between))
    kept = between / (between + variance)
    assert shrunk(values, np.sqrt(variance)) == pytest.approx(3.2 + kept * (values - 3.2))


def test_groups_that_differ_by_less_than_chance_are_one():
    values, error = np.array([0.1, 0.2, 0.3]), np.array([1.0, 1.0, 2.0])
    assert shrunk(values, error) == pytest.approx(np.full(3, (0.1 + 0.2 + 0.3 / 4) / 2.25))
    assert between_groups(np.array([0.7]), np.array([0.01])) == pytest.approx((0.7, 0.0))


def test_statistics_below_zero_are_no_evidence_under_a_gamma_law():
    draws = np.random.default_rng(0).gamma(3, 2, (500, 1))
    below, zero = gamma_tails(draws, np.array([[-1e-9], [0.0]]))[:, 0]
    assert below == zero > 0.99
