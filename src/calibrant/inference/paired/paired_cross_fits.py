"""Which of two models of several classes has the larger calibration error? From cross-fitted contributions in pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.cross_fitting import CrossFitted, multiclass_rows, recalibrated
from calibrant.estimators.variational_norms import Norm, checked
from calibrant.inference.paired.paired_gaps import Difference
from calibrant.numerics.weights import mean_and_error

#: Standard errors are multiplied by this, since folds share training rows; see `CrossFittedBound`.
INFLATION = 1.5


@dataclass(frozen=True)
class PairedCrossFits:
    r"""The difference of two calibration errors of whole vectors, row by row, in any norm.

    Each model gets its cross-fitted map with the same folds, and each row the contribution of `calibration_error`
    under both models, c_a and c_b. With d = c_a - c_b,

    .. math:: \bar d \pm z\, 1.5\, \frac{\mathrm{sd}(d)}{\sqrt n}.

    Noise that both models share cancels. The factor 1.5 allows for folds that share training rows (it is the measured
    one of `CrossFittedBound`). Both errors are found in part only, the more the better the map; a model whose error is
    hard to find looks better than it is.

    Parameters
    ----------
    folds : int
    seed : int
        Decides the folds.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> sharper = cal.Multiclass(y, p**3 / (p**3).sum(axis=1, keepdims=True))
    >>> found = cal.compare(cal.calibration_error, sharper, cal.Multiclass(y, p))
    >>> found.difference > 0.2, found.p_value < 0.001
    (True, True)
    """

    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        validation.seed(self.seed)
        validation.whole("folds", self.folds, minimum=2)

    def difference(self, a: Multiclass, b: Multiclass, *, norm: Norm, level: float) -> Difference:
        """The error of `a` less that of `b`."""
        from scipy.special import ndtr, ndtri

        norm = checked(norm)
        rows = [self._fitted(data) for data in (a, b)]
        first, second = (one.contributions(norm) for one in rows)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            message = (
                "An outcome of predicted probability 0 was observed, so that a log score is infinite: no difference."
            )
            raise InvalidPredictions(message)
        value, error = mean_and_error(first - second, rows[0].weight, rows[0].cluster)
        reach = float(ndtri((1 + level) / 2)) * INFLATION * error
        p_value = float(2 * ndtr(-abs(value) / (INFLATION * error))) if error > 0 else 1.0
        return Difference(value, value - reach, value + reach, p_value)

    def _fitted(self, data: Multiclass) -> CrossFitted:
        return recalibrated(multiclass_rows(data, [1.0] * self.folds, [self.seed, 0]), None)
