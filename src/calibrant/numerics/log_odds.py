"""Probabilities as log-odds, in which the tails keep their digits: 1 - 1e-30 is 69.1, not 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit as expit

from calibrant.numerics.arrays import Floats


def log_odds(probability: ArrayLike) -> Floats:
    """Log of p / (1 - p); 0 and 1 are minus and plus infinity."""
    p = np.asarray(probability, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def log_probability(z: Any) -> Floats:
    """Log of p at log-odds z."""
    return -np.logaddexp(0.0, -np.asarray(z, dtype=np.float64))


def log_complement(z: Any) -> Floats:
    """Log of 1 - p at log-odds z."""
    return -np.logaddexp(0.0, np.asarray(z, dtype=np.float64))


def times(factor: float, values: Floats) -> Floats:
    """Product with 0 * infinity = 0, so that a curve without a slope has none at the ends either."""
    return factor * values if factor else np.zeros_like(values)
