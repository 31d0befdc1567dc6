"""Calibration when only positives and unlabeled rows exist: guarantees, intervals, class priors, maps.

Here belongs what only such data need: bounds, priors, maps, and methods of intervals. The estimators
have their usual names and take `calibrant.PositiveUnlabeled`; worlds of known error are in `simulate`.

>>> import calibrant as cal
>>> round(cal.pu.bias_bound(prior=0.5, n_positive=1000, n_unlabeled=10_000, bins=cal.pu.PaperBins()), 4)
0.2186
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
