"""Classes, leading classes and bands of ranks as entries."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.numerics.class_entries import LEADING, Entries, compressed_logs


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
