"""
PU-ECE for every assumed prior
==============================

Without labelled negatives the result depends on the share of positives that is assumed.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
prior = 0.3
event = rng.random(4000) < prior
scores = np.where(event, rng.beta(4, 2, 4000), rng.beta(2, 4, 4000))
labelled = rng.beta(4, 2, 600)  # positives whose label is known
data = cal.PositiveUnlabeled(labelled, scores, prior=prior)
priors = np.linspace(0.2, 0.4, 9)
found = [cal.interval(cal.ece, cal.PositiveUnlabeled(labelled, scores, prior=share)) for share in priors]
fig, ax = plt.subplots()
ax.plot(priors, found, marker="o")
ax.fill_between(priors, [f.interval.low for f in found], [f.interval.high for f in found], alpha=0.2)
ax.set(xlabel="assumed share of positives", ylabel="PU-ECE with 95 % interval")
