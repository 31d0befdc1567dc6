"""Maps that are a logistic regression on functions of the log odds: temperature, Platt, quadratic, beta."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.logistic.binary import logistic_fit, nonnegative_logistic_fit
from calibrant.numerics.logistic.multinomial import inverse_temperature, inverse_temperature_of_cells
from calibrant.numerics.special import expit, softmax
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, beta_log_odds, polynomial
from calibrant.recalibrate.expressions import expit as expit_expression
from calibrant.recalibrate.expressions import softmax as softmax_expressions
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.table.bintable import BinTable


class LogisticMap(BinaryRecalibrator):
    """Base of the maps whose log odds are linear in some features of the predicted log odds.

    A prediction of 0 or 1 has no finite log odds. It counts as half as far from certainty as the nearest other score: 0
    among votes of 100 trees is not the 1e-38 it would be among those of a neural network.
    """

    #: Whether later scores beyond those fitted count as the last of them (for maps that may turn there).
    _bounded: ClassVar[bool] = False
    _may_be_infinite = frozenset({"limits_"})
    limits_: Floats
    coefficients_: Floats

    def _fit_cells(self, cells: BinomialCells) -> None:
        self.limits_ = _limits(cells, bounded=self._bounded)
        self._fit_log_odds(np.clip(cells.log_odds, *self.limits_), cells.weight, cells.positive)

    def _map(self, scores: Scores) -> Floats:
        return expit(self._recalibrated(np.clip(scores.log_odds, *self.limits_)))

    def _predict(self, scores: Scores) -> Floats:
        return two_columns(self._recalibrated(np.clip(scores.log_odds, *self.limits_)))

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        return self._expressions(scores)[1]

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        x = scores.log_odds_within(*self.limits_)
        ends = np.clip(np.linspace(-1, 1, 101) * scores.largest_log_odds, *self.limits_)
        largest = float(np.abs(self._recalibrated(ends)).max())
        return two_expressions(self._recalibrated_expression(scores, x), largest=largest)

    @abstractmethod
    def _fit_log_odds(self, x: Floats, weight: Floats, positive: Floats) -> None:
        """Set the coefficients."""

    def _recalibrated(self, x: Floats) -> Floats:
        """Recalibrated log odds."""
        return self._features(x) @ self.coefficients_

    @abstractmethod
    def _features(self, x: Floats) -> Floats:
        """The features of log odds, of shape (n, number of coefficients)."""

    @abstractmethod
    def _recalibrated_expression(self, scores: ScoreExpressions, x: Expression) -> Expression:
        """Recalibrated log odds, from the expression `x` of the clipped log odds of these scores."""


def _limits(cells: BinomialCells, *, bounded: bool) -> Floats:
    """Lowest and highest log odds; those beyond are clipped."""
    x, p = cells.log_odds, cells.probability
    low, high = (
        (np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)) if cells.scores.logits else (p <= 0, p >= 1)
    )
    inner = x[~(low | high)]
    if len(inner) == 0:
        edge = np.log(2 * cells.total + 1)  # nothing but certainty: any finite number does
        return np.array([-edge, edge])
    half = np.log(2)
    return np.array(
        [
            inner.min() - half if bounded or low.any() else -np.inf,
            inner.max() + half if bounded or high.any() else np.inf,
        ]
    )


def two_columns(log_odds: Floats) -> Floats:
    """Probabilities of both classes, each accurate however close to 0."""
    return expit(np.stack([-log_odds, log_odds], axis=1))


def two_expressions(log_odds: Expression, *, largest: float) -> list[Expression]:
    """The same as expressions, of log odds whose size is at most about `largest`."""
    return [expit_expression(x, largest=largest) for x in (-log_odds, log_odds)]


class Temperature(Recalibrator):
    r"""Recalibration map, temperature scaling: all logits divided by one number.

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
        """Fit the map to a binary table: its cells count as rows at their mean score. Classes are 0 and 1."""
        self._fit_cells(self._cells_of(table))
        return self

    def _check_restored(self) -> None:
        super()._check_restored()
        if not self.temperature_ > 0:
            message = f"temperature_ must be positive, got {self.temperature_!r}"
            raise ValueError(message)

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if scores.classes == 2:
            self._fit_cells(BinomialCells.of_rows(scores, codes, weight))
        else:
            self.temperature_ = 1 / inverse_temperature(scores.log_probabilities, codes, weight)

    def _fit_cells(self, cells: BinomialCells) -> None:
        self.temperature_ = 1 / inverse_temperature_of_cells(cells.log_odds, cells.weight, cells.positive)

    def _predict(self, scores: Scores) -> Floats:
        if scores.classes == 2:
            return two_columns(scores.log_odds / self.temperature_)
        return softmax(scores.log_probabilities / self.temperature_)

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        if scores.classes == 2:
            largest = scores.largest_log_odds / self.temperature_
            return two_expressions(scores.log_odds / self.temperature_, largest=largest)
        return softmax_expressions([log / self.temperature_ for log in scores.log_probabilities])


class _Polynomial(LogisticMap):
    """Logistic regression on powers of the log odds."""

    _powers: tuple[int, ...]

    def _fit_log_odds(self, x: Floats, weight: Floats, positive: Floats) -> None:
        start = np.array([float(power == 1) for power in self._powers])
        fit = logistic_fit(self._features(x), weight=weight, positive=positive, start=start)
        self.coefficients_ = fit.coefficients

    def _features(self, x: Floats) -> Floats:
        return np.stack([x**power for power in self._powers], axis=1)

    def _recalibrated_expression(self, scores: ScoreExpressions, x: Expression) -> Expression:
        return polynomial(x, self.coefficients_)  # the powers are 0, 1, ...


class Platt(_Polynomial):
    r"""Recalibration map, Platt scaling: an affine function of the log odds.

    .. math:: q = \sigma(a + b \operatorname{logit} p)

    Fitted by maximum likelihood on log odds. (scikit-learn's ``method="sigmoid"`` replaces the outcomes by Platt's
    smoothed targets, and fits to probabilities if a classifier has no decision function.)

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
    r"""Recalibration map, quadratic scaling: a second-degree polynomial of the log odds.

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


def beta_features(x: Floats) -> Floats:
    """Log p, -log(1 - p) and 1, at the log odds x of p."""
    return np.stack([-np.logaddexp(0, -x), np.logaddexp(0, x), np.ones(len(x))], axis=1)


class Beta(LogisticMap):
    r"""Recalibration map, beta calibration: the monotone three-parameter map of a ratio of beta densities.

    .. math:: q = \sigma\bigl(a \log p - b \log(1 - p) + c\bigr), \qquad a, b \ge 0

    The identity is a = b = 1, c = 0. The bounds are met exactly: the loss is convex, so its minimum under them
    is the smallest of those on the four faces (none, one or both of a and b zero) that keep the bounds.

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
        self.coefficients_ = nonnegative_logistic_fit(
            self._features(x), weight=weight, positive=positive, start=np.array([1.0, 1.0, 0.0])
        )

    def _features(self, x: Floats) -> Floats:
        return beta_features(x)

    def _recalibrated_expression(self, scores: ScoreExpressions, x: Expression) -> Expression:
        return beta_log_odds(x, *self.coefficients_.tolist())
