"""Bias by construction: worlds of known error, and what every estimator makes of them at your sample size.

Here belong worlds, samples from them, and the bias and power measured in them. Estimators are in `estimators`.

>>> from calibrant import simulate
>>> world = simulate.World(simulate.UniformScores(), simulate.PowerCurve(2))
>>> round(world.true_error(norm=2), 5)
0.18257
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
