"""One function per estimator, one file per family.

Here belong estimators of one number or curve from predictions or tables. Their uncertainty is in `inference`; the
common ones are names of `calibrant` as well.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
