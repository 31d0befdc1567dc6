"""
Plain ECE depends on the number of bins
=======================================

The same rows, measured with 2 to 500 bins. The grey line is the mean of a perfectly calibrated model with the same
scores: the plain ECE grows with the number of bins because noise adds up.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)
counts = [2, 5, 10, 20, 50, 100, 200, 500]
plain = [cal.ece(data, bins=cal.EqualMass(k)) for k in counts]
calibrated = [np.mean([cal.ece(rng.random(2000) < p, p, bins=cal.EqualMass(k)) for _ in range(20)]) for k in counts]
found = cal.interval(cal.calibration_error, data)

fig, ax = plt.subplots()
ax.semilogx(counts, plain, marker="o", label="plain ECE")
ax.semilogx(counts, calibrated, color="grey", label="a calibrated model, on average")
ax.axhspan(found.interval.low, found.interval.high, alpha=0.2, label="95 % interval of the true error")
ax.axhline(0.075, linestyle="--", color="black", label="true error")
ax.set(xlabel="number of bins", ylabel="ECE")
ax.legend()
