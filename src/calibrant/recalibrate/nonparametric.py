"""Maps without a parametric form: isotonic regression, Venn-Abers prediction, and bins.

Isotonic maps are plain or centred (strictly rising); maps that are constant per bin are histogram binning,
scaling-binning, and Bayesian binning into quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.equal_mass import RunningWeight
from calibrant.numerics.rows import Rows
from calibrant.numerics.smoothers import isotonic_blocks, pool_adjacent_violators
from calibrant.numerics.sorting import sorted_rows
from calibrant.recalibrate.base import BinaryMap, BinaryRecalibrator
from calibrant.recalibrate.expressions import Expression, ScoreExpressions
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.logistic import Platt
from calibrant.table.binning import Cut, EqualMass, as_binning


class LineMap(BinaryMap):
    """Base of the maps that are linear between knots and constant beyond."""

    knots_: Floats
    values_: Floats

    def _map(self, scores: Scores) -> Floats:
        return np.interp(scores.probability, self.knots_, self.values_)

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        return scores.interpolated(self.knots_, self.values_)


def block_ends(p: NDArray[Any], starts: NDArray[np.intp], rate: Floats) -> tuple[Floats, Floats]:
    """Both ends of each block of rising scores, and its rate; a block of one score is one knot."""
    ends = np.append(starts[1:], len(p)) - 1
    knots = np.stack([p[starts], p[ends]], axis=1).astype(np.float64).ravel()
    once = np.stack([np.ones(len(starts), dtype=bool), p[ends] > p[starts]], axis=1).ravel()
    return knots[once], np.repeat(rate, 2)[once]


@dataclass(kw_only=True, eq=False, repr=False)
class Isotonic(LineMap, BinaryRecalibrator):
    r"""Recalibration map, isotonic regression: the increasing function of p of lowest squared error (and log loss).

    Pool adjacent violators on the distinct scores, each with its weight; linear between the scores that were seen,
    constant beyond them. Where no scores are tied the fit is that of scikit-learn.

    Parameters
    ----------
    allow_certainty : bool
        Give blocks of only one outcome the probability 0 or 1. Otherwise a first block of weight w without
        positives gets 1 / (w + 2), Laplace's rule, or half the value of the next block where that is less; a last
        block likewise.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    knots_ : array
        Probabilities at which the map has a corner.
    values_ : array
        The recalibrated probabilities there.

    References
    ----------
    Zadrozny, Elkan (2002), Transforming Classifier Scores into Accurate Multiclass Probability Estimates.

    Examples
    --------
    >>> isotonic = Isotonic().fit([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 1])
    >>> isotonic.knots_, isotonic.values_
    (array([0.1, 0.2, 0.3, 0.4, 0.5]), array([0.25, 0.5 , 0.5 , 0.75, 0.75]))
    """

    _distinct = True

    allow_certainty: bool = False

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        if weight is not None:
            super()._fit(scores, codes, weight)
            return
        p = scores.probability
        rows = sorted_rows(Rows(p, p, codes.astype(np.int8)))
        self._fit_blocks(rows.rows.key, None, *isotonic_blocks(rows))

    def _fit_cells(self, cells: BinomialCells) -> None:
        blocks = pool_adjacent_violators(cells.weight, cells.positive)
        self._fit_blocks(cells.probability, cells.weight, *blocks)

    def _fit_blocks(
        self, p: NDArray[Any], mass: Floats | None, starts: NDArray[np.intp], weight: Floats, positive: Floats
    ) -> None:
        """Knots from rising scores of some mass (one each, if None) and the blocks they fall into."""
        keep = np.flatnonzero(np.concatenate([[True], np.diff(positive / weight) > 0]))  # equal means: one block
        starts, weight, positive = starts[keep], np.add.reduceat(weight, keep), np.add.reduceat(positive, keep)
        rate = block_rates(weight, positive, allow_certainty=self.allow_certainty)
        self.knots_, self.values_ = self._corners(p, mass, starts, rate)

    def _corners(
        self, p: NDArray[Any], mass: Floats | None, starts: NDArray[np.intp], rate: Floats
    ) -> tuple[Floats, Floats]:
        """Both ends of each block."""
        return block_ends(p, starts, rate)


class CentredIsotonic(Isotonic):
    r"""Centred isotonic regression: isotonic, but strictly increasing, so that distinct scores stay distinct.

    Each block of isotonic regression becomes one point, at the mean of its scores and of its outcomes, and the map
    is linear between the points. From the first point it falls to half its value at p = 0, from the last it rises
    half the way to 1 at p = 1.

    Parameters
    ----------
    allow_certainty : bool
        As for `Isotonic`.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    References
    ----------
    Oron, Flournoy (2017), Centered Isotonic Regression: Point and Interval Estimation for Dose-Response Studies.

    Examples
    --------
    >>> centred = CentredIsotonic().fit([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 1])
    >>> centred.knots_, centred.values_
    (array([0.  , 0.1 , 0.25, 0.45, 1.  ]), array([0.125, 0.25 , 0.5  , 0.75 , 0.875]))
    """

    def _corners(
        self, p: NDArray[Any], mass: Floats | None, starts: NDArray[np.intp], rate: Floats
    ) -> tuple[Floats, Floats]:
        """The centre of each block, and the two ends of [0, 1]."""
        wide = p.astype(np.float64, copy=False)
        mass = np.ones(len(p)) if mass is None else mass
        centre = np.add.reduceat(mass * wide, starts) / np.add.reduceat(mass, starts)
        new = slice(0 if centre[0] > 0 else 1, None if centre[-1] < 1 else -1)
        values = np.concatenate([rate[:1] / 2, rate, (1 + rate[-1:]) / 2])
        return np.concatenate([[0.0], centre, [1.0]])[new], values[new]


def block_rates(weight: Floats, positive: Floats, *, allow_certainty: bool) -> Floats:
    """Share of positives per block, rising; 0 and 1 are moved inside unless they are allowed."""
    rate: Floats = positive / weight
    if allow_certainty:
        return rate
    inside = rate.copy()
    if rate[0] <= 0:
        ahead = rate[1] / 2 if len(rate) > 1 else 1.0
        inside[0] = min(1 / (weight[0] + 2), ahead)
    if rate[-1] >= 1:
        ahead = (1 - rate[-2]) / 2 if len(rate) > 1 else 1.0
        inside[-1] = 1 - min(1 / (weight[-1] + 2), ahead)
    return inside


class VennAbers(BinaryRecalibrator):
    r"""Inductive Venn-Abers: two isotonic regressions per prediction, with it counted as a 0 and as a 1.

    .. math:: q = \frac{p_1}{1 - p_0 + p_1}

    where :math:`p_y` is the isotonic fit at p after the row (p, y) has been added. One of :math:`p_0, p_1` is perfectly
    calibrated, whatever the distribution; the distance between them shows how uncertain that is. All such fits together
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

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        lower, upper = np.repeat(np.append(0.0, self.lower_), 2)[1:], np.repeat(np.append(self.upper_, 1.0), 2)[:-1]
        return scores.steps_at_knots("probability", self.knots_, _merged(lower, upper))


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


