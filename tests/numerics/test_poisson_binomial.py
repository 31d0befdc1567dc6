"""Tails of sums of unlike binary rows, against sums over all outcomes."""

import numpy as np
import pytest

from calibrant.numerics.poisson_binomial import two_sided_tail


def exact(p):
    """The probabilities of 0, 1, ..., n events, row by row."""
    law = np.ones(1)
    for one in p:
        law = np.convolve(law, [1 - one, one])
    return law


@pytest.mark.parametrize("size", [5, 30, 400])
@pytest.mark.parametrize("shape", [(0.5, 0.5), (0.5, 20.0), (3.0, 1.0)])
def test_both_tails_are_those_of_the_exact_law_far_out(size, shape):
    p = np.random.default_rng(size).beta(*shape, size)
    law = exact(p)
    upper, lower = np.cumsum(law[::-1])[::-1], np.cumsum(law)
    wanted = np.minimum(2 * np.minimum(upper, lower), 1.0)
    events = np.arange(size + 1.0)
    found = two_sided_tail(np.ones((size + 1, size)), np.tile(p, (size + 1, 1)), events)
    some = (wanted > 1e-250) & (wanted < 0.9)
    tolerance = 0.3 if size == 5 else 0.1
    assert np.abs(found[some] / wanted[some] - 1).max() < tolerance
    assert np.all(found[wanted >= 0.9] > 0.7)


def test_rows_of_certain_outcome_are_no_chance():
    count, p = np.array([[3.0, 2.0, 4.0]]), np.array([[0.0, 1.0, 0.5]])
    assert two_sided_tail(count, p, np.array([1.0])) == 0  # two are certain
    assert two_sided_tail(count, p, np.array([7.0])) == 0
    alone = two_sided_tail(np.array([[4.0]]), np.array([[0.5]]), np.array([4.0]))
    assert two_sided_tail(count, p, np.array([6.0])) == pytest.approx(alone)
    assert two_sided_tail(np.array([[3.0]]), np.array([[0.0]]), np.array([0.0])) == 1


def test_small_values_are_as_rare_as_they_claim_where_rows_are_pooled():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 3, (20_000, 40))
    events = (rng.random(p.shape) < p).sum(axis=1).astype(float)
    found = two_sided_tail(np.full((20_000, 1), 40.0), p.mean(axis=1, keepdims=True), events)
    for size in (0.05, 0.01, 0.001):
        assert np.mean(found <= size) <= size + 2 * np.sqrt(size / 20_000)
