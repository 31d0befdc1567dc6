"""
Which number should I report?
=============================

The data's own size and shape decide: estimators are tried in a world fitted to the rows.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

cal.simulate.advise(cal.Binary(y[:500], p[:500]))
