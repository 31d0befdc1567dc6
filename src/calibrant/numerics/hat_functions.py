"""Piecewise linear functions of a position in [0, 1], and the pooling of neighbouring positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats


def unit_scaled(values: Floats, low: float | None = None, high: float | None = None) -> Floats:
    """Rising values mapped to [0, 1] by their first and last (or the given ends, beyond which they are cut)."""
    low, high = float(values[0]) if low is None else low, float(values[-1]) if high is None else high
    if not high > low:
        return np.zeros(len(values))
    return (np.clip(values, low, high) - low) / (high - low)


def mid_ranks(share: Floats) -> Floats:
    """The middle of each cell in the running share."""
    return np.asarray(np.cumsum(share) - share / 2)


def pool_starts(position: Floats, size: int) -> NDArray[np.intp]:
    """Where each of at most `size` pools of equal width begins, for rising positions."""
    return np.flatnonzero(np.diff(np.minimum((position * size).astype(np.intp), size - 1), prepend=-1))


def hat_functions(position: Floats, knots: int) -> Floats:
    """Hat functions at equally spaced knots, one per column; a single knot is the constant."""
    if knots == 1:
        return np.ones((len(position), 1))
    return np.maximum(0.0, 1 - np.abs(position[:, None] * (knots - 1) - np.arange(knots)))


def orthonormal_hats(position: Floats, share: Floats, knots: int) -> Floats:
    """Combinations of hat functions that are orthonormal under `share`; those without any weight are left out.

    They are zero at positions without weight.
    """
    root = np.sqrt(share)[:, None]
    left, sizes, _ = np.linalg.svd(root * hat_functions(position, knots), full_matrices=False)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return np.asarray(left[:, sizes > 1e-6 * sizes[0]] * inverse)
