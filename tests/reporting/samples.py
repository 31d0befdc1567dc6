"""Predictions that the tests of reports share."""

import numpy as np

import calibrant as cal

_rng = np.random.default_rng(0)
P = _rng.random(3000)
OVER = cal.Binary(_rng.random(3000) < 0.5 + 0.6 * (P - 0.5), P)
CALIBRATED = cal.Binary(_rng.random(3000) < P, P)
GROUPS = np.where(_rng.random(3000) < 0.3, "<script>alert(1)</script>", 'a "quoted" | group')
SIGMA = np.exp(0.5 * _rng.standard_normal(1500))
SPREAD = cal.Gaussian(1.4 * SIGMA * _rng.standard_normal(1500), np.zeros(1500), SIGMA)
