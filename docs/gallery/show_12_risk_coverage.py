"""
Selective prediction
====================

The error rate among the most confident predictions, as fewer are kept.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
scores = rng.normal(size=(3000, 5)) + 1.5 * np.eye(5)[rng.integers(5, size=3000)]
vectors = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
y = np.array([rng.choice(5, p=v) for v in vectors])

found = cal.risk_coverage(cal.Multiclass(y, vectors))
fig, ax = plt.subplots()
ax.plot(found.coverage, found.risk)
ax.set(xlabel="share of rows kept, most confident first", ylabel="error rate among them")
