"""Features that all classes share."""

import numpy as np
import pytest

from calibrant.numerics.class_entries import Entries
from calibrant.numerics.shared_features import SharedFeatures
from calibrant.numerics.smoothers import kernel_basis, matern
from calibrant.numerics.special import softmax


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
    b, q = rng.normal(size=len(design.block)), rng.random(design.slope.shape).astype(np.float32)
    assert float((design.linear(b) * q).sum(dtype=float)) == pytest.approx(design.totals(q) @ b, rel=1e-4)
    some = design.take(np.array([5, 2]))
    np.testing.assert_allclose(some.linear(b), design.linear(b)[[5, 2]], rtol=1e-5, atol=1e-5)


def test_only_leading_classes_and_bands_have_a_class_of_their_own_number():
    entries = rows(np.random.default_rng(3), 10, 50)
    assert SharedFeatures.of(entries).design(entries).leading is entries.index
    few = rows(np.random.default_rng(3), 10, 5)
    with pytest.raises(TypeError, match="entries are the classes"):
        _ = SharedFeatures.of(few).design(few).leading
