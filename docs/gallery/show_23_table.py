"""
A table in place of the rows
============================

A fine table of 200,000 rows gives the same curve as the rows themselves, and tables of parts add up.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.beta(0.6, 3, 200_000)
y = rng.random(200_000) < p**1.2

tables = [
    cal.BinTable.of(cal.Binary(y[part], p[part]), cal.table.HybridGrid())
    for part in np.array_split(np.arange(200_000), 4)
]
whole = cal.table.merge(tables)
cal.plot.reliability_diagram(cal.reliability_curve(whole))
