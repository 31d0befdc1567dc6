r"""Bets against calibration, the evidence that all of them give together, and confidence sequences for means.

A row with outcome y and predicted probability p multiplies the wealth of a bet on a shift d of the log odds by

.. math:: e_d(y, p) = \frac{e^{d y}}{1 - p + p\,e^d}.

If P(y = 1) = p given everything that was used before, this factor has mean 1, so that the wealth is a nonnegative
martingale: it exceeds 1 / alpha at any time with a probability of at most alpha (Ville's inequality). The logarithm of
the wealth is concave in p, so sums of rows that share a cell of scores can take the mean of p for each of them: that
only lowers the wealth. A row of weight w in [0, 1] counts as the power w of its factor, whose mean is at most 1
(Jensen); the same holds for rows of one cluster whose weights sum to 1, whatever their dependence (Hölder).

With a tolerance, a bet on higher outcomes is made against the largest probability that is allowed, and one on lower
outcomes against the smallest: the factor grows (falls) with y, so its mean is at most 1 for all probabilities between.

The evidence is a fixed average of the wealth of all bets: of one shift of all scores, of shifts that grow with the
log odds, of a shift in one of 2, 4, 8 or 16 ranges of scores, and of independent shifts in all of these ranges.

Confidence sequences are valid whenever one looks, too.
For residuals :math:`r_i \ge -1` and :math:`0 < \lambda < 1`, :math:`\exp(\lambda r - \psi(\lambda) r^2) \le 1 + \lambda
r` with :math:`\psi(\lambda) = -\log(1-\lambda) - \lambda` (Fan, Grama, Liu 2015). Hence for the mean g of the
conditional means of n residuals, which may differ from row to row,

.. math:: \exp\bigl(\lambda (n g - \textstyle\sum r_i) - \psi(\lambda) \sum r_i^2\bigr)

is at most a nonnegative supermartingale that starts at 1; so is its average over several lambda. By Ville's inequality
all g for which the average ever reaches 2 / alpha can be excluded, on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from calibrant.data.predictions import Binary
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import expit
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target

#: Cells of the log odds between -LARGEST and LARGEST, in which rows are summed.
#: Test: tests/monitor/test_bets.py::test_cells_lose_little_of_the_evidence_of_the_rows.
CELLS, LARGEST = 128, 12.0
#: Ranges of scores, with equal shares of the reference, of which bets are made apart.
#: Test: tests/monitor/test_bets.py::test_a_range_of_one_sixteenth_is_bet_on.
LEAVES = 16
#: Sizes of the shifts that are bet on, in both directions: from a hundredth of the rate at 1/2 to odds times 30.
#: Test: tests/monitor/test_bets.py::test_shifts_of_every_size_are_found_almost_as_fast_as_by_the_best_bet.
SIZES = 0.03 * 2.2 ** np.arange(7)
#: Pairs of a shift, and of its growth with the standardised log odds.
#: Test: tests/monitor/test_bets.py::test_slopes_are_found_almost_as_fast_as_by_the_best_bet.
_GROWTH = (0.06, 0.12, 0.25, 0.5, 1.0)
SLOPES = np.array([(shift, sign * size) for sign in (1, -1) for size in _GROWTH for shift in (-0.3, 0.0, 0.3)])
#: Prior weight of each kind of bet: all scores alike, by slope, one range, all ranges apart. Derived: they sum to 1;
#: the logarithm of a weight is what its kind loses, at most log(1 / 0.15) = 1.9 of the evidence that an alarm needs.
SHIFT, SLOPE, ONE_RANGE, ALL_RANGES = 0.3, 0.25, 0.3, 0.15
#: Prior probability that a range is calibrated when all are bet on apart. Derived: indifference.
QUIET = 0.5
#: Smallest share of the reference that a cell counts for, so that scores not seen there have a range too, and the
#: smallest standard deviation of the log odds. Derived: both only keep divisions possible.
_LEAST_SHARE, _LEAST_SPREAD = 1e-3, 0.1
#: Log odds beyond so many standard deviations of the reference count as such, so that no bet is reckless there.
#: Derived: a shift of 0.3 + 1.0 * 3 is the largest of `SIZES`.
_FARTHEST = 3.0


class Gains(NamedTuple):
    """Logarithms of the wealth of single bets: by range and shift, and by slope. Those of several periods add up."""

    ranges: Floats
    slopes: Floats


def cells_of(y_prob: Floats, cells: int = CELLS) -> NDArray[np.intp]:
    """The cell of each predicted probability; 0 and 1 are in the outermost ones."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(y_prob) - np.log1p(-y_prob)
    inside = np.clip((log_odds + LARGEST) * (cells / (2 * LARGEST)), 0, cells - 1)
    return inside.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Bets:
    """What is bet on, given the scores of a reference but never its outcomes.

    `leaf` is the range of scores, of `LEAVES`, that each cell belongs to, and `slopes` (slopes, cells) the shift of
    each cell by each bet on a slope; relative errors of the odds up to `tolerance` are allowed, and of probabilities
    absolute ones up to `points`.
    """

    leaf: NDArray[np.intp]
    slopes: Floats
    tolerance: float
    points: float

    @classmethod
    def on_scores(cls, reference: Floats, tolerance: float, points: float) -> Bets:
        """Bets on predicted probabilities; `reference` counts the rows of each cell."""
        mass = reference + _LEAST_SHARE * max(float(reference.sum()), 1.0) / len(reference)
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        leaf = np.minimum((LEAVES * middle).astype(np.intp), LEAVES - 1)
        log_odds = cell_log_odds(len(reference))[:-1] + LARGEST / len(reference)
        mean = float(np.average(log_odds, weights=mass))
        spread = max(math.sqrt(float(np.average((log_odds - mean) ** 2, weights=mass))), _LEAST_SPREAD)
        standardised = np.clip((log_odds - mean) / spread, -_FARTHEST, _FARTHEST)
        return cls(leaf, SLOPES[:, :1] + SLOPES[:, 1:] * standardised, tolerance, points)

    @classmethod
    def on_tree(cls, tolerance: float, points: float) -> Bets:
        """Bets on the halves of a probability integral transform: cells are the nodes of a binary tree, root first.

        The slope is that of the two nodes below the root in opposite directions: a spread that is too small or large.
        """
        opposite = np.zeros(LEAVES)
        opposite[1], opposite[2] = -1.0, 1.0
        return cls(np.arange(LEAVES), SLOPES[:, :1] + SLOPES[:, 1:] * opposite, tolerance, points)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.leaf)

    def allowed(self, p: Floats, sign: int) -> Floats:
        """The largest (sign 1) or smallest (sign -1) probability within the tolerance."""
        odds = (1 + self.tolerance) ** sign
        return np.clip(p * odds / (1 + p * (odds - 1)) + sign * self.points, 0.0, 1.0)

    def gains(self, sums: Floats) -> Gains:
        """From the sums of weights, predictions and outcomes of each cell (last axes: cells by 3)."""
        some = np.flatnonzero(sums[..., 0].reshape(-1, self.cells).any(axis=0))
        weight, predicted, observed = np.moveaxis(sums[..., some, :], -1, 0)
        p = predicted / np.where(weight > 0, weight, 1.0)
        most, least = self.allowed(p, 1), self.allowed(p, -1)
        shifts = [
            observed[..., None] * d - weight[..., None] * np.log1p(against[..., None] * np.expm1(d))
            for d, against in ((SIZES, most), (-SIZES, least))
        ]
        own_range = (np.arange(LEAVES)[:, None] == self.leaf[some]).astype(np.float64)
        ranges = np.einsum("lc,...cd->...ld", own_range, np.concatenate(shifts, axis=-1))
        d = self.slopes[:, some]
        against = np.where(d > 0, most[..., None, :], least[..., None, :])
        slopes = d * observed[..., None, :] - weight[..., None, :] * np.log1p(against * np.expm1(d))
        return Gains(ranges, slopes.sum(axis=-1))


