"""Data with known faults, and a peer of isotonic regression."""

import numpy as np
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import calibrant as cal

#: Scores in fifteenths, many of them tied, and outcomes.
tied_rows = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 15), min_size=n, max_size=n), st.lists(st.integers(0, 1), min_size=n, max_size=n)
    )
)


def isotonic_peer(p, y, new, weight=None):
    """scikit-learn, with tied scores pooled by hand first."""
    weight = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=float)
    distinct, index = np.unique(p, return_inverse=True)
    total = np.bincount(index, weight)
    mean = np.bincount(index, weight * y) / total
    return IsotonicRegression(out_of_bounds="clip").fit(distinct, mean, sample_weight=total).predict(new)


def squared_world(n=1000, seed=0):
    """The true probability is the square of the predicted one."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**2).astype(int)


def quadratic_world(n=2000, seed=0):
    """The true log odds are a quadratic function of the predicted ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 2
    y = rng.random(n) < expit(0.3 + 0.6 * x - 0.1 * x**2)
    return expit(x), y


def spread_world(n=4000, seed=0, factor=2.0, power=1.0):
    """The true spread is factor * predicted^power."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.lognormal(0, 0.5, n)
    return cal.Gaussian(mean + factor * std**power * rng.normal(size=n), mean, std)
