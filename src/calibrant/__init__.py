"""Can a model's predicted uncertainty be trusted? Measure it, say how sure you are, and repair it.

>>> import calibrant as cal
>>> cal.ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=cal.EqualWidth(2))
<ECE (L1) 0.25, n=4, EqualWidth(n_bins=2, low=0.0, high=1.0)>

Names are loaded when first used, so that importing the package costs little more than importing NumPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
