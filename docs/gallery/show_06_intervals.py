"""
Intervals that cover
====================

Forty samples of 500 rows from a world whose error is known: the 95 % interval of each. About two may miss.
"""

import matplotlib.pyplot as plt

import calibrant as cal

world = cal.simulate.World(cal.simulate.UniformScores(), cal.simulate.TemperatureCurve(1.5))
truth = world.true_error(1)

fig, ax = plt.subplots()
for seed in range(40):
    found = cal.interval(cal.ece, world.sample(500, seed=seed)).interval
    covers = found.low <= truth <= found.high
    ax.plot([found.low, found.high], [seed, seed], color="tab:blue" if covers else "tab:red")
ax.axvline(truth, color="black", linestyle="--")
ax.set(xlabel="true L1 error (dashed) and 95 % intervals", ylabel="sample")
