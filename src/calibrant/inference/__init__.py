"""How sure is a result? Intervals that cover, tests that keep their level, comparisons, bands and groups.

Here belongs what says how sure a result is. Estimates themselves are in `estimators`, figures in `plot`.

>>> import calibrant as cal
>>> from calibrant import inference
>>> inference.interval(cal.ece, cal.Binary([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.8] * 50)).interval.method
"Inversion(draws=299, seed=0, side='two-sided')"
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
