"""Worlds of predicted spreads with errors of several laws, for tests of regression intervals."""

import numpy as np

import calibrant as cal

NOISE = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t5": lambda rng, n: rng.standard_t(5, n) * np.sqrt(0.6),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "t3": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
}


def forecasts(rng, n, *, noise="normal", factor=1.0, power=0.0, **columns):
    """Log-normal spreads; errors are factor * sigma^power times as large."""
    std = np.exp(0.5 * rng.standard_normal(n))
    return cal.Gaussian(factor * std ** (1 + power) * NOISE[noise](rng, n), np.zeros(n), std, **columns)
