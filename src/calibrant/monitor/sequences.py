r"""Confidence sequences for means, and e-values of many hypotheses: both valid whenever one looks.

For residuals :math:`r_i \ge -1` and :math:`0 < \lambda < 1`, :math:`\exp(\lambda r - \psi(\lambda) r^2) \le 1 + \lambda
r` with :math:`\psi(\lambda) = -\log(1-\lambda) - \lambda` (Fan, Grama, Liu 2015). Hence for the mean g of the
conditional means of n residuals, which may differ from row to row,

.. math:: \exp\bigl(\lambda (n g - \textstyle\sum r_i) - \psi(\lambda) \sum r_i^2\bigr)

is at most a nonnegative supermartingale that starts at 1; so is its average over several lambda. By Ville's inequality
all g for which the average ever reaches 2 / alpha can be excluded, on either side.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from calibrant.data.predictions import Binary
from calibrant.data.validation import InvalidPredictions
from calibrant.monitor.bets import log_mean
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target

#: Bets on the mean, of which the average is taken: limits are at most 1.6 times as far as by the best bet, for sums of
#: squares up to 1e6. Test: tests/monitor/test_sequences.py::test_the_bets_are_near_the_best_one_for_any_sum_of_squares.
BETS = 0.9 * 1.9 ** -np.arange(13.0)


def mean_sequence(n: float, total: float, squares: float, alpha: float) -> tuple[float, float]:
    """Limits of the mean of n residuals in [-1, 1] with this sum and sum of squares, valid at any time.

    >>> low, high = mean_sequence(1000, 80.0, 150.0, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.034, 0.126)
    """
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
        message = f"before has {len(old):,} rows and after {len(new):,}: give both for the same rows."
        raise InvalidPredictions(message)
    fall = (old.y_prob - old.y_true) ** 2 - (new.y_prob - new.y_true) ** 2
    low, high = mean_sequence(len(fall), float(fall.sum()), float((fall**2).sum()), alpha)
    value = Estimate(float(fall.mean()), name="Fall of the Brier score", method="confidence sequence", n=len(fall))
    return value.with_interval(sequence_interval(low, high, 1 - alpha, Target("mean score")))


def sequence_interval(low: float, high: float, level: float, target: Target | None = None) -> Interval:
    """The limits as an interval."""
    return Interval(low, high, level=level, method="confidence sequence, valid at any time", target=target)


def closed_testing(evidence: Floats) -> Floats:
    """E-values adjusted for all of them together: the least average over all sets that contain each.

    Rejecting those of at least 1 / alpha has a familywise error of at most alpha (Vovk and Wang 2021).

    >>> closed_testing(np.array([100.0, 0.5, 0.5])).round(2).tolist()
    [33.67, 0.5, 0.5]
    """
    order = np.sort(evidence)
    sums = np.concatenate([[0.0], np.cumsum(order)])
    rank = np.searchsorted(order, evidence)
    return np.array([((e + sums[: k + 1]) / np.arange(1, k + 2)).min() for e, k in zip(evidence, rank, strict=True)])
