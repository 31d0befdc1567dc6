"""From predictions to an answer a person can read.

Here belong the sections of a report, its findings, text and page. New numbers belong in `estimators` or `inference`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