class StepMap(BinaryMap):
    """Base of the maps that are constant between edges."""

    edges_: Floats
    values_: Floats

    def _map(self, scores: Scores) -> Floats:
        return self.values_[bin_of(scores.probability, self.edges_)]

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        return scores.steps("probability", self.edges_[1:-1], self.values_)


@dataclass(kw_only=True, eq=False, repr=False)
class Histogram(StepMap, BinaryRecalibrator):
    r"""Recalibration map, histogram binning: the share of positives in the bin of p.

    .. math:: q = s_k / w_k, \qquad p \in \text{bin } k

    Parameters
    ----------
    bins : EqualMass, EqualWidth or Edges
        An empty bin keeps its middle.
    allow_certainty : bool
        Give bins of only one outcome the probability 0 or 1; otherwise these get (s + 1) / (w + 2), Laplace's rule.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    edges_, values_ : array
        The edges of the bins and their recalibrated probabilities.

    References
    ----------
    Zadrozny, Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers.

    Examples
    --------
    >>> import calibrant as cal
    >>> histogram = Histogram(bins=cal.EqualWidth(2)).fit([0.1, 0.2, 0.3, 0.7, 0.8], [0, 1, 0, 1, 1])
    >>> histogram.values_
    array([0.33333333, 0.75      ])
    """

    _distinct = True

    bins: Cut | int = EqualMass(15)
    allow_certainty: bool = False

    def _fit_cells(self, cells: BinomialCells) -> None:
        self.edges_ = edges_of(cells, self.bins)
        self.values_ = rates(self.edges_, cells, cells.positive, allow_certainty=self.allow_certainty)


