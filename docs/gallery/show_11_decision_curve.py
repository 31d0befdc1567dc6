"""
Decision curve
==============

The net benefit of acting on the predictions, for every threshold, against acting always and never.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
risk = rng.beta(1, 6, 3000)
y = rng.random(3000) < risk
cal.plot.decision_diagram(cal.net_benefit(cal.Binary(y, risk)))
