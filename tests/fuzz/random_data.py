"""Random predictions of every task: sizes from a few rows up, ties, extreme scores, weights."""

from __future__ import annotations

import numpy as np

import calibrant as cal


def scores(rng, n):
    """Scores of one of many shapes."""
    made = [
        lambda: rng.random(n),
        lambda: rng.beta(0.2, 0.3, n),
        lambda: rng.random(n).round(int(rng.integers(0, 3))),
        lambda: rng.choice([0.0, 1.0], n),
        lambda: np.full(n, rng.random()),
        lambda: 10.0 ** -rng.uniform(0, 300, n),
        lambda: rng.random(n).astype(np.float32),
        lambda: np.clip(rng.normal(0.5, 1.0, n), 0, 1),
    ]
    return made[rng.integers(len(made))]()


def weights(rng, n):
    """None, or weights of one of several spreads; some may be zero."""
    made = [
        lambda: None,
        lambda: rng.random(n) + 0.5,
        lambda: rng.integers(1, 5, n).astype(float),
        lambda: np.exp(rng.normal(0, 3, n)),
        lambda: np.where(rng.random(n) < 0.3, 0.0, 1.0) + np.eye(1, n)[0],
        lambda: np.full(n, 3.0),
    ]
    return made[rng.integers(len(made))]()


def size(rng):
    return int(rng.choice([2, 3, 7, 20, 60, 200], p=[0.05, 0.05, 0.1, 0.2, 0.3, 0.3]))


def binary(rng, n=None):
    n = size(rng) if n is None else n
    p = scores(rng, n)
    y = (rng.random(n) < p ** rng.choice([0.5, 1.0, 2.0])).astype(int)
    return cal.Binary(y, p, weight=weights(rng, n))


def gaussian(rng, n=None):
    n = size(rng) if n is None else n
    std = [rng.random(n) + 0.1, np.full(n, 0.7), np.exp(rng.normal(0, 2, n)), rng.integers(1, 4, n)][rng.integers(4)]
    mean = rng.normal(0, 3, n)
    return cal.Gaussian(mean + rng.normal(0, 1.2, n) * std, mean, std, weight=weights(rng, n))


def multiclass(rng, n=None):
    n = size(rng) if n is None else n
    k = int(rng.integers(2, 6))
    p = rng.dirichlet(np.full(k, rng.choice([0.1, 1.0, 10.0])), n)
    return cal.Multiclass(rng.integers(0, k, n), p / p.sum(axis=1, keepdims=True), weight=weights(rng, n))
