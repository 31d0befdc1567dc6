"""The estimators of Roelofs, Cain, Shlens, Mozer (2022)."""

from reproduce.bias_grid import ESTIMATORS

L2 = {name: estimator for name, estimator in ESTIMATORS.items() if name != "kde"}
