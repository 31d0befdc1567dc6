"""Worlds of several classes that tests of inference sample from."""

import numpy as np

import calibrant as cal


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sample(n, classes=3, *, temperature=1.0, seed=0, spread=2.0):
    """Gaussian logits; the true probabilities are those of the divided logits. Data and true probabilities."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, classes)) * spread
    truth = softmax(z / temperature)
    y = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1)
    return cal.Multiclass(np.minimum(y, classes - 1), softmax(z)), truth
