"""Known maps and worlds for the variational estimator."""

import numpy as np
from hypothesis import strategies as st

import calibrant as cal

#: A probability, an outcome and a weight per row.
weighted_rows = st.lists(st.tuples(st.floats(0.001, 0.999), st.booleans(), st.floats(0.1, 3)), min_size=2, max_size=60)


def columns(rows):
    return (np.array(column, dtype=float) for column in zip(*rows, strict=True))


class Fixed:
    """A map that is known beforehand."""

    def __init__(self, function):
        self.function = function

    def fit(self, scores, y, sample_weight=None):
        return self

    def predict_proba(self, scores):
        g = self.function(scores)
        return np.hstack([1 - g, g]) if scores.shape[1] == 1 else g


def tempered(power):
    def function(f):
        g = f**power
        return g / g.sum(axis=1, keepdims=True)

    return function


def over_world(rng, n, *, slope=0.4, shift=0.3):
    f = rng.beta(0.5, 0.5, n)
    h = 1 / (1 + np.exp(-slope * np.log(f / (1 - f)) - shift))
    return cal.Binary(rng.random(n) < h, f)


class Shift:
    """The simplest map: move all probabilities by the mean gap."""

    def fit(self, scores, y):
        self.gap = y.mean() - scores.mean()
        return self

    def predict_proba(self, scores):
        return np.hstack([1 - scores - self.gap, scores + self.gap])


def paper_world(rng, n, kind="over"):
    """The binary worlds of the paper of Berta et al."""
    f = rng.beta(0.5, 0.5, n)
    logit = np.log(f / (1 - f))
    h = {
        "calibrated": f,
        "over": 1 / (1 + np.exp(-0.4 * logit - 0.3)),
        "under": 1 / (1 + np.exp(-4 * logit - 1)),
        "shifted": np.clip(f + 0.02, 0, 1),
    }[kind]
    return cal.Binary(rng.random(n) < h, f)
