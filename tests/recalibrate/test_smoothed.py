"""The default map of the variational estimator for one event, as a scikit-learn estimator."""

import numpy as np

import calibrant as cal
from tests.numerics.worlds import binary_world


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


def test_parts_hold_every_row_once():
    from calibrant.recalibrate.smoothed import PARTS, _parts

    rng = np.random.default_rng(12)
    log_odds = rng.normal(size=500)
    index = rng.integers(0, 7, 500)
    for values in (rng.integers(0, 5, (2, 500)).astype(float), rng.random((2, 500))):
        for part, column in zip(_parts(values, log_odds, index, 7), values, strict=True):
            assert part.shape == (PARTS + 1, 7)
            assert not part[PARTS].any()
            np.testing.assert_allclose(part.sum(axis=0), np.bincount(index, column, 7))
            np.testing.assert_allclose(part.sum(axis=1)[:PARTS] / column.sum(), 1 / PARTS, atol=0.05)
