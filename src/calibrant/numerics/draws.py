"""Random draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

#: Rows of uniform numbers drawn at a time, few enough for the cache.
_BLOCK = 128

#: Up to this many classes, comparing with every bound is faster than searching.
_FEW = 40


def normal_draws(covariance: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draws from the normal distribution of mean zero, one per row; the covariance may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((rng.standard_normal((size, len(values))) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def categorical_draws(probability: Floats, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Class numbers drawn from each row of probabilities (which need not sum to 1 exactly), of shape (rows, size).

    By inversion, so that a class of probability 0 is never drawn.

    >>> categorical_draws(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]), 4, np.random.default_rng(0))
    array([[1, 1, 1, 1],
           [2, 2, 2, 2]], dtype=int32)
    """
    running = np.cumsum(probability, axis=1)
    drawn = np.empty((len(running), size), np.int32)
    for start in range(0, len(running), _BLOCK):
        rows = slice(start, start + _BLOCK)
        uniform = rng.random((len(running[rows]), size))
        uniform *= running[rows, -1:]
        if running.shape[1] <= _FEW:
            drawn[rows] = _exceeded(np.ascontiguousarray(running[rows, :-1]), uniform)
        else:
            for number, (bounds, numbers) in enumerate(zip(running[rows, :-1], uniform, strict=True), start=start):
                drawn[number] = bounds.searchsorted(numbers, side="right")
    return drawn


def _exceeded(bounds: Floats, values: Floats) -> NDArray[np.uint8]:
    """How many of the bounds of its row each value reaches."""
    count = np.zeros(values.shape, np.uint8)
    for column in bounds.T:
        count += (values >= column[:, None]).view(np.uint8)
    return count
