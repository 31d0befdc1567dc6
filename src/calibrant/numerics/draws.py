"""Random draws."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats


def normal_draws(covariance: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draws from the normal distribution of mean zero, one per row; the covariance may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((rng.standard_normal((size, len(values))) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
