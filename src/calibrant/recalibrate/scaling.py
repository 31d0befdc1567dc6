"""Maps that are polynomials of the log odds: temperature, Platt (affine), quadratic."""

from __future__ import annotations

from typing import Self

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.logistic import logistic_fit
from calibrant.numerics.special import softmax
from calibrant.numerics.temperature import inverse_temperature, inverse_temperature_of_cells
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import Cells, Scores
from calibrant.recalibrate.logistic import LogisticMap, two_columns
from calibrant.table.bintable import BinTable


class Temperature(Recalibrator):
    r"""Temperature scaling: all logits divided by one number.

    .. math:: q = \mathrm{softmax}(\log p / T)

    T minimises the log loss and is found to machine precision: the loss is convex in 1 / T, and value, slope and
    curvature come from one pass. T lies in [1e-7, 1e7], the ends of which it takes for separable or useless
    scores. Works for any number of classes.

    Attributes
    ----------
    temperature_ : float

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On Calibration of Modern Neural Networks.

    Examples
    --------
    >>> overconfident = Temperature().fit([0.1, 0.9, 0.9, 0.1, 0.9], [0, 1, 0, 0, 1])
    >>> round(overconfident.temperature_, 4)
    1.585
    """

    temperature_: float

    def fit_table(self, table: BinTable) -> Self:
        """Fit the map to a table of one event: its cells count as rows at their mean score. Classes are 0 and 1."""
        cells = Cells.of_table(table)
        self.classes_, self.n_features_in_, self.weight_ = np.array([0, 1]), 1, cells.total
        self._fit_cells(cells)
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if scores.classes == 2:
            self._fit_cells(Cells.of_rows(scores, codes, weight))
        else:
            self.temperature_ = 1 / inverse_temperature(scores.log_probabilities, codes, weight)

    def _fit_cells(self, cells: Cells) -> None:
        self.temperature_ = 1 / inverse_temperature_of_cells(cells.log_odds, cells.weight, cells.positive)

    def _predict(self, scores: Scores) -> Floats:
        if scores.classes == 2:
            return two_columns(scores.log_odds / self.temperature_)
        return softmax(scores.log_probabilities / self.temperature_)


class _Polynomial(LogisticMap):
    """Logistic regression on powers of the log odds."""

    _powers: tuple[int, ...]

    def _fit_log_odds(self, x: Floats, weight: Floats, positive: Floats) -> None:
        start = np.array([float(power == 1) for power in self._powers])
        fit = logistic_fit(self._features(x), weight=weight, positive=positive, start=start)
        self.coefficients_ = fit.coefficients

    def _features(self, x: Floats) -> Floats:
        return np.stack([x**power for power in self._powers], axis=1)


class Platt(_Polynomial):
    r"""Platt scaling: an affine function of the log odds.

    .. math:: q = \sigma(a + b \operatorname{logit} p)

    Fitted by maximum likelihood, on log odds, as Platt meant it (not on probabilities).

    Attributes
    ----------
    coefficients_ : array (a, b)

    References
    ----------
    Platt (1999), Probabilistic Outputs for Support Vector Machines.

    Examples
    --------
    >>> Platt().fit([0.1, 0.9, 0.9, 0.1, 0.9], [0, 1, 0, 0, 1]).predict_proba([0.9]).round(3)
    array([[0.333, 0.667]])
    """

    _powers = (0, 1)


class Quadratic(_Polynomial):
    r"""Quadratic scaling: a second-degree polynomial of the log odds.

    .. math:: q = \sigma\bigl(a + b \operatorname{logit} p + c (\operatorname{logit} p)^2\bigr)

    Among the best binary maps of public benchmarks. It need not be monotone, so scores more than a factor 2 in odds
    beyond those fitted count as the last of them: a parabola must not turn where nothing was seen.

    Attributes
    ----------
    coefficients_ : array (a, b, c)

    References
    ----------
    Berta, Bach, Jordan (2025), Structured Matrix Scaling for Multi-Class Calibration.

    Examples
    --------
    >>> Quadratic().fit([0.1, 0.9, 0.9, 0.1, 0.9, 0.5, 0.5], [0, 1, 0, 0, 1, 0, 1]).predict_proba([0.5]).round(3)
    array([[0.5, 0.5]])
    """

    _powers = (0, 1, 2)
    _bounded = True
