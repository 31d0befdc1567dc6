"""The synthetic worlds of the paper: X given Y is normal at +1 or -1, and the score is a sigmoid of a line in X."""

from scipy.special import expit

import calibrant as cal

#: Intercept and slope of the score, and the true calibration error (trapezoid, 200,000 points).
LESS = (-0.5, 1.5)
BETTER = (-0.2, 1.9)
CALIBRATED = (0.0, 2.0)
TRUE_ERROR = {LESS: 0.0744433, BETTER: 0.0234589, CALIBRATED: 0.0}


def positives(rng, n, world):
    return expit(world[0] + world[1] * rng.normal(1, 1, n))


def everybody(rng, n, world):
    """Scores and hidden labels of n rows of the population."""
    y = rng.random(n) < 0.5
    return expit(world[0] + world[1] * (rng.normal(0, 1, n) + 2 * y - 1)), y


def drawn(rng, n_positive, n_unlabeled, world):
    unlabeled, _ = everybody(rng, n_unlabeled, world)
    return cal.PositiveUnlabeled(positives(rng, n_positive, world), unlabeled, prior=0.5)
