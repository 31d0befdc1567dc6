"""Entries of a row, shared features, and information matrices against derivatives."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.numerics.arrays import softmax
from calibrant.numerics.multiclass_features import (
    LEADING,
    SHARED,
    ClassBlocks,
    DenseInformation,
    Entries,
    SharedFeatures,
    compressed_logs,
)
from calibrant.numerics.smoothers import kernel_basis, matern


def test_small_probabilities_are_compressed_in_order():
    z = np.log(np.array([[1e-9, 1e-6, 1 - 1e-6 - 1e-9], [0.2, 0.3, 0.5]]))
    logs = compressed_logs(z, 100)
    limit = np.log(400)
    raw = np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z)
    np.testing.assert_allclose(logs, raw - np.log(np.exp(raw).sum(axis=1, keepdims=True)))
    assert logs[0, 0] < logs[0, 1] < -limit
    np.testing.assert_allclose(logs[1], z[1], atol=1e-12)


def test_few_classes_are_entries_themselves():
    p = np.random.default_rng(0).dirichlet(np.ones(5), 30)
    entries = Entries.of(p, 10**6)
    np.testing.assert_allclose(entries.logs, np.log(p), atol=1e-5)
    assert entries.index is None
    assert entries.log_mass is entries.logs
    labels = np.arange(30) % 5
    assert entries.positions(labels) is labels
    some = entries.take(np.array([3, 7]))
    np.testing.assert_array_equal(some.representative, entries.logs[[3, 7]])
    assert [Entries.of(np.full((2, k), 1 / k), 2).index is None for k in (40, 41)] == [True, False]


@pytest.mark.parametrize("classes", [41, 100, 1000])
def test_many_classes_are_leading_ones_and_bands_of_ranks(classes):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(classes, 0.3), 60)
    entries = Entries.of(p, 60)
    logs, index = entries.logs, entries.index
    ends = [16]
    while ends[-1] < classes:
        ends.append(min(2 * ends[-1], classes))
    assert index.shape == (60, 16 + len(ends) - 1)
    labels = rng.integers(0, classes, 60)
    position = entries.positions(labels)
    for row in range(60):
        order = np.argsort(-logs[row], kind="stable")
        np.testing.assert_array_equal(index[row, :16], order[:16])
        assert (index[row, 16:] == classes).all()
        falling = np.exp(logs[row].astype(float))[order]
        for band, (low, high) in enumerate(pairwise(ends)):
            mass = falling[low:high].sum()
            assert entries.log_mass[row, 16 + band] == pytest.approx(np.log(mass), abs=1e-4)
            assert entries.representative[row, 16 + band] == pytest.approx(np.log(mass / (high - low)), abs=1e-4)
        rank = int(np.flatnonzero(order == labels[row])[0])
        expected = rank if rank < 16 else 16 + np.searchsorted(ends[1:], rank, side="right")
        assert position[row] == expected
    np.testing.assert_allclose(np.exp(entries.log_mass).sum(axis=1), 1, atol=1e-5)


def test_ties_and_zeros_leave_every_label_an_entry():
    p = np.zeros((4, 50))
    p[0, 7], p[1, :], p[2, :3], p[3, 40:] = 1.0, 1 / 50, 1 / 3, 0.1
    entries = Entries.of(p, 4)
    for label in range(50):
        position = entries.positions(np.full(4, label))
        assert ((position >= 0) & (position < entries.log_mass.shape[1])).all()
        for row in range(4):  # an entry of its own, or a band, which has no class
            own = position[row] < LEADING
            assert entries.index[row, position[row]] == (label if own else 50)
    assert np.isfinite(entries.log_mass).all()


def test_doubt_keeps_its_digits_where_single_precision_has_none():
    p = np.array([[1 - 3e-8, 2e-8, 1e-8], [0.5, 0.3, 0.2]])
    entries = Entries.of(p, 10**12)
    np.testing.assert_allclose(entries.doubt, np.log([3e-8, 0.5]), rtol=1e-6)


def test_logits_are_their_softmax():
    logits = np.random.default_rng(2).normal(size=(20, 60)).astype(np.float32) * 3
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    one, two = Entries.of(logits, 20, logits=True), Entries.of(p, 20)
    np.testing.assert_allclose(one.logs, two.logs, atol=1e-5)


def case(k, n=40):
    rng = np.random.default_rng(1)
    entries = Entries.of(rng.dirichlet(0.5 * np.ones(k), n).clip(1e-9), n)
    design = SharedFeatures.of(entries).design(entries)
    weight = (0.5 + rng.random(n)).astype(np.float32)
    b = rng.normal(size=sum(design.blocks)) * 0.1
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
        whole = np.zeros((sum(design.blocks),) * 2)
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


def rows(rng, n, k, scale=2.0):
    return Entries.of(softmax(rng.normal(size=(n, k)) * scale), 10**9)


@pytest.mark.parametrize("k", [4, 60])
def test_the_features_are_those_of_the_definition(k):
    """The place of a class logit is the mean of its rank among the quantiles and of its place between the ends."""
    rng = np.random.default_rng(0)
    quantiles = np.sort(rng.normal(size=65)) ** 3 + 1e-9 * np.arange(65)
    top_range, scale = np.array([-3.0, -0.2]), 1.7
    entries = rows(rng, 20, k)
    x = SharedFeatures(quantiles, top_range, scale).design(entries).shared
    grid = np.linspace(0, 1, 201)
    own, top = (kernel_basis(grid, matern, length, knots) for knots, length in ((9, 0.4), (4, 0.7)))
    for number, (row, logs) in enumerate(zip(x, entries.representative.astype(float), strict=True)):
        p = np.exp(logs)
        logit = logs - np.log1p(-p)
        rank = np.interp(logit, quantiles, np.linspace(0, 1, 65))
        between = np.clip((logit - quantiles[0]) / (quantiles[64] - quantiles[0]), 0, 1)
        everything = np.exp(entries.logs[number].astype(float))
        doubt = np.clip((np.log(1 - everything.max()) - top_range[0]) / (top_range[1] - top_range[0]), 0, 1)
        of_top = top[int(np.rint(200 * doubt))]
        best, second = (0, 1) if k > 40 else np.argsort(-p)[:2]
        for c in range(len(p)):
            place = 100 * (rank[c] + between[c])
            assert (
                min(np.abs(row[c, 1:10] - own[int(np.clip(np.rint(place + d), 0, 200))]).max() for d in (-0.01, 0.01))
                < 1e-5
            )
            np.testing.assert_allclose(row[c, 0], logs[c] / scale, rtol=1e-5)
            np.testing.assert_allclose(row[c, 10:14], logs[c] / scale * of_top, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(row[c, 14:18], of_top if c == best else 0, rtol=1e-5)
            assert row[c, 18] == (c == second)


def test_the_scales_of_the_features_come_from_the_rows():
    entries = rows(np.random.default_rng(1), 500, 3, 1.0)
    features, z = SharedFeatures.of(entries), entries.logs.astype(float)
    p = np.exp(z)
    logit = np.log(p / (1 - p))
    np.testing.assert_allclose(features.quantiles, np.quantile(logit, np.linspace(0, 1, 65)), atol=1e-5)
    np.testing.assert_allclose(features.top_range, np.quantile(np.log(1 - p.max(axis=1)), [0.02, 0.98]), atol=1e-5)
    assert features.scale == pytest.approx(np.sqrt(np.mean((z - z.mean(axis=1, keepdims=True)) ** 2)), rel=1e-5)


@pytest.mark.parametrize("k", [3, 50])
def test_totals_are_the_transpose_of_the_linear_map(k):
    rng = np.random.default_rng(2)
    entries = rows(rng, 40, k)
    design = SharedFeatures.of(entries).design(entries)
    b, q = rng.normal(size=sum(design.blocks)), rng.random(design.slope.shape).astype(np.float32)
    assert float((design.linear(b) * q).sum(dtype=float)) == pytest.approx(design.totals(q) @ b, rel=1e-4)
    some = design.take(np.array([5, 2]))
    np.testing.assert_allclose(some.linear(b), design.linear(b)[[5, 2]], rtol=1e-5, atol=1e-5)


def test_only_leading_classes_and_bands_have_a_class_of_their_own_number():
    entries = rows(np.random.default_rng(3), 10, 50)
    assert SharedFeatures.of(entries).design(entries).leading is entries.index
