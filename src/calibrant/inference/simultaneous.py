"""Bands that hold at all points of a curve at once, from how its points vary together."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from calibrant.numerics.arrays import Floats

#: Whether an interval is for its point of the curve by itself, or all of them hold at once.
BandKind = Literal["pointwise", "simultaneous"]

#: Draws of the largest deviation, and their seed.
DRAWS, SEED = 4000, 0

#: Draws that are worked on at once, a divisor of their number.
_AT_ONCE = 200


def check_band(band: BandKind) -> BandKind:
    """Refuse other words."""
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
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng, largest = np.random.default_rng(SEED), []
    for _ in range(0, DRAWS, _AT_ONCE):
        drawn = rng.standard_normal((_AT_ONCE, len(values))) @ root.T
        largest.append(np.maximum(drawn.max(axis=1), -drawn.min(axis=1)))
    k = float(np.quantile(np.concatenate(largest), level))
    return float(np.clip(2 * ndtr(k) - 1, level, 1 - 1e-9))