@dataclass(kw_only=True, eq=False, repr=False)
class ScalingBinning(BinaryRecalibrator):
    r"""Scaling-binning: a fitted map g, averaged within bins of equal mass of its own output.

    .. math:: q = \text{mean of } g(p_i) \text{ over the rows of the bin of } g(p)

    The output takes few values, so its calibration error can be measured without bias from binning; averaging g, not
    outcomes, keeps the variance that of the map. All steps use all rows.

    Parameters
    ----------
    scaling : binary Recalibrator, optional
        The map g; `Platt()` by default.
    bins : EqualMass, EqualWidth or Edges
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    References
    ----------
    Kumar, Liang, Ma (2019), Verified Uncertainty Calibration.

    Examples
    --------
    >>> import calibrant as cal
    >>> p, y = [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 1, 0, 1, 0, 1]
    >>> ScalingBinning(bins=cal.EqualMass(2)).fit(p, y).values_.round(3)
    array([0.334, 0.666])
    """

    _distinct = True

    scaling: Any = None
    bins: Cut | int = EqualMass(15)

    def _fit_cells(self, cells: BinomialCells) -> None:
        self.scaling_ = clone(Platt() if self.scaling is None else self.scaling)
        if not isinstance(self.scaling_, BinaryRecalibrator):
            fail(f"A binary map is needed here, e.g. Platt(); got {self.scaling!r}.", TypeError)
        self.scaling_._set_one_event(cells.total)
        self.scaling_._fit_cells(cells)
        scaled = self.scaling_._map(cells.scores)
        order = np.argsort(scaled, kind="stable")
        seen = BinomialCells(Scores(scaled[order], logits=False), cells.weight[order], cells.positive[order])
        self.edges_ = edges_of(seen, self.bins)
        self.values_ = rates(self.edges_, seen, seen.weight * seen.probability, allow_certainty=True)

    def _map(self, scores: Scores) -> Floats:
        seen = Scores(
            scores.probability, logits=False
        )  # log odds from logits differ by a bit: at an edge that is a bin
        return self.values_[bin_of(self.scaling_._map(seen), self.edges_)]

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        seen = ScoreExpressions((scores.probability,), logits=False)
        scaled = ScoreExpressions((self.scaling_._map_expression(seen),), logits=False, exact=False)
        return scaled.steps("probability", self.edges_[1:-1], self.values_)


def edges_of(cells: BinomialCells, bins: Cut | int) -> Floats:
    """The edges of `bins` for distinct rising cells, opened to hold every later score."""
    bins = as_binning(bins)
    if isinstance(bins, EqualMass):
        at = RunningWeight.of(cells.weight).cuts(bins.n_bins, bins.rank)[1:-1].astype(np.intp)
        inner = cells.probability[at - 1].astype(np.float64)
    else:
        inner = bins.edges[1:-1]
    return np.concatenate([[0.0], inner, [1.0]])


def bin_of(p: NDArray[Any], edges: Floats) -> NDArray[np.intp]:
    """Bin number of each probability; bins are (low, high]."""
    return np.searchsorted(edges[1:-1], p, side="left")


