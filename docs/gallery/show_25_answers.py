"""
Two models, the same questions
==============================

Confidence against accuracy of two models, and the errors that remain if each withholds its least confident answers.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
difficulty = rng.normal(size=2000)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
for name, too_sure, color in (("over-confident", 2.5, "C1"), ("calibrated", 1.0, "C0")):
    z = 0.8 + difficulty + rng.normal(size=2000)
    answers = cal.Confidence(rng.random(2000) < 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-too_sure * z)))
    table = cal.ece(answers).bins
    left.plot(table.predicted_mean, table.observed_mean, "o-", color=color, label=name)
    curve = cal.risk_coverage(answers)
    right.plot(curve.coverage, curve.risk, color=color, label=name)
left.plot([0, 1], [0, 1], color="0.6", linewidth=1)
left.set(xlabel="confidence", ylabel="share that is right")
left.legend()
right.set(xlabel="share of questions answered, most confident first", ylabel="share that is wrong")
