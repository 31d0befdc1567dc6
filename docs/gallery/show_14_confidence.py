"""
Where confidence is too high
============================

Gaps between confidence and accuracy, bin by bin; the area is the ECE.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

cal.plot.confidence_strip(cal.inference.confidence_gaps(cal.ece(data)))
