"""Figures (needs matplotlib): each draws on the axes it is given, and its data can be had without it.

Here belongs drawing, and nothing is computed: curves and rows of figures come from `inference` and `estimators`.

No setting of matplotlib is changed. The figures of simulations are methods of their results, e.g.
``bias_table(...).plot()``; that of positive-unlabeled data is ``reliability_diagram(pu.reliability(data))``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
