"""Calibration watched over time: evidence that is valid whenever one looks, from a state that adds up.

Here belong bets, their sums per period, and what they say today. Tests of a fixed sample belong in `inference`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
