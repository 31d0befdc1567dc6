"""Maps that are a logistic regression on functions of the log odds: temperature, Platt, quadratic, beta."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats, expit, softmax, softplus
from calibrant.numerics.logistic.binary import RIDGE, logistic_fit, nonnegative_logistic_fit
from calibrant.numerics.logistic.multinomial import inverse_temperature, inverse_temperature_of_cells
from calibrant.numerics.logistic.stacked import LogisticFits, logistic_fits
from calibrant.recalibrate.base import BinaryRecalibrator, Recalibrator
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, beta_log_odds, polynomial
from calibrant.recalibrate.expressions import expit as expit_expression
from calibrant.recalibrate.expressions import softmax as softmax_expressions
from calibrant.recalibrate.inputs import BinomialCells, Scores, pooled_log_odds
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
    uncertain = not cells.scores.logits
    low, high = uncertain & (p <= 0), uncertain & (p >= 1)
    inner, half = x[~(low | high)], np.log(2)
    if len(inner) == 0:
        edge = np.log(2 * cells.total + 1)  # nothing but certainty: any finite number does
        return np.array([-edge, edge])
    lowest = inner.min() - half if bounded or low.any() else -np.inf
    return np.array([lowest, inner.max() + half if bounded or high.any() else np.inf])


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
    curvature come from one pass. T lies in [1e-7, 1e7] and reaches an end of this range where scores are separable or
    useless. Works for any number of classes.

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
            fail(f"temperature_ must be positive, got {self.temperature_!r}", ValueError)

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
    beyond those fitted are treated like the last of these: a parabola must not turn where there were no data.

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


#: Rows are pooled into at most this many groups of neighbouring log odds before the spline is fitted.
#: Test: tests/recalibrate/test_logistic_spline.py::test_rows_are_pooled_into_1024_groups.
_GROUPS = 1024

#: Candidates for the smoothness. The penalty is that of a Gaussian prior on the curvature over the range of the knots.
_SMOOTHNESS = 10.0 ** np.arange(-4.0, 7.0, 0.5)[::-1]


@dataclass(kw_only=True, eq=False, repr=False)
class Spline(LogisticMap):
    r"""Recalibration map, penalised logistic spline: the predicted log odds plus a smooth correction.

    .. math:: \operatorname{logit} q = x + f(x), \qquad x = \operatorname{logit} p, \qquad
              \min_f \; \text{log loss} + \tfrac\lambda2 \int f''(t)^2\,dt

    f is a natural cubic spline with knots at quantiles of x, so that it shrinks towards Platt scaling; the smoothness
    :math:`\lambda` maximises the Laplace approximation of the marginal likelihood,

    .. math:: -\ell(\hat f) - \tfrac\lambda2 \int (\hat f'')^2 + \tfrac r2 \log \lambda - \tfrac12 \log|H + \lambda K|

    with r the rank of the penalty K and H the curvature of the loss. Rows are first pooled into at most 1024 groups
    of neighbouring scores. Scores beyond those fitted count as the last of them.

    Parameters
    ----------
    knots : int
        Number of knots, where there are enough distinct scores.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    knots_ : array
        Where the knots are, in log odds.
    coefficients_ : array
        The correction f at the knots.
    smoothness_ : float
        The chosen :math:`\lambda`, for x scaled so that the knots span [0, 1].

    References
    ----------
    Lucena (2018), Spline-Based Probability Calibration. Wood (2011), Fast stable restricted maximum likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-x * (x > 0)))  # the negative log odds say nothing
    >>> spline = Spline(input="logits").fit(x, y)
    >>> spline.predict_proba([-1.5, 1.5])[:, 1].round(2)
    array([0.49, 0.81])
    """

    _bounded = True

    knots: int = 12

    def _fit_log_odds(self, x: Floats, weight: Floats, positive: Floats) -> None:
        x, weight, positive = pooled_log_odds(x, weight, positive, groups=_GROUPS)
        self.knots_ = _knots(x, weight, self.knots)
        directions = _directions(self.knots_)
        design = self._features(x) @ directions
        bends = np.arange(len(self.knots_)) >= 2
        penalties = np.outer(_SMOOTHNESS, bends)
        ridge, rows = RIDGE * (weight @ design**2), (positive[None], (weight - positive)[None])
        fits = logistic_fits(design, x, *rows, ridge + penalties, tolerance=1e-9)
        best = int(_evidence(fits, _SMOOTHNESS, bends).argmax())
        penalty, start = np.diag(penalties[best]), np.zeros(len(bends))
        fit = logistic_fit(design, weight=weight, positive=positive, start=start, offset=x, penalty=penalty)
        self.smoothness_, self.coefficients_ = float(_SMOOTHNESS[best]), directions @ fit.coefficients

    def _recalibrated(self, x: Floats) -> Floats:
        return x + super()._recalibrated(x)

    def _features(self, x: Floats) -> Floats:
        return natural_spline_basis(x, self.knots_)

    def _recalibrated_expression(self, scores: ScoreExpressions, x: Expression) -> Expression:
        powers = cubic_pieces(self.knots_, self.coefficients_)
        origins = self.knots_[np.maximum(np.arange(len(powers)) - 1, 0)]
        pieces = [polynomial(x - float(origin), row) for origin, row in zip(origins, powers, strict=True)]
        return x + scores.steps("log_odds", self.knots_, pieces)


def natural_spline_basis(x: Floats, knots: Floats) -> Floats:
    """The matrix that takes values at the knots to those of their natural cubic spline at x (linear beyond)."""
    size = len(knots)
    if size == 1:
        return np.ones((len(x), 1))
    inside = np.clip(x, knots[0], knots[-1])
    cell = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, size - 2)
    width = np.diff(knots)[cell]
    after, before = (inside - knots[cell]) / width, (knots[cell + 1] - inside) / width
    rows = np.arange(len(x))
    basis = np.zeros((len(x), size))
    basis[rows, cell], basis[rows, cell + 1] = before, after
    bend = np.zeros((len(x), size))
    bend[rows, cell] = -(width**2) / 6 * after * before * (1 + before)
    bend[rows, cell + 1] = -(width**2) / 6 * after * before * (1 + after)
    second = _second_derivatives(knots)
    basis += bend @ second
    return basis + np.outer(x - inside, np.ones(size)) * np.where((x < knots[0])[:, None], *_end_slopes(knots, second))


def cubic_pieces(knots: Floats, values: Floats) -> list[list[float]]:
    """Coefficients, the constant first, of the natural cubic spline with these values at the knots.

    A list before the first knot, one between each two, and one after the last, each around the knot below (the first).
    """
    if len(knots) == 1:
        return [[float(values[0])]] * 2
    second, width = _second_derivatives(knots) @ values, np.diff(knots)
    first, last = (float(row @ values) for row in _end_slopes(knots, _second_derivatives(knots)))
    slope = np.diff(values) / width - width * (2 * second[:-1] + second[1:]) / 6
    inner = np.stack([values[:-1], slope, second[:-1] / 2, np.diff(second) / width / 6], axis=1)
    return [[float(values[0]), first], *inner.tolist(), [float(values[-1]), last]]


def _second_derivatives(knots: Floats) -> Floats:
    """The matrix that takes values at the knots to second derivatives there (zero at both ends)."""
    size, h = len(knots), np.diff(knots)
    second = np.zeros((size, size))
    if size > 2:
        second[1:-1] = np.linalg.solve(_gram(h), _differences(h).T)
    return second


def _end_slopes(knots: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The matrices (one row each) that take values at the knots to the slopes at the first and the last."""
    h, unit = np.diff(knots), np.eye(len(knots))
    first = (unit[1] - unit[0]) / h[0] - h[0] / 6 * second[1]
    last = (unit[-1] - unit[-2]) / h[-1] + h[-1] / 6 * second[-2]
    return first, last


