"""Probabilities, the true ones, and what a map gains."""

import numpy as np

from calibrant.numerics.arrays import softmax


def draw_classes(rng, p):
    """One class per row of probabilities."""
    return (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, p.shape[1] - 1)


def binary_world(rng, n, chance):
    """Predicted probabilities and outcomes of the true probability `chance(f)`."""
    f = rng.beta(0.5, 0.5, n)
    return f, (rng.random(n) < chance(f)).astype(float)


def class_world(rng, n, k, change):
    """Predicted and true probabilities of k classes, outcomes, and folds; `change` maps predicted logs to true."""
    f = rng.dirichlet(0.5 * np.ones(k), n).clip(1e-12)
    f /= f.sum(axis=1, keepdims=True)
    h = softmax(change(np.log(f)))
    return f, h, draw_classes(rng, h), rng.permutation(np.arange(n) % 5)


def gain(f, g, truth):
    """Expected gain in Brier score per row, without the noise of outcomes."""
    return ((f - truth) ** 2 - (g - truth) ** 2).sum() / len(f)
