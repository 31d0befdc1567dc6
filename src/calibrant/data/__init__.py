"""Validated input: one class of predictions per task, checked once.

Here belong checks, columns and choices of rows. Bins and estimates do not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
