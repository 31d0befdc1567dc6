"""Tables of labels of several classes, against sums that are written out."""

import numpy as np
import pytest

from calibrant.inference.several_classes import vector_looks as looks
from tests.inference.class_worlds import sample


@pytest.fixture
def layout():
    data, _ = sample(300, 5, seed=3, spread=1.0)
    return looks.Layout.of(data.y_prob), data.y_true


def test_gaps_of_the_observed_labels_are_sums_over_rows(layout):
    layout, labels = layout
    p = layout.probability
    gaps = looks.gaps_of_labels(layout, labels, 3, np.random.default_rng(0))
    residual = np.eye(5)[labels] - p
    z = np.log(p) - (p * np.log(p)).sum(axis=1, keepdims=True)
    assert np.allclose(gaps["slope"].gap[0], (z * residual).sum(axis=0))
    assert np.allclose(gaps["class"].gap[0].reshape(5, 4).sum(axis=1), residual.sum(axis=0))
    top = p.argmax(axis=1)
    for a in range(5):
        assert np.allclose(gaps["confusion"].gap[0].reshape(5, 5)[a], residual[top == a].sum(axis=0))
    order = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(residual, order, axis=1).sum(axis=0)
    assert np.allclose(gaps["rank"].gap[0].reshape(4, 32).sum(axis=1), [*ranked[:3], ranked[3:].sum()])
    assert gaps["surprise"].gap[0, 0] == pytest.approx((1 / p[np.arange(300), labels]).sum() - 300 * 5)
    assert gaps["pooled"].gap[0].sum() == pytest.approx(0, abs=1e-9)


def test_drawn_gaps_have_mean_zero_and_the_variance_they_state(layout):
    layout, labels = layout
    gaps = looks.gaps_of_labels(layout, labels, 4000, np.random.default_rng(0))
    for name in ("slope", "class", "rank"):
        gap, variance = gaps[name].gap[1:], gaps[name].variance
        assert np.abs(gap.mean(axis=0)).max() < 5 * np.sqrt(variance.max() / 4000), name
        assert np.allclose(gap.var(axis=0), variance, rtol=0.15, atol=0.02) or name == "slope", name


def test_rows_in_chunks_give_the_sums_of_all_rows(layout, monkeypatch):
    layout, labels = layout
    whole = looks.gaps_of_labels(layout, labels, 2, np.random.default_rng(0))
    monkeypatch.setattr(looks, "_chunks", lambda shape, lines: (slice(k, k + 100) for k in (0, 100, 200)))
    parts = looks.gaps_of_labels(layout, labels, 2, np.random.default_rng(0))
    for name, one in whole.items():
        assert np.allclose(one.gap[0], parts[name].gap[0]), name
        assert np.allclose(one.variance, parts[name].variance), name


def test_every_look_has_a_weight_and_small_samples_have_fewer_looks(layout):
    layout, labels = layout
    rng = np.random.default_rng(0)
    assert set(looks.statistics(layout, looks.gaps_of_labels(layout, labels, 2, rng))) == set(looks.WEIGHTS)
    few = looks.Layout.of(layout.probability[:50])
    found = looks.statistics(few, looks.gaps_of_labels(few, labels[:50], 2, rng))
    assert set(looks.WEIGHTS) - set(found) == {"rank of the true class in 32 bins of confidence"}


def test_equal_probabilities_share_a_bin():
    p = np.repeat([[0.2, 0.8], [0.6, 0.4], [0.61, 0.39]], [50, 49, 1], axis=0)
    layout = looks.Layout.of(p)
    assert len(np.unique(layout.class_bin[:50, 0])) == 1
    assert len(np.unique(layout.confidence_bin[50:99])) == 1
