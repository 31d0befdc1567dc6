"""The fast map for several classes."""

import numpy as np
import pytest

from calibrant.numerics import conditional_logit as conditional
from calibrant.numerics import neighbours
from calibrant.numerics.smoothers import kernel_basis, matern
from calibrant.numerics.special import log_softmax, softmax
from tests.numerics.worlds import class_world, draw_classes, gain


def test_the_features_are_those_of_the_definition():
    """The place of a class logit is the mean of its rank among the quantiles and of its place between the ends."""
    rng = np.random.default_rng(0)
    quantiles = np.sort(rng.normal(size=65)) ** 3 + 1e-9 * np.arange(65)
    top_range, scale = np.array([-3.0, -0.2]), 1.7
    features = conditional.SharedFeatures.with_scales(quantiles, top_range, scale)
    z = log_softmax(rng.normal(size=(20, 4)) * 2)
    x = features.design(z).shared
    grid = np.linspace(0, 1, 201)
    own, top = (kernel_basis(grid, matern, length, knots) for knots, length in ((9, 0.4), (4, 0.7)))
    for row, logs in zip(x, z, strict=True):
        p = np.exp(logs)
        logit = logs - np.log1p(-p)
        rank = np.interp(logit, quantiles, np.linspace(0, 1, 65))
        between = np.clip((logit - quantiles[0]) / (quantiles[64] - quantiles[0]), 0, 1)
        doubt = np.clip((np.log(1 - p.max()) - top_range[0]) / (top_range[1] - top_range[0]), 0, 1)
        of_top = top[int(np.rint(200 * doubt))]
        best, second = np.argsort(-p)[:2]
        for c in range(4):
            np.testing.assert_allclose(row[c, 0], logs[c] / scale)
            np.testing.assert_allclose(row[c, 1:10], own[int(np.rint(200 * (rank[c] + between[c]) / 2))])
            np.testing.assert_allclose(row[c, 10:14], logs[c] / scale * of_top)
            np.testing.assert_allclose(row[c, 14:18], of_top if c == best else 0)
            assert row[c, 18] == (c == second)


def test_the_scales_of_the_features_come_from_the_rows():
    z = log_softmax(np.random.default_rng(1).normal(size=(500, 3)))
    features = conditional.SharedFeatures.of(z)
    p = np.exp(z)
    logit = np.log(p / (1 - p))
    np.testing.assert_allclose(features.quantiles, np.quantile(logit, np.linspace(0, 1, 65)), atol=1e-6)
    np.testing.assert_allclose(features.top_range, np.quantile(np.log(1 - p.max(axis=1)), [0.02, 0.98]))
    assert features.scale == pytest.approx(np.sqrt(np.mean((z - z.mean(axis=1, keepdims=True)) ** 2)))


def test_small_probabilities_are_compressed_in_order():
    z = np.log(np.array([[1e-9, 1e-6, 1 - 1e-6 - 1e-9], [0.2, 0.3, 0.5]]))
    logs = conditional.compressed_logs(z, 100)
    limit = np.log(400)
    raw = np.where(z < -limit, -limit - np.log1p(np.maximum(-z - limit, 0)), z)
    np.testing.assert_allclose(logs, raw - np.log(np.exp(raw).sum(axis=1, keepdims=True)))
    assert logs[0, 0] < logs[0, 1] < -limit
    np.testing.assert_allclose(logs[1], z[1], atol=1e-12)


def test_the_hessian_is_the_derivative_of_the_totals():
    rng = np.random.default_rng(1)
    f, _, _, _ = class_world(rng, 40, 3, lambda z: z)
    design = conditional.SharedFeatures.of(np.log(f)).design(np.log(f))
    weight, b = 0.5 + rng.random(40), rng.normal(size=len(design.block)) * 0.1

    def expected(b):
        return design.totals(softmax(np.log(f) + design.linear(b)) * weight[:, None])

    step = 1e-5
    numeric = np.stack([(expected(b + step * e) - expected(b - step * e)) / (2 * step) for e in np.eye(len(b))])
    exact = design.hessian(softmax(np.log(f) + design.linear(b)), weight)
    assert exact == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize(
    ("change", "share"),
    [
        (lambda z: 0.3 * z, 0.97),
        (lambda z: 2 * z, 0.95),
        (lambda z: z + np.linspace(-1, 1, z.shape[1]), 0.9),
        (lambda z: z + 0.5 * np.sin(5 * z), 0.3),
    ],
)
def test_most_of_a_known_error_is_found(change, share):
    f, h, y, fold = class_world(np.random.default_rng(2), 2000, 4, change)
    g = conditional.cross_fitted(f, fold, y, np.ones(2000))
    assert g.sum(axis=1) == pytest.approx(1)
    assert gain(f, g, h) > share * gain(f, h, h)


