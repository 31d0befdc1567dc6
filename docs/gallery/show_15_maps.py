"""
Recalibration maps
==================

What the maps make of a score, all fitted to the same 300 rows. The dashed line is the truth.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(300)
y = rng.random(300) < 0.5 + 0.7 * (p - 0.5)

scores = np.linspace(0.01, 0.99, 200)
fig, ax = plt.subplots()
for recalibrator in (
    cal.recalibrate.Temperature(),
    cal.recalibrate.Beta(),
    cal.recalibrate.Spline(),
    cal.recalibrate.Isotonic(),
    cal.recalibrate.Auto(),
):
    ax.plot(scores, recalibrator.fit(p, y).predict_proba(scores)[:, 1], label=type(recalibrator).__name__)
ax.plot(scores, 0.5 + 0.7 * (scores - 0.5), "--", color="black", label="truth")
ax.set(xlabel="predicted probability", ylabel="recalibrated", aspect="equal")
ax.legend()
