"""
Groups in combination
=====================

Every column alone looks right; crossed, each cell is wrong by 15 points.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
n = 8000
p = rng.uniform(0.2, 0.8, n)
country, device = rng.choice(["AT", "DE"], n), rng.choice(["phone", "tablet"], n)
sign = np.where((country == "AT") == (device == "phone"), 1, -1)
y = rng.random(n) < p + 0.15 * sign

found = cal.by_group(cal.calibration_error, cal.Binary(y, p), by={"country": country, "device": device}, depth=2)
ax = cal.plot.forest(found)
found
