r"""How small may the calibration error still be? One-sided lower confidence bounds for the variational estimate.

The estimate is itself low in expectation, whatever the map; what these bounds add is the luck of the sample. There is
no upper bound of this kind: an error that no map has found leaves no trace in the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.data.validation import fraction
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval

#: Evaluation parts of more rows than this use the Bernstein bound, which needs only sums and is tight there.
BETTING_ROWS = 2**16
#: Share of the stated probability mixed into the map where losses are unbounded, so that none exceeds -log of it.
MIXED = 0.05


@dataclass(frozen=True)
class SplitSampleBound:
    """Fit the map on one part of the rows, bound the error on the other: exact for any number of rows.

    Given the map, contributions of the other rows are independent and bounded, and their mean is at most the true
    calibration error. So the true error is above the bound with probability of at least `level`, for every sample
    size, model and map. Up to 65,536 rows the bound is the betting bound of Waudby-Smith and Ramdas (2024), beyond
    them the empirical Bernstein bound of Maurer and Pontil (2009). The estimate itself is then that of the
    evaluation part. Rows must be independent and unweighted.

    Parameters
    ----------
    level : float in (0, 1)
    train : float in (0, 1)
        Share of the rows that the map is fitted on.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> error = cal.calibration_error(rng.random(4000) < p**2, p, bound=SplitSampleBound())  # the true error is 1/6
    >>> bool(0.1 < error.interval.low < 1 / 6)
    True
    """

    level: float = 0.95
    train: float = 0.5

    def __post_init__(self) -> None:
        fraction("level", self.level)
        fraction("train", self.train)


@dataclass(frozen=True)
class CrossFittedBound:
    """The estimate less z times its standard error times `inflation`: uses all rows, and is approximate.

    Folds share training rows, so that contributions are not independent and the plain standard error is too
    small near calibration. The default inflation is the measured one: over the binary worlds of the paper and n = 200
    to 5000, the standard deviation of the L1 estimate over samples was at most 1.50 plain standard errors (see
    reproduce/results/variational.md, which also counts how often the bound failed). Groups of rows are taken as
    units.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> error = cal.calibration_error(rng.random(4000) < p**2, p, bound=CrossFittedBound())  # the true error is 1/6
    >>> bool(0.1 < error.interval.low < error)
    True
    """

    level: float = 0.95
    inflation: float = 1.5

    def __post_init__(self) -> None:
        fraction("level", self.level)


Bound = SplitSampleBound | CrossFittedBound


def cross_fitted_interval(value: float, error: float, bound: CrossFittedBound) -> Interval:
    """Everything above the estimate less its inflated error."""
    from scipy.special import ndtri

    low = value - float(ndtri(bound.level)) * bound.inflation * error
    return Interval(low, math.inf, bound.level, repr(bound), side="lower", assumption="approximate: folds share rows")


def split_sample_interval(
    contributions: Floats, count: Floats, size: float, bound: SplitSampleBound, *, seed: int
) -> Interval:
    """The exact bound from contributions in [-size, size], each of which came `count` times."""
    n = int(count.sum())
    shifted = (np.clip(contributions, -size, size) + size) / (2 * size)
    if n <= BETTING_ROWS:
        rows = np.repeat(shifted, count.astype(np.intp))
        low = betting_lower_bound(np.random.default_rng(seed).permutation(rows), 1 - bound.level)
        how = "betting"
    else:
        low = bernstein_lower_bound(shifted, count, 1 - bound.level)
        how = "empirical Bernstein"
    return Interval(
        (2 * low - 1) * size,
        math.inf,
        bound.level,
        f"{bound!r}, {how}",
        side="lower",
        assumption="independent rows; exact for any n",
    )


def betting_lower_bound(values: Floats, risk: float) -> float:
    r"""Lower confidence bound for the mean of values in [0, 1] by betting that the mean is larger.

    .. math:: K_t(m) = \prod_{s \le t} \bigl(1 + \lambda_s(m)(x_s - m)\bigr)

    is a wealth that exceeds 1/risk with probability of at most `risk` where m is the true mean, if each stake λ_s
    depends only on earlier values. The bound is the smallest m for which it never does.

    >>> round(betting_lower_bound(np.tile([0.0, 1.0], 500), 0.05), 2)
    0.46
    """
    n = len(values)
    before = np.arange(n)
    mean = (0.5 + np.concatenate([[0.0], np.cumsum(values)])) / (np.arange(n + 1) + 1)
    spread = (0.25 + np.concatenate([[0.0], np.cumsum((values - mean[1:]) ** 2)[:-1]])) / (before + 1)
    stake = np.sqrt(2 * math.log(1 / risk) / (n * spread))
    low, high = 0.0, float(values.mean())
    for _ in range(2):
        grid = np.linspace(low, high, 65)
        kept = [_most_wealth(values, stake, m) < math.log(1 / risk) for m in grid]
        first = kept.index(True) if True in kept else len(grid) - 1
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
    return low


def bernstein_lower_bound(values: Floats, count: Floats, risk: float) -> float:
    r"""Lower confidence bound for the mean of values in [0, 1], each of which came `count` times.

    .. math:: \bar x - \sqrt{\frac{2 s^2 \log(2/\alpha)}{n}} - \frac{7\log(2/\alpha)}{3(n-1)}
    """
    n = float(count.sum())
    mean = float(count @ values) / n
    variance = float(count @ (values - mean) ** 2) / (n - 1)
    term = math.log(2 / risk)
    return max(0.0, mean - math.sqrt(2 * variance * term / n) - 7 * term / (3 * (n - 1)))


def _most_wealth(values: Floats, stake: Floats, m: float) -> float:
    """Largest log wealth on the way; stakes are kept where a single value cannot ruin it."""
    safe = np.minimum(stake, 0.75 / max(m, 1e-12))
    return float(np.cumsum(np.log1p(safe * (values - m))).max())