def cell_log_odds(cells: int = CELLS) -> Floats:
    """The edges of the cells, as log odds."""
    return np.linspace(-LARGEST, LARGEST, cells + 1)


def cell_edges(cells: int = CELLS) -> Floats:
    """The edges of the cells, as probabilities; the outermost cells reach to 0 and 1."""
    edges = expit(cell_log_odds(cells))
    edges[[0, -1]] = 0.0, 1.0
    return np.asarray(edges)


def log_evidence(gains: Gains) -> Floats:
    """Logarithm of the average wealth of all bets."""
    by_range = log_mean(_nested(gains.ranges), axis=-1)  # 1 + 2 + 4 + 8 + 16 ranges
    apart = np.logaddexp(math.log(QUIET), math.log(1 - QUIET) + by_range)
    levels = _levels()
    parts = [math.log(SHIFT) + by_range[..., 0], math.log(SLOPE) + log_mean(gains.slopes, axis=-1)]
    parts += [math.log(ONE_RANGE / len(levels)) + log_mean(by_range[..., level], axis=-1) for level in levels]
    parts += [math.log(ALL_RANGES / len(levels)) + apart[..., level].sum(axis=-1) for level in levels]
    return log_sum(np.stack(parts, axis=-1), axis=-1)


class Strongest(NamedTuple):
    """The range of scores with most evidence: its leaves, and the mean shift of the log odds by their wealth."""

    leaves: slice
    shift: float


