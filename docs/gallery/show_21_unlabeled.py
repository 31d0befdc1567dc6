"""
Positive and unlabeled rows
===========================

The share of positives implied by the labelled ones, and how it moves with the assumed prior.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
prior = 0.3
event = rng.random(4000) < prior
scores = np.where(event, rng.beta(4, 2, 4000), rng.beta(2, 4, 4000))
labelled = rng.beta(4, 2, 600)  # positives whose label is known
data = cal.PositiveUnlabeled(labelled, scores, prior=prior)

cal.plot.reliability_diagram(cal.pu.reliability(data), priors=(0.25, 0.35))
