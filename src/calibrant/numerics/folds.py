"""Who goes into which fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.numerics.arrays import Floats


def dealt(zeros: Floats, ones: Floats, sizes: Sequence[float], rng: np.random.Generator) -> Floats:
    """Whole counts of rows per cell, by outcome, dealt into folds at random: shape (folds, 2, cells)."""
    counts = np.stack([zeros, ones]).round().astype(np.int64)
    return np.moveaxis(rng.multinomial(counts, np.divide(sizes, np.sum(sizes))), -1, 0).astype(np.float64)
