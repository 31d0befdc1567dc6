"""Inductive Venn-Abers prediction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.base import BinaryRecalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.sql_scores import SqlScores


class VennAbers(BinaryRecalibrator):
    r"""Inductive Venn-Abers: two isotonic regressions per prediction, with it counted as a 0 and as a 1.

    .. math:: q = \frac{p_1}{1 - p_0 + p_1}

    where :math:`p_y` is the isotonic fit at p after the row (p, y) has been added. One of :math:`p_0, p_1` is
    perfectly calibrated, whatever the distribution; their distance says how sure that is. All such fits together
    cost one sort and one pass, and q is never 0 or 1.

    Attributes
    ----------
    knots_, lower_, upper_ : array
        Scores, and p0 and p1 there.

    References
    ----------
    Vovk, Petej, Fedorova (2015), Large-scale probabilistic predictors with and without guarantees of validity.

    Examples
    --------
    >>> venn = VennAbers().fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> venn.interval([0.2]).round(3)
    array([[0. , 0.5]])
    >>> venn.predict_proba([0.2])[:, 1].round(3)
    array([0.333])
    """

    _distinct = True
    knots_: Floats
    lower_: Floats
    upper_: Floats

    def interval(self, scores: ArrayLike) -> Floats:
        """The two probabilities of each row, as columns p0 <= p1."""
        check_is_fitted(self)
        return np.stack(self._bounds(self._validate_scores(scores, fitted=True)), axis=1)

    def _fit_cells(self, cells: BinomialCells) -> None:
        upper = _with_a_one(cells.weight, cells.positive)
        lower = 1 - _with_a_one(cells.weight[::-1], (cells.weight - cells.positive)[::-1])[::-1]
        same = (np.diff(upper) == 0) & (np.diff(lower) == 0)
        inner = np.concatenate([[False], same]) & np.concatenate([same, [False]])
        knots = cells.probability.astype(np.float64)
        self.knots_, self.lower_, self.upper_ = knots[~inner], lower[~inner], upper[~inner]

    def _bounds(self, scores: Scores) -> tuple[Floats, Floats]:
        """A score between two that were seen takes p0 from the one below and p1 from the one above."""
        p = scores.probability
        below = np.searchsorted(self.knots_, p, side="right")
        above = np.searchsorted(self.knots_, p, side="left")
        return np.append(0.0, self.lower_)[below], np.append(self.upper_, 1.0)[above]

    def _map(self, scores: Scores) -> Floats:
        return _merged(*self._bounds(scores))

    def _map_sql(self, scores: SqlScores) -> str:
        lower, upper = np.repeat(np.append(0.0, self.lower_), 2)[1:], np.repeat(np.append(self.upper_, 1.0), 2)[:-1]
        values = [scores.dialect.number(value) for value in _merged(lower, upper)]
        return scores.steps_at_knots("probability", self.knots_, values)


def _merged(lower: Floats, upper: Floats) -> Floats:
    """One probability for both."""
    return upper / (1 - lower + upper)


def _with_a_one(weight: Floats, positive: Floats) -> Floats:
    """Isotonic fit at each cell after a row of outcome 1 and weight 1 has joined it.

    Algorithms 1 and 2 of the reference. The fit is the slope of the lower convex hull of the cumulative sums, and a
    row with outcome 1 at cell i shifts all sums before it by (-1, -1). Moving that shifted start from cell to cell
    changes the hull only at its beginning, so the whole costs as much as two hulls.
    """
    x = [-1.0, 0.0, *np.cumsum(weight).tolist()]
    y = [-1.0, 0.0, *np.cumsum(positive).tolist()]
    hull: list[tuple[float, float]] = []
    for point in zip(reversed(x), reversed(y), strict=True):  # from the right, so that the beginning is on top
        while len(hull) > 1 and _turns_down(point, hull[-1], hull[-2]):
            hull.pop()
        hull.append(point)
    values = np.empty(len(weight))
    left = hull[-1]
    for i in range(len(weight)):
        top, following = hull[-1], hull[-2]
        values[i] = (following[1] - top[1]) / (following[0] - top[0])
        left = (left[0] + x[i + 2] - x[i + 1], left[1] + y[i + 2] - y[i + 1])
        if _turns_down(top, left, following):
            continue  # the new start lies above the hull, or on it
        hull.pop()
        while len(hull) > 1 and _turns_down(left, hull[-1], hull[-2]):
            hull.pop()
        hull.append(left)
    return values


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies above the line from a to c, or on it."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
