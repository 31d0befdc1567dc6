"""
Every estimator on the same rows
================================

Estimates of the true error of 0.075 from one sample. Brier score and log loss are not calibration errors and are left
out.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)
estimators = [
    cal.averaged_error,
    cal.variational_error,
    cal.debiased_ece,
    cal.sweep_ece,
    cal.ece,
    cal.kde_ece,
    cal.smooth_ece,
    cal.ks_error,
]
found = {f.__name__: float(f(data)) for f in estimators}
fig, ax = plt.subplots()
ax.plot(list(found.values()), list(found), "o")
ax.axvline(0.075, linestyle="--", color="grey")
ax.set(xlabel="estimate; dashed: the true L1 error")
ax.invert_yaxis()
fig.tight_layout()
