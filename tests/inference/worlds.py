"""The world of known error that tests of inference sample from, and two models on one sample of it."""

import calibrant as cal
from calibrant.simulate import PowerCurve, UniformScores, World

BENT = World(UniformScores(), PowerCurve(1.5))


def models(n=1500, seed=0):
    """A miscalibrated and a calibrated model of the same rows."""
    data = BENT.sample(n, seed)
    return data, cal.Binary(data.y_true, data.y_prob**1.5)
