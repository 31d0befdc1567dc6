"""Intervals of weighted sums of rare events, by gamma distributions."""

from __future__ import annotations

#: Halvings of a range that is known to hold an end: to about the digits of a float.
HALVINGS = 60

#: Variances of less, by the square of one part, are rounding.
ROUNDING = 1e-12


def gamma_interval(value: float, variance: float, step: float, level: float) -> tuple[float, float]:
    r"""Both ends of an interval of a sum of positive parts, of which few may have been seen.

    The low end is a quantile of the gamma distribution with the mean v and the variance V of the sum. The high end is
    one of an even mixture of that and of the same with one part more, of size s,

    .. math:: \tfrac12\,\Gamma(v,\ V) + \tfrac12\,\Gamma(v + s,\ V + s^2).

    For parts of one size these are the exact low end and the mid-P high end of a Poisson count; a low end by mid-P is
    above the truth too often where parts are unlike. It is 0 where nothing was seen. A sum that does not vary, as where
    every row has the same loss, is taken to vary by one part.

    References
    ----------
    Fay, Feuer (1997), Confidence intervals for directly standardized rates: a method based on the gamma distribution;
    Fay, Kim (2017), Confidence intervals for directly standardized rates using mid-p gamma intervals.

    Examples
    --------
    >>> low, high = gamma_interval(0.0, 0.0, 1.0, 0.95)  # 0.5 exp(-high) = 0.025
    >>> low, round(high, 4)
    (0.0, 2.9957)
    """
    from scipy.special import gammainc, gammaincinv

    tail = (1 - level) / 2
    seen = value > 0
    variance = step**2 if seen and variance <= ROUNDING * step**2 else variance
    shape, scale = (value**2 / variance, variance / value) if seen else (1.0, 1.0)
    more_shape, more_scale = (value + step) ** 2 / (variance + step**2), (variance + step**2) / (value + step)

    def above(x: float) -> float:
        same = 1 - float(gammainc(shape, x / scale)) if seen else 0.0
        return (same + 1 - float(gammainc(more_shape, x / more_scale))) / 2

    low, high = float(value), float(value) + step
    while above(high) > tail:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > tail else (low, middle)
    return (float(scale * gammaincinv(shape, tail)) if seen else float(value)), high
