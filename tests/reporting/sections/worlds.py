"""Predictions with a known truth that the tests of sections share."""

import numpy as np

import calibrant as cal
from calibrant.numerics.arrays import expit
from calibrant.reporting.evidence import Part


def binary(n=4000, *, slope=1.0, shift=0.0, mean=-1.0, spread=1.3, seed=0, digits=None, **columns):
    """Scores p with log odds z, and events with the log odds shift + slope z."""
    rng = np.random.default_rng([seed, n])
    z = rng.normal(mean, spread, n)
    p = expit(z) if digits is None else np.round(expit(z), digits)
    y = rng.random(n) < expit(shift + slope * z)
    return cal.Binary(y, p, **columns)


def part(*args, **options):
    return Part(binary(*args, **options))