def rates(edges: Floats, cells: BinomialCells, positive: NDArray[Any], *, allow_certainty: bool) -> Floats:
    """Share of positives per bin: its middle where there is no weight, Laplace's rule where it would be 0 or 1."""
    index = bin_of(cells.probability, edges)
    weight, positive = (np.bincount(index, values, len(edges) - 1) for values in (cells.weight, positive))
    filled = weight > 0
    rate = np.where(filled, positive / np.where(filled, weight, 1), (edges[1:] + edges[:-1]) / 2)
    if allow_certainty:
        return rate
    certain = filled & ((positive <= 0) | (positive >= weight))
    return np.where(certain, (np.clip(positive, 0, weight) + 1) / (weight + 2), rate)


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianBinning(StepMap, BinaryRecalibrator):
    r"""Bayesian binning into quantiles (BBQ): histogram maps of many sizes, averaged by their evidence.

    .. math:: q = \sum_M \frac{P(D \mid M)}{\sum P(D \mid M')}\, \frac{s_k + \alpha_k}{w_k + N/B},
              \qquad P(D \mid M) = \prod_k \frac{B(s_k + \alpha_k,\ w_k - s_k + \beta_k)}{B(\alpha_k, \beta_k)}

    over equal-mass binnings M of B bins, B from n^(1/3) / 10 to 10 n^(1/3) (at most n / 5), where each bin has a
    beta prior of total strength N / B around the middle of the bin. The average is again constant per bin and is
    kept as such.

    Parameters
    ----------
    strength : float
        The total strength N of the prior.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    edges_, values_ : array
        Where the averaged map jumps, and its values between.
    evidence_ : dict
        Number of bins and weight of the binnings that matter.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian Binning.

    Examples
    --------
    >>> bbq = BayesianBinning().fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> bbq.predict_proba([0.1, 0.9])[:, 1].round(3)
    array([0.446, 0.542])
    """

    _distinct = True

    strength: float = 2.0

    def _fit_cells(self, cells: BinomialCells) -> None:
        models = self._models(cells)
        scores = np.array([score for *_, score in models.values()])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        kept = [(size, share) for size, share in zip(models, shares, strict=True) if share > 1e-9]
        total = sum(share for _, share in kept)
        self.edges_ = np.unique(np.concatenate([models[size][0] for size, _ in kept]))
        middle = (self.edges_[1:] + self.edges_[:-1]) / 2
        self.values_ = np.zeros(len(middle))
        for size, share in kept:
            edges, values, _ = models[size]
            self.values_ += share / total * values[bin_of(middle, edges)]
        self.evidence_ = {str(size): share / total for size, share in kept}

    def _models(self, cells: BinomialCells) -> dict[int, tuple[Floats, Floats, float]]:
        """Edges, values and log evidence of each binning, by its number of bins."""
        running, equal_mass = np.cumsum(cells.weight), RunningWeight.of(cells.weight)
        positives = np.concatenate([[0.0], np.cumsum(cells.positive)])
        weights = np.concatenate([[0.0], running])
        root = max(running[-1], 1.0) ** (1 / 3)
        most = max(1, min(int(np.ceil(running[-1] / 5)), int(np.ceil(10 * root))))
        models = {}
        for number in range(max(1, min(int(root / 10), most)), most + 1):
            at = equal_mass.cuts(number).astype(np.intp)
            inner = cells.probability[at[1:-1] - 1].astype(np.float64)
            edges = np.concatenate([[0.0], inner, [1.0]])
            found = self._posterior(edges, np.diff(weights[at]), np.diff(positives[at]))
            models[len(edges) - 1] = (edges, *found)
        return models

    def _posterior(self, edges: Floats, weight: Floats, positive: Floats) -> tuple[Floats, float]:
        """Posterior means of the bins and the log evidence."""
        strength = self.strength / len(weight)
        middle = np.clip((edges[1:] + edges[:-1]) / 2, 1e-9, 1 - 1e-9)
        alpha, beta = strength * middle, strength * (1 - middle)
        positive = np.clip(positive, 0, weight)
        evidence = betaln(positive + alpha, weight - positive + beta) - betaln(alpha, beta)
        return (positive + alpha) / (weight + strength), float(evidence.sum())