def strongest(gains: Gains) -> Strongest:
    """Where the predictions are off most clearly."""
    nested = _nested(gains.ranges)
    sizes = [level.stop - level.start for level in _levels()]
    prior = np.concatenate([[SHIFT], *(np.full(size, ONE_RANGE / 4 / size) for size in sizes)])
    node = int(np.argmax(log_mean(nested, axis=-1) + np.log(prior)))
    depth = (node + 1).bit_length() - 1
    width = LEAVES >> depth
    first = (node + 1 - (1 << depth)) * width
    share = np.exp(nested[node] - nested[node].max())
    shift = float(share @ np.concatenate([SIZES, -SIZES]) / share.sum())
    return Strongest(slice(first, first + width), shift)


def log_sum(values: Floats, axis: int) -> Floats:
    """Logarithm of the sum of exponentials."""
    largest = values.max(axis=axis, keepdims=True)
    return np.squeeze(largest, axis) + np.log(np.exp(values - largest).sum(axis=axis))


def log_mean(values: Floats, axis: int) -> Floats:
    """Logarithm of the mean of exponentials."""
    return log_sum(values, axis) - math.log(values.shape[axis])


def _nested(ranges: Floats) -> Floats:
    """Gains of the whole, of halves, quarters, eighths and sixteenths, along the axis of ranges."""
    found = [ranges]
    while found[0].shape[-2] > 1:
        found.insert(0, found[0][..., ::2, :] + found[0][..., 1::2, :])
    return np.concatenate(found, axis=-2)


def _levels() -> list[slice]:
    """The places of halves, quarters, eighths and sixteenths in the list of nested ranges."""
    return [slice(size - 1, 2 * size - 1) for size in (2, 4, 8, 16)]


#: Bets on the mean, of which the average is taken: limits are at most 1.6 times as far as by the best bet, for sums of
#: squares up to 1e6. Test: tests/monitor/test_bets.py::test_the_bets_are_near_the_best_one_for_any_sum_of_squares.
BETS = 0.9 * 1.9 ** -np.arange(13.0)


def mean_sequence(n: float, total: float, squares: float, alpha: float) -> tuple[float, float]:
    """Limits of the mean of n residuals in [-1, 1] with this sum and sum of squares, valid at any time."""
    return max(-_upper(n, -total, squares, alpha), -1.0), min(_upper(n, total, squares, alpha), 1.0)


def _upper(n: float, total: float, squares: float, alpha: float) -> float:
    """The largest mean that is not excluded."""
    cost = (-np.log1p(-BETS) - BETS) * squares

    def excess(mean: float) -> float:
        return float(log_mean(BETS * (n * mean - total) - cost, axis=0)) - math.log(2 / alpha)

    return 1.0 if excess(1.0) <= 0 else float(brentq(excess, total / n, 1.0, xtol=1e-12))


def improvement(y_true: ArrayLike, before: ArrayLike, after: ArrayLike, *, alpha: float = 0.05) -> Estimate:
    r"""How much lower the Brier score is with repaired predictions, with limits that are valid at any time.

    .. math:: \frac1n \sum_i (f_i - y_i)^2 - (g_i - y_i)^2

    where f are the predictions before and g those after the repair. Give all rows since the repair at each look. Keep
    the repair while the interval reaches above 0; roll it back once its upper end is below 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> improvement(rng.random(3000) < truth, truth**2, truth).interval.low > 0
    True
    """
    old, new = Binary(y_true, before), Binary(y_true, after)
    if len(old) != len(new):
        fail(f"before has {len(old):,} rows and after {len(new):,}: give both for the same rows.")
    fall = (old.y_prob - old.y_true) ** 2 - (new.y_prob - new.y_true) ** 2
    low, high = mean_sequence(len(fall), float(fall.sum()), float((fall**2).sum()), alpha)
    value = Estimate(float(fall.mean()), name="Fall of the Brier score", method="confidence sequence", n=len(fall))
    return value.with_interval(sequence_interval(low, high, 1 - alpha, Target("mean score")))


def sequence_interval(low: float, high: float, level: float, target: Target | None = None) -> Interval:
    """The limits as an interval."""
    return Interval(low, high, level=level, method="confidence sequence, valid at any time", target=target)


def closed_testing(evidence: Floats) -> Floats:
    """E-values adjusted for all of them (Vovk and Wang 2021): the least average over all sets that contain each."""
    order = np.sort(evidence)
    sums = np.concatenate([[0.0], np.cumsum(order)])
    rank = np.searchsorted(order, evidence)
    return np.array([((e + sums[: k + 1]) / np.arange(1, k + 2)).min() for e, k in zip(evidence, rank, strict=True)])
