"""The estimators of Roelofs, Cain, Shlens, Mozer (2022)."""

from functools import partial

import calibrant as cal

WIDTH = cal.EqualWidth(15)
L2 = {
    "ew_bin": partial(cal.ece, bins=WIDTH, norm=2),
    "em_bin": partial(cal.ece, norm=2),
    "ew_debias": cal.results.Clipped(partial(cal.debiased_ece, bins=WIDTH, norm=2)),
    "em_debias": cal.results.Clipped(partial(cal.debiased_ece, norm=2)),
    "ew_sweep": partial(cal.sweep_ece, bins=cal.EqualWidth, norm=2),
    "em_sweep": partial(cal.sweep_ece, norm=2),
}
