"""The default maps of the variational estimator, binary and multiclass, as scikit-learn estimators."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics import multiclass_map as class_map
from tests.numerics.worlds import binary_world, class_world, gain


def test_the_estimator_maps_as_its_functions_do_and_saves():
    rng = np.random.default_rng(9)
    f, y = binary_world(rng, 3000, lambda f: f**2)
    fitted = cal.recalibrate.Smoothed().fit(f, y)
    at = np.linspace(0.05, 0.95, 19)
    assert np.abs(fitted.predict_proba(at)[:, 1] - at**2).mean() < 0.03
    weighted = cal.recalibrate.Smoothed().fit(f, y, sample_weight=rng.random(3000))
    assert np.abs(weighted.predict_proba(at)[:, 1] - at**2).mean() < 0.05


def test_the_estimator_survives_a_file(tmp_path):
    rng = np.random.default_rng(10)
    f, y = binary_world(rng, 300, lambda f: f**2)
    fitted = cal.recalibrate.Smoothed().fit(f, y)
    fitted.save(tmp_path / "map.json")
    assert np.array_equal(cal.recalibrate.load(tmp_path / "map.json").predict_proba(f), fitted.predict_proba(f))


def test_smoothed_does_not_depend_on_the_order_of_rows_and_counts_are_rows_repeated():
    rng = np.random.default_rng(11)
    f, y = binary_world(rng, 400, lambda f: f**2)
    weight = rng.integers(1, 3, 400)
    order = rng.permutation(400)
    fitted = cal.recalibrate.Smoothed().fit(f, y, weight).predict_proba(f)
    shuffled = cal.recalibrate.Smoothed().fit(f[order], y[order], weight[order]).predict_proba(f)
    counted = cal.recalibrate.Smoothed().fit(f, y, weight, effective_n=weight.sum()).predict_proba(f)
    repeated = cal.recalibrate.Smoothed().fit(np.repeat(f, weight), np.repeat(y, weight)).predict_proba(f)
    np.testing.assert_allclose(shuffled, fitted, atol=1e-9)
    np.testing.assert_allclose(repeated, counted, atol=1e-9)


def test_five_parts_hold_every_row_once():
    from calibrant.recalibrate.variational_maps import _parts

    rng = np.random.default_rng(12)
    log_odds = rng.normal(size=500)
    index = rng.integers(0, 7, 500)
    for values in (rng.integers(0, 5, (2, 500)).astype(float), rng.random((2, 500))):
        for part, column in zip(_parts(values, log_odds, index, 7), values, strict=True):
            assert part.shape == (6, 7)
            assert not part[5].any()
            np.testing.assert_allclose(part.sum(axis=0), np.bincount(index, column, 7))
            np.testing.assert_allclose(part.sum(axis=1)[:5] / column.sum(), 1 / 5, atol=0.05)


@pytest.mark.no_cover
@pytest.mark.parametrize(("k", "share"), [(4, 0.85), (60, 0.6)])
def test_the_estimator_maps_new_rows_and_survives_a_file(tmp_path, k, share):
    rng = np.random.default_rng(10)
    f, h, y, _ = class_world(rng, 4500, k, lambda z: 0.4 * z + 0.3 * np.sin(4 * z))
    fitted = cal.recalibrate.ConditionalLogit().fit(f[:4000], y[:4000], classes=range(k))
    g = fitted.predict_proba(f[4000:])
    assert gain(f[4000:], g, h[4000:]) > share * gain(f[4000:], h[4000:], h[4000:])
    assert g.sum(axis=1) == pytest.approx(1, abs=1e-12)
    fitted.save(tmp_path / "map.json")
    assert cal.recalibrate.load(tmp_path / "map.json").predict_proba(f[4000:]) == pytest.approx(g, abs=1e-12)


@pytest.mark.no_cover
@pytest.mark.parametrize("k", [3, 50])
def test_it_is_the_map_of_the_variational_estimator(k):
    """Held-out rows get what a map fitted to the others gives them, but for scales, which come from all rows."""
    f, _, y, fold = class_world(np.random.default_rng(11), 3000, k, lambda z: 0.5 * z)
    g = class_map.cross_fitted(f, fold, y, np.ones(3000), targets=[0])[fold == 0]
    own = cal.recalibrate.ConditionalLogit().fit(f[fold != 0], y[fold != 0], classes=range(k))
    assert np.abs(own.predict_proba(f[fold == 0]) - g).sum(axis=1).mean() < 0.05


def test_a_file_of_a_map_without_neighbours_is_small(tmp_path):
    rng = np.random.default_rng(13)
    f, _, y, _ = class_world(rng, 300, 3, lambda z: z)
    fitted = cal.recalibrate.ConditionalLogit().fit(f, y)
    fitted.save(tmp_path / "map.json")
    loaded = cal.recalibrate.load(tmp_path / "map.json")
    np.testing.assert_allclose(loaded.predict_proba(f), fitted.predict_proba(f), atol=1e-12)
    assert len(fitted.near_) == (300 if fitted.local_.any() else 0)


@pytest.mark.parametrize("k", [3, 50])
def test_weights_count_by_their_effective_size(k):
    rng = np.random.default_rng(14)
    f, _, y, _ = class_world(rng, 400, k, lambda z: 0.5 * z)
    weight = rng.uniform(0.5, 2, 400)

    def fitted(weight):
        return cal.recalibrate.ConditionalLogit().fit(f, y, weight, classes=range(k)).predict_proba(f)

    np.testing.assert_allclose(fitted(100 * weight), fitted(weight), atol=1e-6)
    np.testing.assert_allclose(fitted(np.full(400, 7.0)), fitted(None), atol=1e-9)


def test_logits_and_one_column_are_the_same_scores():
    f, _, y, _ = class_world(np.random.default_rng(15), 600, 3, lambda z: 0.5 * z)
    one = cal.recalibrate.ConditionalLogit().fit(f, y).predict_proba(f)
    two = cal.recalibrate.ConditionalLogit(input="logits").fit(np.log(f) + 3, y).predict_proba(np.log(f) + 3)
    np.testing.assert_allclose(one, two, atol=1e-3)
    event = y == 1
    column = cal.recalibrate.ConditionalLogit().fit(f[:, 1], event)
    both = cal.recalibrate.ConditionalLogit().fit(np.stack([1 - f[:, 1], f[:, 1]], axis=1), event)
    np.testing.assert_allclose(
        column.predict_proba(f[:, 1]), both.predict_proba(np.stack([1 - f[:, 1], f[:, 1]], axis=1)), atol=1e-6
    )


@pytest.mark.parametrize("rows", [2, 5])
def test_a_handful_of_rows_is_enough(rows):
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]])[:rows]
    g = cal.recalibrate.ConditionalLogit().fit(p, np.arange(rows) % 3, classes=range(3)).predict_proba(p)
    assert np.isfinite(g).all()


@pytest.mark.parametrize("k", [4, 60])
def test_a_row_alone_is_predicted_as_among_others(k):
    f, _, y, _ = class_world(np.random.default_rng(16), 900, k, lambda z: 0.5 * z + 0.3 * np.sin(3 * z))
    fitted = cal.recalibrate.ConditionalLogit().fit(f[:700], y[:700], classes=range(k))
    together = fitted.predict_proba(f[700:])
    alone = np.concatenate([fitted.predict_proba(f[i : i + 1]) for i in range(700, 900)])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-12)
    order = np.random.default_rng(17).permutation(200)
    np.testing.assert_allclose(fitted.predict_proba(f[700:][order]), together[order], rtol=0, atol=1e-12)
