"""Many hypotheses or points at once: adjusted p-values, combined statistics, and simultaneous bands.

Statistics are combined by their rank among draws from the null hypothesis, which keeps the p-value exact. Bands hold at
all points of a curve, from how its points vary together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator, normal_draws

#: Tail probabilities are kept above this, so that their reciprocals stay finite.
#: Derived: the smallest double is 2e-308, and sums of reciprocals have room.
_SMALLEST = 1e-300

#: Larger ones count as this: one statistic that is smaller than chance would have it, as those of fitted residuals are,
#: must not outweigh all others.
#: Test: tests/inference/test_multiplicity.py::test_a_tail_near_1_does_not_outweigh_the_others.
_LARGEST = 0.9

#: Below this, cot(pi p) is 1 / (pi p). Derived: the next term of the series is (pi p)^2 / 3 = 3e-16 of it.
_SMALL = 1e-8

#: Statistics of discrete outcomes that differ by less than this share of themselves count as equal.
#: Test: tests/inference/test_multiplicity.py::test_statistics_that_differ_by_rounding_are_equal.
_TIE = 1e-9


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Holm's adjusted p-values: valid whatever the dependence of the tests. NaN stays NaN, and does not count as one.

    Parameters
    ----------
    weights : sequence of float, optional
        The shares of the level that the tests have, up to a factor; equal ones unless given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    >>> holm([0.01, 0.04], weights=[1.0, 0.25])
    [0.0125, 0.04]
    >>> holm([0.01, float("nan"), 0.03])
    [0.02, nan, 0.03]
    """
    p, weight = np.asarray(p_values, np.float64), np.ones(len(p_values)) if weights is None else np.asarray(weights)
    order = np.argsort(p / weight, kind="stable")[: np.count_nonzero(~np.isnan(p))]  # NaN are last
    factors = np.cumsum(weight[order][::-1])[::-1] / weight[order]
    rising = np.maximum.accumulate(p[order] * factors)
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(rising, 1.0)
    return [float(p) for p in adjusted]


def gamma_tails(fit_draws: Floats, values: Floats) -> Floats:
    r"""Upper tail probabilities of positive statistics under gamma laws with the mean and variance of simulated ones.

    By Wilson and Hilferty's approximation, in which the cube root is normal, with m the mean and s² the variance:

    .. math:: P(T > t) \approx \Phi\left(\frac{1 - c - (t/m)^{1/3}}{\sqrt{c}}\right), \qquad c = \frac{s^2}{9 m^2}.

    A smooth scale on which statistics of different kinds, and of different groups, can be compared beyond the number of
    draws. It need not be exact where the results are ranked afterwards (`step_down_min`), but the draws that are ranked
    must be *others*: a law fitted to the draws that are ranked treats them and the data differently, and the error rate
    of 200 groups was 0.39 instead of 0.05.

    Parameters
    ----------
    fit_draws : array (draws, ...)
        Statistics of samples simulated under the null hypothesis, used for the laws only.
    values : array whose last dimensions are those of `fit_draws` after the first

    >>> draws = np.random.default_rng(0).chisquare(2, (2000, 1))
    >>> gamma_tails(draws, np.array([[5.99], [100.0]])).ravel().round(2)
    array([0.05, 0.  ])
    """
    from scipy.special import ndtr

    mean = np.maximum(fit_draws.mean(axis=0), _SMALLEST)
    ninth = np.maximum((fit_draws / mean).var(axis=0), 1e-12) / 9
    with np.errstate(over="ignore"):  # statistics that no draw has, as of outcomes predicted to be impossible
        scaled = np.cbrt(np.maximum(values, 0.0) / mean)
    return np.asarray(ndtr((1 - ninth - scaled) / np.sqrt(ninth)))


def cauchy_combined(tails: Floats, weight: ArrayLike) -> Floats:
    r"""One tail probability for several (along the last axis): that of their weighted sum of :math:`\cot(\pi p)`.

    .. math:: q = \operatorname{arccot}\Bigl(\sum_j \omega_j \cot(\pi p_j)\Bigr) / \pi, \qquad \sum_j \omega_j = 1

    with p of more than 0.9 counted as 0.9. To be ranked among those of draws, which makes it exact.

    Liu, Xie (2020), Cauchy combination test.

    >>> cauchy_combined(np.array([[0.01, 0.9], [1e-100, 0.5]]), [1, 1])
    array([2.2...e-002, 2.0...e-100])
    """
    share = np.asarray(weight, dtype=np.float64)
    p = np.clip(tails, _SMALLEST, _LARGEST)
    cotangent = np.where(p < _SMALL, 1 / (np.pi * p), 1 / np.tan(np.pi * np.maximum(p, _SMALL)))
    total = cotangent @ (share / share.sum())
    return np.asarray(np.arctan2(1.0, total) / np.pi)


def rank_p(observed: Floats, draws: Floats) -> Floats:
    """For each column the share of draws, the data included, that are at most the observed value: exact p-values.

    >>> rank_p(np.array([0.1, 0.5]), np.array([[0.2, 0.4], [0.3, 0.6], [0.4, 0.1]]))
    array([0.25, 0.75])
    """
    below = (draws <= observed * (1 + _TIE)).sum(axis=0)
    return np.asarray((1 + below) / (len(draws) + 1))


