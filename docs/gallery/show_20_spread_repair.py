"""
Recalibrating a forecast
========================

One factor for all spreads, fitted on half of the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
std = rng.uniform(0.5, 2.0, 2000)
mean = rng.normal(size=2000)
y = mean + 1.3 * std * rng.normal(size=2000)  # the predicted spread is too narrow
data = cal.Gaussian(y, mean, std)
scaling = cal.recalibrate.StdScaling().fit(cal.Gaussian(y[:1000], mean[:1000], std[:1000]))
rest = cal.Gaussian(y[1000:], mean[1000:], std[1000:])
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
cal.plot.forecast_diagram(cal.interval_curve(rest), ax=axes[0]).set_title("before")
cal.plot.forecast_diagram(cal.interval_curve(scaling.transform(rest)), ax=axes[1]).set_title("after")
