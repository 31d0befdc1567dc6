"""
Reliability diagram
===================

Predicted probabilities against observed frequencies: the isotonic (CORP) curve with the band in which the true curve
lies with 95 % confidence.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)

cal.plot.reliability_diagram(cal.Binary(y, p))
