"""
An audit by features
====================

A model that is right on average, but not for young customers who use the app: the audit finds them, and says how far
predictions are off on rows that had no part in the search.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.beta(2, 6, 20_000)
X = {"age": rng.integers(18, 90, 20_000), "device": rng.choice(["app", "phone", "web"], 20_000)}
truth = p + 0.15 * ((X["device"] == "app") & (X["age"] < 30))
cal.audit(cal.Binary(rng.random(20_000) < truth, p), X)
