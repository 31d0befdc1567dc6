"""Intervals of weighted sums of rare events: the mid-P gamma interval."""

from __future__ import annotations

#: Halvings of a range that is known to hold an end: more than the digits of a float.
HALVINGS = 80


def gamma_interval(value: float, variance: float, step: float, level: float) -> tuple[float, float]:
    r"""Both ends of the mid-P interval of a sum of positive parts, of which few may have been seen.

    The ends are quantiles of an even mixture of two gamma distributions,

    .. math:: \tfrac12\,\Gamma(v,\ V) + \tfrac12\,\Gamma(v + s,\ V + s^2),

    given by their means and variances: of the sum as seen, and with one part more, of size s. For parts of one size
    this is the mid-P interval of a Poisson count. The low end is 0 where nothing was seen.

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
    from scipy.special import gammainc

    seen = value > 0 and variance > 0
    shapes = [(value + step) ** 2 / (variance + step**2), value**2 / variance if seen else 1.0]
    scales = [(variance + step**2) / (value + step), variance / value if seen else 1.0]

    def below(x: float) -> float:
        more, same = (float(gammainc(shape, x / scale)) for shape, scale in zip(shapes, scales, strict=True))
        return (more + (same if seen else 1.0)) / 2

    def quantile(share: float) -> float:
        low, high = 0.0, value + step
        while below(high) < share:
            low, high = high, 2 * high
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) < share else (low, middle)
        return (low + high) / 2

    tail = (1 - level) / 2
    return (quantile(tail) if seen else float(value)), max(quantile(1 - tail), float(value))
