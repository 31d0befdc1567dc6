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
