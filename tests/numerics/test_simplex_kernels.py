"""Kernel estimates on the simplex, averaged with a multiclass map."""

import numpy as np
import pytest

from calibrant.numerics import simplex_kernels
from calibrant.numerics.simplex_kernels import SimplexKernels


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
    own = np.arange(len(p)) if own is None else own
    return SimplexKernels.fit(p, y, np.ones(len(p), np.float32), np.log(p[own]), own, group)


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
