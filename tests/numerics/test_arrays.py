"""Sigmoid, log odds and softmax against SciPy, and at the ends where formulas break."""

import numpy as np
import pytest
from scipy import special as reference

from calibrant.numerics import arrays


def test_expit_is_scipys_and_keeps_the_digits_of_small_probabilities():
    x = np.linspace(-700, 700, 2801)
    np.testing.assert_allclose(arrays.expit(x), reference.expit(x), rtol=1e-14)
    np.testing.assert_array_equal(arrays.expit(np.array([-np.inf, 0.0, np.inf])), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(arrays.expit(np.array([-1e6, 1e6])), [0.0, 1.0])


def test_expit_takes_numbers_and_other_types_and_leaves_its_argument_alone():
    assert arrays.expit(0) == 0.5
    assert isinstance(arrays.expit(1.0), float)
    x = np.float32([[1.0, 2.0], [3.0, 4.0]])
    before = x.copy()
    assert arrays.expit(x).dtype == np.float64
    np.testing.assert_array_equal(x, before)


def test_log_odds_are_scipys_and_infinite_at_the_ends():
    p = np.array([0.0, 1e-300, 1e-5, 0.5, 1 - 1e-12, 1.0])
    np.testing.assert_allclose(arrays.log_odds(p), reference.logit(p), rtol=1e-14)
    assert arrays.log_odds(0.25) == pytest.approx(-np.log(3))


def test_clipped_log_odds_differ_only_beyond_the_floor():
    p = np.array([1e-30, 0.2, 0.9, 1 - 1e-10])
    np.testing.assert_array_equal(arrays.clipped_log_odds(p), arrays.log_odds(p))
    ends = arrays.clipped_log_odds(np.array([0.0, 1e-300, 1.0]))
    np.testing.assert_allclose(ends, [arrays.LOG_FLOOR, arrays.LOG_FLOOR, -arrays.LOG_FLOOR])
    assert pytest.approx(-126 * np.log(2)) == arrays.LOG_FLOOR
    np.testing.assert_allclose(arrays.clipped_log_odds(np.array([0.0, 1.0]), floor=-5), [-5.0, 5.0])
    assert arrays.clipped_log_odds(np.float32([0.5])).dtype == np.float64


def test_logarithms_of_probability_and_complement():
    z = np.array([-800.0, -3.0, 0.0, 40.0])
    np.testing.assert_allclose(arrays.log_probability(z), reference.log_expit(z), rtol=1e-14)
    np.testing.assert_allclose(arrays.log_complement(z), reference.log_expit(-z), rtol=1e-14)
    np.testing.assert_allclose(arrays.floored_log(np.array([0.0, 0.5])), [arrays.LOG_FLOOR, -np.log(2)])


@pytest.mark.parametrize("columns", [2, 3, 16, 17, 1000])
def test_softmax_is_scipys_for_few_and_many_columns(columns):
    logits = np.random.default_rng(columns).normal(size=(50, columns)) * 30
    before = logits.copy()
    np.testing.assert_allclose(arrays.softmax(logits), reference.softmax(logits, axis=1), rtol=1e-13, atol=1e-300)
    logs = reference.log_softmax(logits, axis=1)
    np.testing.assert_allclose(arrays.log_softmax(logits), logs, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(logits, before)
    np.testing.assert_array_equal(arrays.row_max(logits)[:, 0], logits.max(axis=1))
    np.testing.assert_allclose(arrays.row_sum(logits)[:, 0], logits.sum(axis=1), atol=1e-10)


def test_softmax_does_not_overflow_and_takes_impossible_classes():
    p = arrays.softmax(np.array([[1e6, 0.0, 1e6], [-np.inf, 0.0, -np.inf]]))
    np.testing.assert_array_equal(p, [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])


def test_a_slope_of_zero_is_zero_at_infinity_too():
    np.testing.assert_array_equal(arrays.times(0.0, np.array([-np.inf, 1.0])), [0.0, 0.0])
    np.testing.assert_array_equal(arrays.times(2.0, np.array([-np.inf, 1.0])), [-np.inf, 2.0])
