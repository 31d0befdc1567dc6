"""Many hypotheses or points at once: adjusted p-values, combined statistics, simultaneous bands, shrinkage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from calibrant.data.validation import fail
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
    """Holm's adjusted p-values, with shares of the level as `weights`; NaN stays NaN and does not count as a test."""
    p, weight = np.asarray(p_values, np.float64), np.ones(len(p_values)) if weights is None else np.asarray(weights)
    order = np.argsort(p / weight, kind="stable")[: np.count_nonzero(~np.isnan(p))]  # NaN are last
    factors = np.cumsum(weight[order][::-1])[::-1] / weight[order]
    rising = np.maximum.accumulate(p[order] * factors)
    adjusted = np.full(len(p_values), np.nan)
    adjusted[order] = np.minimum(rising, 1.0)
    return [float(p) for p in adjusted]


def gamma_tails(fit_draws: Floats, values: Floats) -> Floats:
    r"""Upper tail probabilities of positive statistics under gamma laws with the mean m and variance s² of `fit_draws`.

    .. math:: P(T > t) \approx \Phi\left(\frac{1 - c - (t/m)^{1/3}}{\sqrt{c}}\right), \qquad c = \frac{s^2}{9 m^2}

    (Wilson and Hilferty). Draws that are ranked afterwards must be *others* than those of the fit: else the error rate
    of 200 groups was 0.39, not 0.05.
    """
    mean = np.maximum(fit_draws.mean(axis=0), _SMALLEST)
    ninth = np.maximum((fit_draws / mean).var(axis=0), 1e-12) / 9
    with np.errstate(over="ignore"):  # statistics that no draw has, as of outcomes predicted to be impossible
        scaled = np.cbrt(np.maximum(values, 0.0) / mean)
    return np.asarray(ndtr((1 - ninth - scaled) / np.sqrt(ninth)))


def cauchy_combined(tails: Floats, weight: ArrayLike) -> Floats:
    r"""One tail probability for several along the last axis, to be ranked among draws (Liu, Xie 2020).

    .. math:: q = \operatorname{arccot}\Bigl(\sum_j \omega_j \cot(\pi p_j)\Bigr) / \pi, \qquad \sum_j \omega_j = 1
    """
    share = np.asarray(weight, dtype=np.float64)
    p = np.clip(tails, _SMALLEST, _LARGEST)
    cotangent = np.where(p < _SMALL, 1 / (np.pi * p), 1 / np.tan(np.pi * np.maximum(p, _SMALL)))
    total = cotangent @ (share / share.sum())
    return np.asarray(np.arctan2(1.0, total) / np.pi)


def rank_p(observed: Floats, draws: Floats) -> Floats:
    """For each column the share of draws, the data included, that are at most the observed value: exact p-values."""
    below = (draws <= observed * (1 + _TIE)).sum(axis=0)
    return np.asarray((1 + below) / (len(draws) + 1))


def step_down_min(observed: Floats, draws: Floats) -> Floats:
    r"""Adjusted p-values of hypotheses of which small statistics are evidence, by their minimum over B null `draws`.

    .. math:: p_{(r)} = \max_{s \le r} \frac{1 + \#\{b : \min_{g \ge s} q^*_{b,(g)} \le q_{(s)}\}}{B + 1}

    The probability of any false rejection is at most the level, whatever the dependence of the statistics if all are
    computed from the same samples (Westfall, Young 1993, Resampling-Based Multiple Testing, step-down).
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
        fail(f"band must be one of {get_args(BandKind)}, got {band!r}.", ValueError)
    return band


def pointwise_level(covariance: Floats, level: float) -> float:
    r"""The level of pointwise intervals that together hold with probability `level`, for estimates that vary like this.

    .. math:: 2 \Phi(k) - 1, \qquad P\Bigl(\max_t |Z_t| / \sqrt{C_{tt}} \le k\Bigr) = \text{level}, \quad Z \sim N(0, C)
    """
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    some = spread > 1e-12 * max(float(spread.max(initial=0.0)), 1e-300)
    if not some.any():
        return level
    correlation = covariance[np.ix_(some, some)] / np.outer(spread[some], spread[some])
    drawn = normal_draws(correlation, DRAWS, generator(0, "simultaneous band"))
    k = float(np.quantile(np.abs(drawn).max(axis=1), level))
    return float(np.clip(2 * ndtr(k) - 1, level, 1 - 1e-9))


def rank_p_values(statistics: Floats) -> Floats:
    """For each line the share of lines whose statistic is at least as large, up to rounding, column by column."""
    return (len(statistics) - _lines_below(statistics, "left")[0]) / len(statistics)


def equal_tails(statistics: Floats) -> Floats:
    """For each line twice its smaller tail among all lines, itself counted by half, up to rounding; by column."""
    below, up_to = _lines_below(statistics, "left", "right")
    above = 1 - (below + up_to) / 2 / len(statistics)
    return np.minimum(1.0, 2 * np.minimum(above, 1 - above))


def _lines_below(statistics: Floats, *sides: Literal["left", "right"]) -> Floats:
    """How many lines have a smaller statistic ("left") or one as large at most ("right"), up to rounding; by column.

    Numbers in their order are looked up in a third of the time.
    """
    found = np.empty((len(sides), *statistics.T.shape))
    for k, column in enumerate(np.ascontiguousarray(statistics.T)):
        order = np.argsort(column)
        ordered = column[order]
        slack = 1e-10 * (np.abs(ordered) + np.abs(ordered[len(ordered) // 2]))
        for side, own in zip(sides, found, strict=True):
            own[k, order] = np.searchsorted(ordered, ordered - slack if side == "left" else ordered + slack, side)
    return found.swapaxes(1, 2)


def first_rank(values: Floats) -> float:
    """The share of values, the first included, that are at least as large as the first: its p-value among draws."""
    return float(rank_p_values(values[:, None])[0, 0])


def cauchy_rank(single: Floats, weight: Floats) -> float:
    r"""The p-value of the first line by the rank of :math:`\sum_j \omega_j \cot(\pi p_j)` among exchangeable lines."""
    inner = single * (len(single) / (len(single) + 1))  # else the largest rank, p = 1, outweighs all other columns
    return first_rank((1 / np.tan(np.pi * inner)) @ weight)


def shrunk(values: Floats, error: Floats) -> Floats:
    r"""Empirical Bayes estimates of groups with these standard errors, as for `by_group`, with

    .. math:: \tau^2 = \max\Bigl(0,
              \frac{\sum_g w_g (e_g - m)^2 - (G - 1)}{\sum_g w_g - \sum_g w_g^2 / \sum_g w_g}\Bigr), \quad
              w_g = s_g^{-2}, \quad m = \frac{\sum_g w_g e_g}{\sum_g w_g}

    DerSimonian, Laird (1986), Meta-analysis in clinical trials; Efron, Morris (1975), Data Analysis Using Stein's
    Estimator and its Generalizations.
    """
    mean, between = between_groups(values, error**2)
    kept = between / (between + error**2) if between > 0 else np.zeros(len(values))
    return np.asarray(mean + kept * (values - mean))


def between_groups(values: Floats, variance: Floats) -> tuple[float, float]:
    """The mean m of groups with these variances, and the variance between them beyond noise, as for `shrunk`."""
    weight = 1 / np.maximum(variance, 1e-18)
    mean = float(weight @ values / weight.sum())
    excess = float(weight @ (values - mean) ** 2) - (len(values) - 1)
    freed = float(weight.sum() - (weight**2).sum() / weight.sum())
    return mean, max(0.0, excess / freed) if len(values) > 1 else 0.0
