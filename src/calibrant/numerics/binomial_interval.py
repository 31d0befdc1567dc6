"""Mid-P intervals of binomial shares, also of counts that are not whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.numerics.arrays import Floats

#: Halvings of a range that one event more or less makes: more than the digits of a float.
HALVINGS = 34


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
    from scipy.special import betainc, betaincinv

    some = x > 0
    x = np.where(some, x, 1.0)
    above = np.maximum(n - x, 0.0)
    # Between the ends at which either tail alone has this probability.
    low = betaincinv(x, above + 1, tail)
    high = np.where(above > 0, betaincinv(x + 1, np.where(above > 0, above, 1.0), tail), 1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        at_least = betainc(x, above + 1, middle)
        more = np.where(above > 0, betainc(x + 1, np.where(above > 0, above, 1.0), middle), 0.0)
        too_high = (at_least + more) / 2 > tail
        low, high = np.where(too_high, low, middle), np.where(too_high, middle, high)
    return np.where(some, (low + high) / 2, 0.0)
