"""Maps that repair probabilities: scikit-learn estimators fitted to scores and outcomes, saved as JSON.

Here belong maps, one family per file, and the choice among them. Their mathematics is in `numerics`; those for
positive-unlabeled data are in `pu`.

>>> import calibrant as cal
>>> fixed = cal.recalibrate.Platt().fit([0.1, 0.9, 0.9, 0.1, 0.9], [0, 1, 0, 0, 1])
>>> fixed.predict_proba([0.9]).round(3)
array([[0.333, 0.667]])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
