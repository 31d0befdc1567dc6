"""The one sufficient statistic: where to cut, sums per bin or cell, and their files.

Here belongs whatever turns rows into tables and tables into bins. Engines and estimates do not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
