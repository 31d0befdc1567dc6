"""Audits that tests of their pages share."""

from functools import cache

import numpy as np

import calibrant as cal


@cache
def found(shift=0.3, rows=3000):
    """Predictions that are `shift` too low for the young users of an application, with a hostile name of a value."""
    rng = np.random.default_rng(0)
    p, age = rng.uniform(0.1, 0.5, rows), rng.integers(18, 90, rows)
    device = rng.choice(["<b>app</b>", "web"], rows)
    y = rng.random(rows) < p + shift * ((device == "<b>app</b>") & (age < 40))
    return cal.audit(cal.Binary(y, p), {"age": age, "device": device})


@cache
def coverage(rows=3000):
    """Forecasts whose spread is too small for one kind of rows."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], rows)
    y = np.where(kind == "a", 2.0, 1.0) * rng.normal(size=rows)
    return cal.audit(cal.Gaussian(y, np.zeros(rows), np.ones(rows)), {"kind": kind})


@cache
def classes(rows=3000):
    """Probabilities of three classes that are wrong for one kind of rows."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], rows)
    y = np.where((kind == "a") & (rng.random(rows) < 0.3), 2, rng.integers(0, 3, rows))
    return cal.audit(cal.Multiclass(y, np.tile([0.34, 0.33, 0.33], (rows, 1))), {"kind": kind})
