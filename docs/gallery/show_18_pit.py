"""
Histogram of F(y)
=================

Flat for a calibrated forecast; high at both ends where the spread is too narrow.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
std = rng.uniform(0.5, 2.0, 2000)
mean = rng.normal(size=2000)
y = mean + 1.3 * std * rng.normal(size=2000)  # the predicted spread is too narrow
data = cal.Gaussian(y, mean, std)

cal.plot.forecast_diagram(cal.estimators.pit_histogram(data))
