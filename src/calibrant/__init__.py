"""Can a model's predicted uncertainty be trusted? Measure it, say how sure you are, and repair it.

Ten names to begin with:

- `Binary`, `Multiclass`, `Gaussian`: predictions and outcomes, checked once.
- `calibration_error`: the number to report, for every task. `ece`: the number of most papers.
- `interval`, `calibration_test`, `compare`: how sure is it, could it be chance, which model is better calibrated?
- `report`: all of this in words and figures. `recalibrate.Auto`: the repair.

>>> import calibrant as cal
>>> y, p = [0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.8] * 50
>>> cal.calibration_error(y, p)
<Calibration error (L1) 0.2..., n=200, averaged smooth curves>
>>> low, high = cal.interval(cal.calibration_error, y, p).interval

Names are loaded when first used, so that importing the package costs little more than importing NumPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
