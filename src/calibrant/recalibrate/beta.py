"""Beta calibration."""

from __future__ import annotations

from itertools import product

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic import logistic_fit
from calibrant.recalibrate.logistic import LogisticMap


class Beta(LogisticMap):
    r"""Beta calibration: the monotone three-parameter map of a ratio of beta densities.

    .. math:: q = \sigma\bigl(a \log p - b \log(1 - p) + c\bigr), \qquad a, b \ge 0

    The identity is a = b = 1, c = 0. The bounds are met exactly: the loss is convex, so its least value under them
    is the least of those on the four faces (none, one or both of a and b zero) that keep the bounds.

    Attributes
    ----------
    coefficients_ : array (a, b, c)

    References
    ----------
    Kull, Silva Filho, Flach (2017), Beta calibration: a well-founded and easily implemented improvement on logistic
    calibration for binary classifiers.

    Examples
    --------
    >>> p, y = [0.1, 0.9, 0.9, 0.1, 0.9, 0.5, 0.5], [0, 1, 0, 0, 1, 0, 1]
    >>> Beta().fit(p, y).predict_proba([0.2, 0.8]).round(3)
    array([[0.907, 0.093],
           [0.345, 0.655]])
    """

    def _fit_log_odds(self, x: Floats, weight: Floats, positive: Floats) -> None:
        design, identity = self._features(x), np.array([1.0, 1.0, 0.0])
        best, least = identity, np.inf
        for with_a, with_b in product([True, False], repeat=2):
            used = np.array([with_a, with_b, True])
            fit = logistic_fit(design[:, used], weight=weight, positive=positive, start=identity[used])
            if (fit.coefficients[:-1] >= 0).all() and fit.loss < least:
                best, least = np.zeros(3), fit.loss
                best[used] = fit.coefficients
            if with_a and with_b and np.isfinite(least):
                break  # the free optimum keeps the bounds
        self.coefficients_ = best

    def _features(self, x: Floats) -> Floats:
        return np.stack([-np.logaddexp(0, -x), np.logaddexp(0, x), np.ones(len(x))], axis=1)
