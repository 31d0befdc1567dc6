"""
Before and after recalibration
==============================

A map is fitted to one half of the rows and judged on the other.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

repair = cal.recalibrate.Auto().fit(p[:1000], y[:1000])
repaired = repair.predict_proba(p[1000:])[:, 1]
cal.plot.before_after(cal.ece(y[1000:], p[1000:]), cal.ece(y[1000:], repaired))
