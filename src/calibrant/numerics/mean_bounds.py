"""Lower confidence bounds of the mean of bounded independent values, exact for any number of them."""

from __future__ import annotations

import math

import numpy as np

from calibrant.numerics.arrays import Floats


def betting_lower_bound(values: Floats, alpha: float) -> float:
    r"""Lower confidence bound for the mean of values in [0, 1] by betting that the mean is larger.

    .. math:: K_t(m) = \prod_{s \le t} \bigl(1 + \lambda_s(m)(x_s - m)\bigr)

    is a wealth that exceeds 1/alpha with probability of at most `alpha` where m is the true mean, if each stake λ_s
    depends only on earlier values. The bound is the smallest m for which it never does (Waudby-Smith and Ramdas 2024,
    Estimating means of bounded random variables by betting).

    >>> round(betting_lower_bound(np.tile([0.0, 1.0], 500), 0.05), 2)
    0.46
    """
    n = len(values)
    before = np.arange(n)
    mean = (0.5 + np.concatenate([[0.0], np.cumsum(values)])) / (np.arange(n + 1) + 1)
    spread = (0.25 + np.concatenate([[0.0], np.cumsum((values - mean[1:]) ** 2)[:-1]])) / (before + 1)
    stake = np.sqrt(2 * math.log(1 / alpha) / (n * spread))
    low, high = 0.0, float(values.mean())
    for _ in range(2):
        grid = np.linspace(low, high, 65)
        kept = [_most_wealth(values, stake, m) < math.log(1 / alpha) for m in grid]
        first = kept.index(True) if True in kept else len(grid) - 1
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
    return low


def bernstein_lower_bound(values: Floats, count: Floats, alpha: float) -> float:
    r"""Lower confidence bound for the mean of values in [0, 1], each of which occurred `count` times.

    .. math:: \bar x - \sqrt{\frac{2 s^2 \log(2/\alpha)}{n}} - \frac{7\log(2/\alpha)}{3(n-1)}

    from Maurer and Pontil (2009), Empirical Bernstein Bounds and Sample Variance Penalization, theorem 4.

    >>> round(bernstein_lower_bound(np.array([0.0, 1.0]), np.array([500.0, 500.0]), 0.05), 2)
    0.45
    """
    n = float(count.sum())
    mean = float(count @ values) / n
    variance = float(count @ (values - mean) ** 2) / (n - 1)
    term = math.log(2 / alpha)
    return max(0.0, mean - math.sqrt(2 * variance * term / n) - 7 * term / (3 * (n - 1)))


def _most_wealth(values: Floats, stake: Floats, m: float) -> float:
    """Largest log wealth at any time; stakes are capped so that no single value loses everything."""
    safe = np.minimum(stake, 0.75 / max(m, 1e-12))
    return float(np.cumsum(np.log1p(safe * (values - m))).max())
