"""Predictions of several classes with a known truth."""

import numpy as np

import calibrant as cal


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def classes(n=3000, k=4, *, sharp=1.0, lowered=0.0, seed=0, **columns):
    """Logits of the truth times `sharp`; class 1 is predicted with log odds `lowered` by so much."""
    rng = np.random.default_rng([seed, n, k])
    z = rng.normal(0, 1.5, (n, k))
    y = (rng.random((n, 1)) > np.cumsum(softmax(z), axis=1)).sum(axis=1)
    logits = sharp * z
    logits[:, 1] -= lowered
    return cal.Multiclass(np.minimum(y, k - 1), softmax(logits), **columns)
