"""A smooth correction of the log odds, whose smoothness is estimated from the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic.binary import RIDGE, logistic_fit
from calibrant.numerics.logistic.stacked import LogisticFits, logistic_fits
from calibrant.numerics.special import softplus
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, polynomial
from calibrant.recalibrate.inputs import pooled_log_odds
from calibrant.recalibrate.logistic import LogisticMap

#: Rows are pooled into at most this many groups of neighbouring log odds before the spline is fitted.
#: Test: tests/recalibrate/test_spline.py::test_rows_are_pooled_into_1024_groups.
_GROUPS = 1024

#: Candidates for the smoothness. The penalty is that of a Gaussian prior on the curvature over the range of the knots.
_SMOOTHNESS = 10.0 ** np.arange(-4.0, 7.0, 0.5)[::-1]


@dataclass(kw_only=True, eq=False, repr=False)
class Spline(LogisticMap):
    r"""Recalibration map, penalised logistic spline: the predicted log odds plus a smooth correction.

    .. math:: \operatorname{logit} q = x + f(x), \qquad x = \operatorname{logit} p, \qquad
              \min_f \; \text{log loss} + \tfrac\lambda2 \int f''(t)^2\,dt

    f is a natural cubic spline with knots at quantiles of x, so that Platt scaling is what it shrinks to; the
    smoothness :math:`\lambda` maximises the Laplace approximation of the marginal likelihood,

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
