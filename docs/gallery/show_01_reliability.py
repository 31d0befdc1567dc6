"""
Reliability diagram
===================

The isotonic (CORP) curve needs no bins. Grey: where the curve of a calibrated model would lie. Blue: where the
true curve lies, with 95 % confidence.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

cal.plot.reliability_diagram(cal.reliability_curve(data))
