"""The kernel map: the double sum, and places without neighbours."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.recalibrate import nadaraya_watson
from tests.recalibrate.worlds import squared_world


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_nadaraya_watson_is_the_double_sum(bandwidth):
    p, y = squared_world(400)
    new = np.linspace(0, 1, 41)
    kernel = np.exp(-0.5 * ((new[:, None] - p) / bandwidth) ** 2)
    fitted = rc.NadarayaWatson(bandwidth=bandwidth).fit(p, y)
    expected = np.clip(kernel @ y / kernel.sum(axis=1), 1 / 402, 401 / 402)
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], expected, atol=2e-5)


def test_nadaraya_watson_far_from_all_rows_takes_the_nearest_estimate():
    fitted = rc.NadarayaWatson(bandwidth=0.01).fit([0.1, 0.11, 0.12], [0, 1, 0])
    assert fitted.predict_proba([0.9])[0, 1] == pytest.approx(1 / (3 + 2))  # beyond 0.12, where a 0 was seen
    with pytest.raises(ValueError, match="bandwidth must be"):
        rc.NadarayaWatson(bandwidth=0).fit([0.1, 0.2], [0, 1])


def test_several_classes_are_the_double_sum_over_vectors(tmp_path):
    rng = np.random.default_rng(0)
    p, new = rng.dirichlet(np.ones(3), 200), rng.dirichlet(np.ones(3), 30)
    y, w = rng.integers(0, 3, 200), rng.uniform(0.5, 2, 200)
    fitted = rc.NadarayaWatson().fit(p, y, w)
    kernel = w * np.exp(-((new[:, None] - p) ** 2).sum(axis=2) / 0.02)
    expected = np.stack([kernel[:, y == c].sum(axis=1) for c in range(3)], axis=1) / kernel.sum(axis=1, keepdims=True)
    expected = np.maximum(expected, 1 / (fitted.weight_ + 3))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(new), expected, atol=1e-9)
    fitted.save(tmp_path / "map.json")
    np.testing.assert_allclose(rc.load(tmp_path / "map.json").predict_proba(new), expected, atol=1e-9)
    with pytest.raises(TypeError, match="SQL"):
        fitted.to_sql(["a", "b", "c"])


def test_the_bandwidth_is_chosen_by_rows_left_out():
    p, y = squared_world(3000)
    chosen = rc.NadarayaWatson(bandwidth="auto").fit(p, y)
    assert 0.01 < chosen.bandwidth_ < 0.4
    losses = []
    for h in nadaraya_watson.BANDWIDTHS:
        kernel = np.exp(-0.5 * ((p[:, None] - p) / h) ** 2) - np.eye(3000)
        q = np.clip(kernel @ y / kernel.sum(axis=1), 1 / 3002, 3001 / 3002)
        losses.append(-np.log(np.where(y == 1, q, 1 - q)).mean())
    assert chosen.bandwidth_ == nadaraya_watson.BANDWIDTHS[np.argmin(losses)]
    rng = np.random.default_rng(1)
    vectors = rng.dirichlet(np.ones(3), 1500)
    h = vectors**2 / (vectors**2).sum(axis=1, keepdims=True)
    labels = (rng.random((1500, 1)) > h.cumsum(axis=1)).sum(axis=1)
    auto = rc.NadarayaWatson(bandwidth="auto").fit(vectors, labels)
    assert 0.02 < auto.bandwidth_ < 0.4
    assert ((auto.predict_proba(vectors) - h) ** 2).sum() < 0.5 * ((vectors - h) ** 2).sum()


def test_it_is_a_map_of_the_variational_estimator():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 1500)
    y = (rng.random((1500, 1)) > (p**2 / (p**2).sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    found = cal.calibration_error(cal.Multiclass(y, p), recalibrator=rc.NadarayaWatson(), norm=2)
    truth = np.sqrt(((p - p**2 / (p**2).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)).mean()
    assert 0.7 * truth < found < 1.1 * truth
