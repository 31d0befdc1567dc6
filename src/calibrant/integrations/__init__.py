"""Calibrant inside other tools. Each module imports its tool only when it is used.

Here belong adapters to scikit-learn, MLflow, torchmetrics and test suites. What works without the other tool does not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
