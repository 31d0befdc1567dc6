"""Calibrant inside scikit-learn: a classifier with recalibrated probabilities, a display, and scorers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