def _differences(h: Floats) -> Floats:
    """Q of Green and Silverman: second differences over uneven spacing, (knots, knots - 2)."""
    size = len(h) + 1
    q = np.zeros((size, size - 2))
    inner = np.arange(size - 2)
    q[inner, inner] = 1 / h[:-1]
    q[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    q[inner + 2, inner] = 1 / h[1:]
    return q


def _gram(h: Floats) -> Floats:
    """R of Green and Silverman: products of the hat functions that second derivatives are made of."""
    r = np.diag((h[:-1] + h[1:]) / 3)
    inner = np.arange(len(h) - 2)
    r[inner, inner + 1] = r[inner + 1, inner] = h[1:-1] / 6
    return r


def _directions(knots: Floats) -> Floats:
    """Coordinates for values at the knots: level, slope, and bends whose integral of f''^2 is the sum of squares.

    The integral is over the knots scaled to span [0, 1]. In these coordinates the penalty is a multiple of one.
    """
    size = len(knots)
    if size == 1:
        return np.ones((1, 1))
    place = (knots - knots[0]) / (knots[-1] - knots[0])
    straight = np.stack([np.ones(size), 2 * place - 1], axis=1)
    if size == 2:
        return straight
    h = np.diff(place)
    q = _differences(h)
    roughness = q @ np.linalg.solve(_gram(h), q.T)
    values, vectors = np.linalg.eigh((roughness + roughness.T) / 2)
    return np.concatenate([straight, vectors[:, 2:] / np.sqrt(values[2:])], axis=1)


def _evidence(fits: LogisticFits, smoothness: Floats, bends: NDArray[np.bool_]) -> Floats:
    """Laplace's approximation of the logarithm of the marginal likelihood of each fit, up to a constant."""
    eta, positive = fits.eta[0], fits.positive[0]
    likelihood = eta @ positive - softplus(eta) @ (positive + fits.negative[0])
    penalty = smoothness / 2 * (fits.coefficients[0][:, bends] ** 2).sum(axis=1)
    half_volume = np.log(np.diagonal(fits.factor[0], axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(likelihood - penalty + bends.sum() / 2 * np.log(smoothness) - half_volume)


def _knots(x: Floats, weight: Floats, number: int) -> Floats:
    """Quantiles of the rising x, ends included, that are not too close to part."""
    running = np.cumsum(weight) - weight / 2
    at = np.interp(np.linspace(0, 1, number) * running[-1], running, x)
    at[0], at[-1] = x[0], x[-1]
    span = x[-1] - x[0]
    kept = [at[0]]
    for place in at[1:]:
        if place - kept[-1] > 1e-3 * span:
            kept.append(place)
    return np.array(kept)
