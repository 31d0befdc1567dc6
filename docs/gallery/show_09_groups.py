"""
Groups with intervals
=====================

The calibration error of each country, with p-values adjusted for the number of groups.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(6000)
country = rng.choice(["AT", "BR", "DE", "FR", "IT", "PL"], 6000)
truth = np.where(country == "BR", 0.5 + 0.5 * (p - 0.5), p)  # only Brazil is wrong
y = rng.random(6000) < truth

groups = cal.by_group(cal.calibration_error, cal.Binary(y, p), by=country)
cal.plot.forest(groups)
