"""Kernel estimates on the simplex, averaged with a multiclass map.

Local corrections: which rows are near, what they hold more of than expected, and how far that is believed.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.numerics import simplex_kernels
from calibrant.numerics import simplex_kernels as neighbours
from calibrant.numerics.arrays import log_softmax
from calibrant.numerics.simplex_kernels import SimplexKernels, Trial


def sample(rng, rows, chance):
    p = rng.dirichlet(np.ones(3), rows).astype(np.float32)
    h = chance(p.astype(float))
    return p, h, (rng.random(rows)[:, None] > np.cumsum(h, axis=1)[:, :2]).sum(axis=1)


def in_a_region(p):
    """Class 1 takes 30 points from class 0 in a disc of the simplex, which no function of one probability is."""
    near = np.exp(-((p - [0.5, 0.25, 0.25]) ** 2).sum(axis=1) / 0.02)
    moved = 0.6 * near * np.minimum(p[:, 0], 0.5)
    return p + np.outer(moved, [-1, 1, 0])


def fitted(p, y, own=None, group=None):
    train = np.isin(np.arange(len(p)), np.arange(len(p)) if own is None else own)
    (trial,) = Trial.each(p, y, np.ones(len(p), np.float32), [train], group)
    return SimplexKernels.fit(p, trial, np.log(p[trial.rows]))


def test_the_estimates_written_out():
    rng = np.random.default_rng(0)
    p, _, y = sample(rng, 40, lambda p: p)
    x, q, weight = p[:5], np.full((5, 3), 1 / 3, np.float32), rng.uniform(0.5, 2, 40).astype(np.float32)
    outcome = np.eye(3, dtype=np.float32)[y] * weight[:, None]
    share = np.array([0.4, 0.1, 0.2, 0.3])
    found = SimplexKernels(p, outcome, share).averaged(q, x)
    expected = 0.4 * q.astype(float)
    for part, width in zip(share[1:], (0.12, 0.06, 0.03), strict=True):
        kernel = np.exp(-((x[:, None] - p) ** 2).sum(axis=2) / (2 * width**2))
        total = kernel @ outcome
        expected += part * (total + 1e-3 * q) / (total.sum(axis=1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_several_training_parts_share_kernels_and_nothing_else():
    rng = np.random.default_rng(6)
    p, _, y = sample(rng, 2000, lambda p: p)
    weight, group = rng.uniform(0.5, 2, 2000).astype(np.float32), rng.integers(0, 900, 2000)
    trains = [rng.random(2000) < 0.7 for _ in range(3)]
    together = Trial.each(p, y, weight, trains, group)
    for train, one in zip(trains, together, strict=True):
        (alone,) = Trial.each(p, y, weight, [train], group)
        assert np.array_equal(one.rows, alone.rows)
        assert len(one.rows) == simplex_kernels.EM_ROWS
        assert train[one.rows].all()
        np.testing.assert_allclose(one.sums, alone.sums, rtol=1e-5, atol=1e-6)
        kernel = np.exp(-((p[one.rows[:5], None] - p) ** 2).sum(axis=2) / (2 * 0.12**2))
        kernel[group[one.rows[:5], None] == group] = 0
        expected = kernel @ (np.eye(3)[y] * (weight * train)[:, None])
        np.testing.assert_allclose(one.sums[0, :5], expected, rtol=1e-4, atol=1e-4)


def test_a_calibrated_map_stays_nearly_as_it_is():
    rng = np.random.default_rng(1)
    moved = []
    for _ in range(10):
        p, _, y = sample(rng, 1500, lambda p: p)
        new = sample(rng, 500, lambda p: p)[0]
        moved.append(np.abs(fitted(p, y).averaged(new, new) - new).sum(axis=1).mean())
    assert np.mean(moved) < 0.015


def test_an_error_within_a_region_of_the_simplex_is_found():
    rng = np.random.default_rng(2)
    p, _, y = sample(rng, 3000, in_a_region)
    new, h, _ = sample(rng, 2000, in_a_region)
    g = fitted(p, y).averaged(new, new)
    assert ((g - h) ** 2).sum() < 0.8 * ((new - h) ** 2).sum()
    assert (np.sign(g - new) * (h - new)).sum() > 0.8 * np.abs(h - new).sum()  # of the L1 error of the map


def test_rows_of_a_group_are_left_out_of_each_others_estimates():
    """Copies of a row would otherwise be taken for evidence that labels follow from places."""
    rng = np.random.default_rng(3)
    p, _, y = sample(rng, 300, lambda p: p)
    p, y, group = np.repeat(p, 5, axis=0), np.repeat(y, 5), np.repeat(np.arange(300), 5)
    alone, together = fitted(p, y).share, fitted(p, y, group=group).share
    assert alone[0] < 0.5
    assert together[0] > 0.9


def test_no_training_rows_leave_the_map():
    p, _, y = sample(np.random.default_rng(4), 20, lambda p: p)
    assert fitted(p, y, own=np.empty(0, np.intp)).share.tolist() == [1.0]


def test_weights_are_those_of_the_frozen_sample(monkeypatch):
    """Prior and handicap were chosen: before changing one, run reproduce/tabular.py."""
    p, _, y = sample(np.random.default_rng(5), 900, lambda p: 0.7 * p + 0.3 * in_a_region(p))
    assert fitted(p, y).share == pytest.approx(FROZEN, abs=1e-4)
    for name, value in (("PRIOR", (0.4, 0.6)), ("PRIOR_ROWS", 40.0), ("HANDICAP", 0.0)):
        with monkeypatch.context() as changed:
            changed.setattr(simplex_kernels, name, value)
            other = fitted(p, y).share
        assert len(other) != len(FROZEN) or np.abs(other - FROZEN).max() > 0.01


FROZEN = (0.78285, 0.0636, 0.08284, 0.07071)


def placed(rng, n, k):
    z = np.log(rng.dirichlet(np.ones(k), n))
    return (z - z.mean(axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("k", [3, 8])
def test_neighbours_are_the_nearest_without_the_row_itself(k):
    x = placed(np.random.default_rng(7), 150, k)
    references = neighbours.References.of(x)
    near = references.rows[references.neighbours_of_sample()]
    distance = ((x[:, None] - x) ** 2).sum(axis=2) + np.diag(np.full(150, np.inf))
    assert near.shape == (150, 64)
    assert np.array_equal(near[:, :10], np.argsort(distance[references.rows], axis=1)[:, :10])


def test_many_rows_have_few_references():
    references = neighbours.References.of(placed(np.random.default_rng(8), 5000, 3))
    assert len(references.rows) == neighbours.REFERENCES == len(set(references.rows.tolist()))
    assert references.neighbours_of_sample().shape == (neighbours.SAMPLE, neighbours.KEPT)


@pytest.mark.parametrize("k", [3, 9])
def test_other_points_have_the_nearest_references(k):
    rng = np.random.default_rng(0)
    x, new = placed(rng, 70, k), placed(rng, 20, k)
    references = neighbours.References.of(x)
    distance = ((new[:, None] - x) ** 2).sum(axis=2)
    np.testing.assert_array_equal(references.rows[references.nearest(new, 40)], np.argsort(distance, axis=1)[:, :40])
    assert neighbours.References.of(x[:7]).nearest(new, 40).shape == (20, 7)
    assert neighbours.References.of(x[:1]).neighbours_of_sample().shape == (1, 0)


def test_ratios_are_observed_to_expected_counts_of_the_nearest_usable_rows():
    rng = np.random.default_rng(1)
    z = log_softmax(rng.normal(size=(90, 3)))
    labels, weight = rng.integers(0, 3, 90), rng.uniform(0.5, 2, 90)
    usable = rng.random(90) < 0.7
    near = np.argsort(((z[:, None] - z) ** 2).sum(axis=2), axis=1)[:, 1:65]
    surplus, expected = neighbours.counts(z, labels, weight)
    p = np.exp(z)
    ratios = neighbours.log_ratios(near, usable, surplus, expected, p)
    assert ratios.shape == (90, 3, 2)
    observed = np.eye(3)[labels] * weight[:, None]
    for i in (0, 17, 89):
        for j, size in enumerate(neighbours.SIZES):
            rows = [row for row in near[i] if usable[row]][:size]
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


def test_the_ridge_of_few_rows_is_adapted_twice_to_the_coefficients():
    rng = np.random.default_rng(0)
    x, offset, weight = rng.normal(size=(30, 3, 2)), rng.normal(size=(30, 3)), rng.uniform(0.5, 1.5, 30)
    labels = (offset + x @ [1.0, 0.5] + rng.gumbel(size=(30, 3))).argmax(axis=1)
    ridge = np.ones(2)
    for _ in range(3):

        def loss(b, ridge=ridge):
            return -weight @ log_softmax(offset + x @ b)[np.arange(30), labels] + ridge @ b**2 / 2

        b = minimize(loss, np.zeros(2)).x
        p = np.exp(log_softmax(offset + x @ b))
        centred = x - np.einsum("nk,nkp->np", p, x)[:, None]
        information = np.einsum("n,nk,nkp,nkq->pq", weight, p, centred, centred)
        effective = 1 - ridge * np.diag(np.linalg.inv(information + np.diag(ridge)))
        ridge = (effective + 0.05) / (b**2 + 0.005)
    np.testing.assert_allclose(neighbours.positive_coefficients(x, offset, labels, weight), b, atol=0.002)


def test_a_correction_must_gain_two_units_of_log_likelihood():
    rng = np.random.default_rng(3)
    x, logs = rng.normal(size=(300, 3, 2)), log_softmax(rng.normal(size=(300, 3)))
    for slope, used in ((1.0, True), (0.03, False)):
        labels = (logs + slope * x[:, :, 0] + rng.gumbel(size=(300, 3))).argmax(axis=1)
        b = neighbours.local_coefficients(x, logs, labels, np.ones(300))
        assert b.any() == used
    assert not neighbours.local_coefficients(x[:0], logs[:0], labels[:0], np.ones(0)).any()
    moved = neighbours.corrected(logs[:5], np.ones((5, 3, 2)) * [[[1.0], [0.0], [0.0]]], np.array([0.3, 0.2]))
    np.testing.assert_allclose(moved, log_softmax(logs[:5] + np.array([0.5, 0, 0])))


@pytest.mark.parametrize("number", [3, 12, 39, 40, 203])
def test_the_smallest_values_are_found_in_order(number):
    """Few columns, a number of them that is no multiple of the groups, and rows full of equal values."""
    values = np.random.default_rng(0).normal(size=(30, number)).astype(np.float32)
    values[10:20] = np.round(values[10:20])
    values[20:] = 1
    size = min(5, number)
    found = neighbours._smallest(values, size)
    np.testing.assert_array_equal(np.take_along_axis(values, found, axis=1), np.sort(values, axis=1)[:, :size])
    assert all(len(set(row)) == size for row in found.tolist())
