"""
Recalibration with very few rows
================================

With 20 rows and no event, `Auto` stays near the identity; other maps become certain.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(1)
p = rng.uniform(0.1, 0.4, 20)
y = np.zeros(20, dtype=int)  # nothing has happened yet

scores = np.linspace(0.01, 0.6, 100)
fig, ax = plt.subplots()
for name, recalibrator in {"Auto": cal.recalibrate.Auto(), "isotonic": cal.recalibrate.Isotonic()}.items():
    ax.plot(scores, recalibrator.fit(p, y).predict_proba(scores)[:, 1], label=name)
ax.plot(scores, scores, "--", color="grey", label="unchanged")
ax.set(xlabel="predicted probability", ylabel="recalibrated")
ax.legend()
