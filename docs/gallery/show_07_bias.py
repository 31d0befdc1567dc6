"""
Bias against the number of rows
===============================

How far estimates lie from the true error on average, in a world of known error: the plain ECE needs thousands of
rows, others do not.
"""

import calibrant as cal

world = cal.simulate.World(cal.simulate.UniformScores(), cal.simulate.TemperatureCurve(1.3))
found = cal.simulate.bias_table(
    {"ECE, 15 bins": cal.ece, "debiased": cal.debiased_ece, "sweep": cal.sweep_ece, "averaged": cal.averaged_error},
    {"uniform scores, temperature 1.3": world},
    sizes=[100, 200, 400, 800, 1600, 3200],
    repeats=50,
)
found.plot()
