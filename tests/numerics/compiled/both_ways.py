"""The same action with the compiled loops and without them, and scores that are hard to place."""

import numpy as np


def with_and_without(monkeypatch, action):
    """The results of an action with the compiled loops and without them."""
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    found = action()
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    return found, action()


def awkward_scores(edges, dtype, n=3000):
    """Edges and their neighbours, the ends, subnormal numbers, ties, and scores that crowd near 1 and near 0."""
    rng = np.random.default_rng(len(edges))
    near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    ends = [0.0, -0.0, 1.0, 5e-324, 1e-300, 1e-40, 1 - 2**-53, 1 - 2**-24, 0.5]
    crowd = rng.beta(1.1, 0.1, n)
    return np.concatenate([near, ends, crowd, 1 - crowd, rng.random(n), rng.random(n).round(2)]).astype(dtype)
