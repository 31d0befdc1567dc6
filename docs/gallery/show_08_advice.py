"""
Which number should I report?
=============================

The data's own size and shape decide: estimators are tried in a world fitted to the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

advice = cal.simulate.advise(cal.Binary(y[:500], p[:500]))
fig, ax = plt.subplots(layout="constrained")
bias = [row.fitted.bias for row in advice.rows]
ax.errorbar(bias, [row.name for row in advice.rows], xerr=[row.fitted.sd for row in advice.rows], fmt="o", capsize=3)
ax.axvline(0, linestyle="--", color="grey")
ax.set(xlabel="bias of the estimate, with its standard deviation")
ax.invert_yaxis()
advice
