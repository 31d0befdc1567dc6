"""Random draws."""

from __future__ import annotations

from typing import Any

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
        drawn[rows] = bounds_reached(running[rows, :-1], uniform)
    return drawn


def bounds_reached(bounds: Floats, values: Floats) -> NDArray[np.integer[Any]]:
    """How many of the rising bounds of its row each value reaches; few rows at a time stay in the cache.

    >>> bounds_reached(np.array([[0.1, 0.5]]), np.array([[0.05, 0.1, 0.7]]))
    array([[0, 1, 2]], dtype=uint8)
    """
    if bounds.shape[1] > _FEW:
        return np.stack([own.searchsorted(row, side="right") for own, row in zip(bounds, values, strict=True)])
    count = np.zeros(values.shape, np.uint8)
    for column in np.ascontiguousarray(bounds.T):
        count += (values >= column[:, None]).view(np.uint8)
    return count
