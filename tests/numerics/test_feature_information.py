"""Information matrices: derivatives of the expected totals, and their solutions."""

import numpy as np
import pytest

from calibrant.numerics.class_entries import Entries
from calibrant.numerics.feature_information import ClassBlocks, DenseInformation
from calibrant.numerics.shared_features import SHARED, SharedFeatures
from calibrant.numerics.special import softmax


def case(k, n=40):
    rng = np.random.default_rng(1)
    entries = Entries.of(rng.dirichlet(0.5 * np.ones(k), n).clip(1e-9), n)
    design = SharedFeatures.of(entries).design(entries)
    weight = (0.5 + rng.random(n)).astype(np.float32)
    b = rng.normal(size=len(design.block)) * 0.1
    mean = softmax((entries.log_mass + design.linear(b)).astype(float))
    return design, mean, weight


def covariance(design, mean, weight):
    """Of all features, written out row by row."""
    n, m, p = design.shared.shape
    k, total = design.classes, 0.0
    for i in range(n):
        x = np.zeros((m, p + 2 * k))
        x[:, :p] = design.shared[i]
        for c in range(m):
            number = c if design.index is None else design.index[i, c]
            if number < k:
                x[c, p + number], x[c, p + k + number] = 1, design.slope[i, c]
        total = total + weight[i] * (x.T @ (mean[i][:, None] * x) - np.outer(x.T @ mean[i], x.T @ mean[i]))
    return total


def test_the_dense_one_is_the_covariance_of_the_features():
    design, mean, weight = case(3)
    found = DenseInformation.of(design.shared, design.slope, mean.astype(np.float32), weight)
    np.testing.assert_allclose(found.matrix, covariance(design, mean, weight), atol=2e-4)


def test_class_blocks_are_parts_of_the_covariance():
    design, mean, weight = case(45)
    found = ClassBlocks.of(design.shared, design.slope, design.index, 45, mean.astype(np.float32), weight)
    exact, p, c = covariance(design, mean, weight), SHARED, np.arange(45)
    np.testing.assert_allclose(found.shared, exact[:p, :p], atol=1e-3)
    np.testing.assert_allclose(found.coupling, exact[p:, :p], atol=1e-3)
    np.testing.assert_allclose(found.blocks[0], exact[p + c, p + c], atol=1e-3)
    np.testing.assert_allclose(found.blocks[1], exact[p + c, p + 45 + c], atol=1e-3)
    np.testing.assert_allclose(found.blocks[2], exact[p + 45 + c, p + 45 + c], atol=1e-3)


@pytest.mark.parametrize("k", [3, 45])
def test_factors_solve_their_equations(k):
    design, mean, weight = case(k)
    if k == 3:
        found = DenseInformation.of(design.shared, design.slope, mean.astype(np.float32), weight)
        whole = found.matrix
    else:
        found = ClassBlocks.of(design.shared, design.slope, design.index, k, mean.astype(np.float32), weight)
        whole = np.zeros((len(design.block),) * 2)
        p, c = SHARED, np.arange(k)
        whole[:p, :p], whole[p:, :p], whole[:p, p:] = found.shared, found.coupling, found.coupling.T
        whole[p + c, p + c], whole[p + k + c, p + k + c] = found.blocks[0], found.blocks[2]
        whole[p + c, p + k + c] = whole[p + k + c, p + c] = found.blocks[1]
    rng = np.random.default_rng(2)
    precision, gradient = rng.uniform(5, 20, len(whole)), rng.normal(size=len(whole))
    factor = found.factor(precision)
    inverse = np.linalg.inv(whole + np.diag(precision))
    np.testing.assert_allclose(factor.solve(gradient), inverse @ gradient, atol=1e-6)
    np.testing.assert_allclose(factor.variances(), np.diag(inverse), atol=1e-6)


def test_features_that_hardly_differ_between_classes_keep_their_information():
    """Nearly uniform predictions: slopes are large and nearly the same, and differences of sums would be rounding."""
    rng = np.random.default_rng(3)
    f = np.full((4000, 10), 0.1) * np.exp(1e-3 * rng.normal(size=(4000, 10)))
    entries = Entries.of(f / f.sum(axis=1, keepdims=True), 4000)
    design = SharedFeatures.of(entries).design(entries)
    mean, weight = np.exp(entries.logs.astype(float)), np.ones(4000, np.float32)
    found = DenseInformation.of(design.shared, design.slope, mean.astype(np.float32), weight).matrix
    x = design.shared[:, :, 0].astype(float)
    exact = ((x - (mean * x).sum(axis=1, keepdims=True)) ** 2 * mean).sum()
    assert found[0, 0] == pytest.approx(exact, rel=1e-2)
    assert np.linalg.eigvalsh(found).min() > -1e-5 * found.max()


def test_a_matrix_that_rounding_has_spoilt_is_lifted():
    factor = DenseInformation(np.array([[1.0, 2.0], [2.0, 1.0]])).factor(np.array([0.05, 0.05]))
    assert np.isfinite(factor.solve(np.ones(2))).all()
    assert (factor.variances() > 0).all()