def step_down_min(observed: Floats, draws: Floats) -> Floats:
    r"""Adjusted p-values of many hypotheses by the smallest of their statistics (Westfall and Young, step-down).

    The hypothesis with the r-th smallest statistic gets the share of draws, the data included, in which the smallest
    statistic of those not yet removed is at most its own:

    .. math:: p_{(r)} = \max_{s \le r} \frac{1 + \#\{b : \min_{g \ge s} q^*_{b,(g)} \le q_{(s)}\}}{B + 1}

    The probability of any false rejection is at most the level, whatever the dependence of the statistics if all are
    computed from the same simulated samples, and for any number of hypotheses: the smallest possible value is
    1 / (B + 1).

    Parameters
    ----------
    observed : array (hypotheses,)
        Small values are evidence, e.g. `cauchy_combined` tail probabilities.
    draws : array (B, hypotheses)
        The same statistics of samples simulated under the null hypothesis.

    References
    ----------
    Westfall, Young (1993), Resampling-Based Multiple Testing.

    Examples
    --------
    >>> draws = np.random.default_rng(0).random((999, 3))
    >>> step_down_min(np.array([0.0001, 0.5, 0.02]), draws)
    array([0.001, 0.509, 0.044])
    """
    order = np.argsort(observed, kind="stable")
    smallest = np.minimum.accumulate(draws[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.empty(len(observed))
    adjusted[order] = np.maximum.accumulate(rank_p(observed[order], smallest))
    return adjusted


#: Whether an interval is for its point of the curve by itself, or all of them hold at once.
BandKind = Literal["pointwise", "simultaneous"]

#: Draws of the largest deviation. Derived: the standard error of a level of 95 % is sqrt(0.95 0.05 / 4000) = 0.3 %.
DRAWS = 4000


def check_band(band: BandKind) -> BandKind:
    """Raise an error for other words."""
    if band not in get_args(BandKind):
        message = f"band must be one of {get_args(BandKind)}, got {band!r}."
        raise ValueError(message)
    return band


def pointwise_level(covariance: Floats, level: float) -> float:
    r"""The level of pointwise intervals that together hold with probability `level`, for estimates that vary like this.

    .. math:: 2 \Phi(k) - 1, \qquad P\Bigl(\max_t \frac{|Z_t|}{\sqrt{C_{tt}}} \le k\Bigr) = \text{level}, \quad
              Z \sim N(0, C)

    with k the quantile of 4000 draws. Points that do not vary are left out.

    Examples
    --------
    >>> alike, apart = pointwise_level(np.ones((3, 3)), 0.95), pointwise_level(np.eye(3), 0.95)
    >>> bool(abs(alike - 0.95) < 0.01), bool(abs(apart - 0.95 ** (1 / 3)) < 0.005)
    (True, True)
    """
    from scipy.special import ndtr

    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    some = spread > 1e-12 * max(float(spread.max(initial=0.0)), 1e-300)
    if not some.any():
        return level
    correlation = covariance[np.ix_(some, some)] / np.outer(spread[some], spread[some])
    drawn = normal_draws(correlation, DRAWS, generator(0, "simultaneous band"))
    k = float(np.quantile(np.abs(drawn).max(axis=1), level))
    return float(np.clip(2 * ndtr(k) - 1, level, 1 - 1e-9))


def rank_p_values(statistics: Floats) -> Floats:
    """For each line the share of lines, itself included, whose statistic is at least as large, column by column.

    Numbers that differ by rounding alone are taken for equal.

    >>> rank_p_values(np.array([[3.0], [1.0], [2.0], [2.0]]))[:, 0]
    array([0.25, 1.  , 0.75, 0.75])
    """
    ordered = np.sort(statistics, axis=0)
    slack = 1e-10 * (np.abs(statistics) + np.abs(ordered[len(ordered) // 2]))
    below = [np.searchsorted(*pair) for pair in zip(ordered.T, (statistics - slack).T, strict=True)]
    return (len(statistics) - np.stack(below, axis=1)) / len(statistics)


def first_rank(values: Floats) -> float:
    """The share of values, the first included, that are at least as large as the first: its p-value among draws.

    >>> first_rank(np.array([3.0, 1.0, 4.0, 2.0]))
    0.5
    """
    return float(rank_p_values(values[:, None])[0, 0])


def cauchy_rank(single: Floats, weight: Floats) -> float:
    r"""The p-value of the first line by the rank of :math:`\sum_j \omega_j \cot(\pi p_j)` among the lines.

    It is exact whatever the dependence of the columns if the lines are exchangeable (Liu and Xie 2020 for the sum).

    >>> cauchy_rank(np.array([[0.25, 0.5], [1.0, 1.0], [0.75, 0.75], [0.5, 0.25]]), np.ones(2))
    0.5
    """
    inner = single * (len(single) / (len(single) + 1))  # else the largest rank, p = 1, outweighs all other columns
    return first_rank((1 / np.tan(np.pi * inner)) @ weight)