def test_a_confusion_between_two_classes_is_found_by_the_matrix():
    def change(z):
        mixed = z.copy()
        mixed[:, 0] += 0.35 * (z[:, 1] - z[:, 2])
        return mixed

    f, h, y, fold = class_world(np.random.default_rng(3), 3000, 5, change)
    g = conditional.cross_fitted(f, fold, y, np.ones(3000))
    assert gain(f, g, h) > 0.7 * gain(f, h, h)


def test_a_local_error_is_found_by_the_neighbours():
    rng = np.random.default_rng(4)
    f = rng.dirichlet(np.ones(3), 3000)
    inside = ((f - [0.5, 0.3, 0.2]) ** 2).sum(axis=1) < 0.03
    h = np.where(inside[:, None], [0.1, 0.1, 0.8], f)
    y, fold = draw_classes(rng, h), rng.permutation(np.arange(3000) % 5)
    z = np.log(f)
    stages = conditional.TwoStages.fit(z, y, np.ones(3000))
    near = neighbours.Neighbours.of(z)
    rows = np.arange(3000)
    local = np.exp(neighbours.local_correction(near, stages.fitted, y, np.ones(3000), rows, rows))
    assert gain(f, local, h) > gain(f, np.exp(stages.fitted), h) + 0.01
    g = conditional.cross_fitted(f, fold, y, np.ones(3000))
    assert gain(f, g, h) > 0.5 * gain(f, h, h)


def test_calibrated_vectors_stay_nearly_as_they_are():
    f, _, y, fold = class_world(np.random.default_rng(5), 2000, 4, lambda z: z)
    g = conditional.cross_fitted(f, fold, y, np.ones(2000))
    assert np.abs(g - f).sum(axis=1).mean() < 0.05


@pytest.mark.parametrize("n", [400, 4500])  # below and above the number of reference rows
def test_labels_of_a_fold_never_touch_its_map(n):
    rng = np.random.default_rng(6)
    f, _, y, fold = class_world(rng, n, 3, lambda z: 0.5 * z)
    g = conditional.cross_fitted(f, fold, y, np.ones(n), targets=[1])
    turned = np.where(fold == 1, (y + 1) % 3, y)
    again = conditional.cross_fitted(f, fold, turned, np.ones(n), targets=[1])
    assert np.array_equal(again[fold == 1], g[fold == 1])
    others = np.where(fold == 0, (y + 1) % 3, y)
    assert np.abs(conditional.cross_fitted(f, fold, others, np.ones(n), targets=[1]) - g)[fold == 1].max() > 1e-3


def test_few_rows_many_classes_and_exact_zeros_are_no_obstacle():
    rng = np.random.default_rng(9)
    f = np.eye(30)[rng.integers(0, 30, 40)]
    f[:20] = rng.dirichlet(np.ones(30), 20)
    g = conditional.cross_fitted(f, np.arange(40) % 5, rng.integers(0, 5, 40), np.ones(40))
    assert np.isfinite(g).all()
    assert g.sum(axis=1) == pytest.approx(1)


def test_weights_of_zero_and_two_are_rows_left_out_and_repeated_for_the_first_stages():
    rng = np.random.default_rng(11)
    f, _, y, _ = class_world(rng, 300, 3, lambda z: 0.5 * z)
    w = rng.integers(1, 3, 300).astype(float)
    z = np.log(f)
    again = np.repeat(np.arange(300), w.astype(int))
    one = conditional._Ridge(conditional.SharedFeatures.of(z).design(z), y, w)
    two = conditional._Ridge(conditional.SharedFeatures.of(z).design(z[again]), y[again], np.ones(len(again)))
    assert one.fit(z, updates=4)[again] == pytest.approx(two.fit(z[again], updates=4), abs=1e-6)
