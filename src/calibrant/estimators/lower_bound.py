"""One-sided lower confidence bounds of the calibration error, from the variational estimate.

The estimate is a lower bound in expectation for every map; these bounds add the sampling error. There is no upper
bound of this kind: an error that no map has found leaves no trace in the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.data.validation import fraction
from calibrant.numerics.arrays import Floats
from calibrant.numerics.mean_bounds import bernstein_lower_bound, betting_lower_bound
from calibrant.numerics.sizes import BETTING_ROWS
from calibrant.results.estimate import Interval

#: Share of the predicted probability mixed into the map where losses are unbounded, so that none exceeds -log of it.
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
    """The estimate minus z times its standard error times `inflation`: uses all rows, and is approximate.

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
    """Everything above the estimate minus its inflated error."""
    from scipy.special import ndtri

    low = value - float(ndtri(bound.level)) * bound.inflation * error
    return Interval(low, math.inf, bound.level, repr(bound), side="lower", assumption="approximate: folds share rows")


def split_sample_interval(
    contributions: Floats, count: Floats, size: float, bound: SplitSampleBound, *, seed: int
) -> Interval:
    """The exact bound from contributions in [-size, size], each of which occurred `count` times."""
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
