"""Local corrections: which rows are near, what they hold more of than expected, and how far that is believed."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.numerics import neighbours
from calibrant.numerics.special import log_softmax


def test_neighbours_are_the_nearest_without_the_row_itself():
    rng = np.random.default_rng(7)
    for k in (3, 8):
        z = np.log(rng.dirichlet(np.ones(k), 150))
        x = z - z.mean(axis=1, keepdims=True)
        distance = ((x[:, None] - x) ** 2).sum(axis=2) + np.diag(np.full(150, np.inf))
        near = neighbours.Neighbours.of(z)
        assert near.index.shape == (150, 64)
        assert np.array_equal(near.index[:, :10], np.argsort(distance, axis=1)[:, :10])


def test_many_rows_seek_their_neighbours_among_some():
    rng = np.random.default_rng(8)
    near = neighbours.Neighbours.of(np.log(rng.dirichlet(np.ones(3), 5000)))
    assert len(np.unique(near.index)) <= neighbours.REFERENCES == len(near.references)
    assert not (near.index == np.arange(5000)[:, None]).any()


@pytest.mark.parametrize("k", [3, 9])
def test_new_rows_have_the_nearest_known_ones(k):
    rng = np.random.default_rng(0)
    known, new = np.log(rng.dirichlet(np.ones(k), 70)), np.log(rng.dirichlet(np.ones(k), 20))
    near = neighbours.Neighbours.of_new(new, known)
    x, y = (z - z.mean(axis=1, keepdims=True) for z in (new, known))
    distance = ((x[:, None] - y) ** 2).sum(axis=2)
    np.testing.assert_array_equal(near.index, np.argsort(distance, axis=1)[:, :40])
    assert neighbours.Neighbours.of_new(new, known[:7]).index.shape == (20, 7)


def test_ratios_are_observed_to_expected_counts_of_the_nearest_usable_rows():
    rng = np.random.default_rng(1)
    z = log_softmax(rng.normal(size=(90, 3)))
    labels, weight = rng.integers(0, 3, 90), rng.uniform(0.5, 2, 90)
    usable = rng.random(90) < 0.7
    near = neighbours.Neighbours.of(z)
    surplus, expected = neighbours.counts(z, labels, weight)
    p = np.exp(z)
    ratios = near.log_ratios(usable, surplus, expected, p)
    assert ratios.shape == (90, 3, 2)
    observed = np.eye(3)[labels] * weight[:, None]
    for i in (0, 17, 89):
        for j, size in enumerate(neighbours.SIZES):
            rows = [row for row in near.index[i] if usable[row]][:size]
            prior = 2 * p[i]
            expected_ratio = (observed[rows].sum(axis=0) + prior) / ((p * weight[:, None])[rows].sum(axis=0) + prior)
            np.testing.assert_allclose(np.exp(ratios[i, :, j]), expected_ratio, rtol=1e-6)


def test_coefficients_maximise_the_penalised_likelihood_and_are_not_negative():
    rng = np.random.default_rng(2)
    n, k = 400, 3
    x, offset = rng.normal(size=(n, k, 2)), rng.normal(size=(n, k))
    weight = rng.uniform(0.5, 1.5, n)
    labels = (offset + x @ [1.0, 0.4] + rng.gumbel(size=(n, k))).argmax(axis=1)
    b = neighbours.positive_coefficients(x, offset, labels, weight)

    def loss(b):
        return -weight @ log_softmax(offset + x @ b)[np.arange(n), labels]

    np.testing.assert_allclose(b, minimize(loss, np.zeros(2)).x, atol=0.1)
    harmful = neighbours.positive_coefficients(-x[:, :, :1], offset, labels, weight)
    np.testing.assert_array_equal(harmful, [0.0])
    one = neighbours.positive_coefficients(x * [1, -1], offset, labels, weight)
    assert one[0] > 0.5
    assert one[1] == 0


def test_no_coefficient_changes_nothing():
    logs = log_softmax(np.random.default_rng(3).normal(size=(5, 3)))
    assert neighbours.corrected(logs, np.ones((5, 3, 2)), np.zeros(2)) is logs
    moved = neighbours.corrected(logs, np.ones((5, 3, 2)) * [[[1.0], [0.0], [0.0]]], np.array([0.3, 0.2]))
    np.testing.assert_allclose(moved, log_softmax(logs + np.array([0.5, 0, 0])))


def test_outcomes_of_held_out_rows_are_not_used():
    rng = np.random.default_rng(4)
    z = log_softmax(rng.normal(size=(200, 3)))
    labels = rng.integers(0, 3, 200)
    near, own = neighbours.Neighbours.of(z), np.arange(50)
    train = np.arange(50, 200)
    first = neighbours.local_correction(near, z, labels, np.ones(200), train, own)
    labels[:50] = (labels[:50] + 1) % 3
    np.testing.assert_array_equal(neighbours.local_correction(near, z, labels, np.ones(200), train, own), first)
