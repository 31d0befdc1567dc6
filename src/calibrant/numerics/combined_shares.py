"""Limits of a weighted sum of shares of one sample, from the limits of each share."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_interval import mid_p_interval


def combined_share_limits(share: Floats, factor: Floats, size: Floats, level: float) -> tuple[Floats, Floats]:
    r"""Both ends of an interval of :math:`\sum_j c_j \pi_j`, with π shares of exclusive kinds of rows.

    The distances of the ends from the estimate are those of the mid-P ends of each share, combined by the method of
    variance estimates recovery (MOVER) with the correlations of multinomial shares:

    .. math:: \Delta^2 = \sum_{jk} \rho_{jk} \operatorname{sign}(c_j c_k)\, d_j d_k, \qquad
              \rho_{jk} = -\sqrt{\frac{\pi_j \pi_k}{(1 - \pi_j)(1 - \pi_k)}}, \quad
              d_j = |c_j| \cdot |\text{end}_j - \pi_j|

    where for the upper end of the sum the upper end of a share counts if its factor is positive, else the lower.

    Parameters
    ----------
    share, factor : array (kinds, points)
    size : array (points,)
        The number of independent rows.

    References
    ----------
    Zou, Donner (2008), Construction of confidence limits about effect measures.

    Examples
    --------
    >>> low, high = combined_share_limits(np.array([[0.3], [0.2]]), np.array([[1.0], [-1.0]]), np.array([100.0]), 0.95)
    >>> low.round(2), high.round(2)
    (array([-0.04]), array([0.24]))
    """
    low, high = mid_p_interval(share * size, size, level)
    value = (factor * share).sum(axis=0)
    up = np.abs(factor) * np.where(factor > 0, high - share, share - low)
    down = np.abs(factor) * np.where(factor > 0, share - low, high - share)
    return value - _recovered(down, share, factor), value + _recovered(up, share, factor)


def _recovered(distance: Floats, share: Floats, factor: Floats) -> Floats:
    odds = np.sqrt(np.divide(share, 1 - share, out=np.zeros_like(share), where=share < 1))
    signed = np.sign(factor) * odds * distance
    # All pairs of unlike kinds, of which each square is taken out again.
    pairs = signed.sum(axis=0) ** 2 - (signed**2).sum(axis=0)
    return np.sqrt(np.maximum((distance**2).sum(axis=0) - pairs, 0.0))
