"""Mid-P intervals of binomial shares, also of counts that are not whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.numerics.arrays import Floats

#: Steps of Newton's method at most; three to five are usual, and the range is halved where one would leave it.
STEPS = 60
#: The last step is the one from where the logarithm of the tail is off by at most this, since it squares what is off;
#: or one that rounding decides, or that is smaller than any share that matters.
NEAR, ROUNDING, NOTHING = 1e-7, 1e-15, 1e-18


def mid_p_interval(count: ArrayLike, size: ArrayLike, level: float) -> tuple[Floats, Floats]:
    r"""Both ends of the mid-P interval of a share, element by element.

    The low end solves

    .. math:: P_\pi(X > x) + \tfrac12 P_\pi(X = x) = \frac{1 - \text{level}}{2}, \qquad X \sim \mathrm{Bin}(n, \pi),

    the high end the same of the other tail; the low end is 0 for x = 0 and the high end 1 for x = n. Both tails are
    means of two incomplete beta functions, which are defined for fractional x and n too: an effective number of rows
    need not be whole.

    References
    ----------
    Lancaster (1961), Significance Tests in Discrete Distributions.

    Examples
    --------
    >>> low, high = mid_p_interval(0, 10, 0.95)  # 0.5 (1 - high)^10 = 0.025
    >>> float(low), float(high.round(4))
    (0.0, 0.2589)
    """
    x, n = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(size, dtype=np.float64))
    tail = (1 - level) / 2
    return _low_end(x, n, tail), 1 - _low_end(n - x, n, tail)


def _low_end(x: Floats, n: Floats, tail: float) -> Floats:
    """Newton's method for the logarithm of the tail in that of the share, of which it is nearly a line."""
    from scipy.special import betainc, betaincinv, betaln

    some = x > 0
    x = np.where(some, x, 1.0)
    above = np.maximum(n - x, 0.0)
    # Between the ends at which either tail alone has this probability.
    low = betaincinv(x, above + 1, tail)
    high = np.where(above > 0, betaincinv(x + 1, np.where(above > 0, above, 1.0), tail), 1.0)
    at, constant = np.sqrt(low * high), -np.log(x) - betaln(x, above + 1)
    for _ in range(STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            others = np.where(above > 0, above * np.log1p(-at), 0.0)
            equal = np.exp(constant + x * np.log(at) + others)
            found = betainc(x, above + 1, at) - equal / 2
            slope = equal / 2 * (x + np.where(above > 0, above * at / (1 - at), 0.0)) / found
            missing = np.log(tail / found)
            following = at * np.exp(missing / slope)
        too_high = found > tail
        low, high = np.where(too_high, low, at), np.where(too_high, at, high)
        following = np.where((low <= following) & (following <= high), following, (low + high) / 2)
        moved, at = np.abs(following - at), following
        if ((np.abs(missing) <= NEAR) | (moved <= ROUNDING * at + NOTHING)).all():
            break
    return np.where(some, at, 0.0)
