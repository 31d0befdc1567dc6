"""Draws from a normal distribution of a given covariance."""

import numpy as np
import pytest

from calibrant.numerics.draws import categorical_draws, normal_draws


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
