"""
Few labels and a judge
======================

Accuracy from 25 to 400 gold labels, alone and with a judge who agrees with nine of ten of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.beta(4, 2, 4000)
right = rng.random(4000) < p
score = np.where(rng.random(4000) < 0.9, right, ~right)
order = rng.permutation(4000)
fig, axes = plt.subplots()
for k, labels in enumerate((25, 50, 100, 200, 400)):
    gold = np.full(4000, np.nan)
    gold[order[:labels]] = right[order[:labels]]
    data = cal.Judged(gold, p, judge=score)
    for shift, color, one in ((-0.1, "0.6", data.labelled()), (0.1, "C0", data)):
        low, high = cal.interval(cal.accuracy, one).interval
        axes.plot([k + shift] * 2, [low, high], color=color, linewidth=4)
axes.axhline(right.mean(), color="C1", linewidth=1)
axes.set(xticks=range(5), xticklabels=(25, 50, 100, 200, 400), xlabel="gold labels", ylabel="accuracy")
