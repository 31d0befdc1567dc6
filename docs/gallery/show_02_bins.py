"""
Reliability diagram with bins
=============================

Ten bins with the same number of rows, and the histogram of the scores.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

cal.plot.reliability_diagram(
    cal.reliability_curve(data, bins=cal.EqualMass(10)), histogram=cal.BinTable.of(data, cal.table.Distinct())
)
