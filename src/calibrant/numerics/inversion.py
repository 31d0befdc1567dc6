"""Confidence intervals by inverting a test along a path of hypotheses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant.numerics.arrays import Floats

#: Draws that must lie beyond a quantile for them to tell where it is.
BEYOND = 5

#: Simulated samples at most, unless more are asked for: up to levels of 0.999.
MOST_DRAWS = 15_000

#: Share of alpha that the quantiles use; the rest is reserved for the true shape not being that of the path. With all
#: of alpha, binary intervals covered as little as 0.88 in some published settings, at a level of 0.95.
ALPHA_SHARE = 0.7


def tail_risk(level: float, *, one_sided: bool = False) -> float:
    """The probability that the quantiles of an inverted test leave in each tail."""
    return ALPHA_SHARE * (1 - level) / (1 if one_sided else 2)


def enough_draws(draws: int, risk: float) -> int:
    """The number of draws, or more of them if fewer than `BEYOND` would lie beyond the quantiles.

    >>> enough_draws(299, tail_risk(0.95)), enough_draws(299, tail_risk(0.99))
    (299, 1429)
    """
    needed = int(np.ceil(BEYOND / risk))
    if needed > max(draws, MOST_DRAWS):
        message = (
            f"level is too close to 1: its quantiles need {needed:_} simulated samples, and at most {MOST_DRAWS:_} are "
            "simulated unless more are asked for (draws=...)."
        )
        raise ValueError(message)
    return max(draws, needed)


@dataclass(frozen=True, eq=False)
class InvertedPath:
    """Hypothetical errors, rising, with a low and a high quantile of the statistic under each.

    Attributes
    ----------
    truth : array
        The hypothetical errors, in ascending order.
    low, high : array
        Quantiles of the statistic, made monotone by their running maximum.
    typical : float
        The median of the statistic under the first hypothesis.
    """

    truth: Floats
    low: Floats
    high: Floats
    typical: float

    @classmethod
    def of(cls, truth: Floats, drawn: Floats, risk: float, *, steepness: float | None = None) -> InvertedPath:
        """From the statistics drawn under each hypothesis (a row each), which need not be in order.

        The draws do not tell a quantile that fewer than `BEYOND` of them exceed. If the statistic is a function of
        standard normal variables that changes by at most `steepness` times their distance, its quantile at Φ(z + x) is
        at most `steepness` x above that at Φ(z) (the Gaussian isoperimetric inequality: Borell 1975, Sudakov and
        Tsirelson 1974), and so from the last quantile the draws tell the others are bounded.
        """
        told = risk if steepness is None else max(risk, BEYOND / drawn.shape[1])
        low, high, middle = np.quantile(drawn, [told, 1 - told, 0.5], axis=1)
        if steepness is not None and told > risk:
            farther = steepness * float(ndtri(told) - ndtri(risk))
            low, high = low - farther, high + farther
        order = np.argsort(truth, kind="stable")
        return cls(
            np.asarray(truth, dtype=np.float64)[order],
            np.maximum.accumulate(low[order]),
            np.maximum.accumulate(high[order]),
            float(middle[0]),
        )

    def lower_end(self, observed: float) -> float:
        """The smallest error under which the statistic may be as large as observed; else the largest one tried."""
        return self._crossing(observed, self.high, int(np.searchsorted(self.high, observed, side="left")))

    def upper_end(self, observed: float) -> float:
        """The largest error under which the statistic may be as small as observed."""
        return self._crossing(observed, self.low, int(np.searchsorted(self.low, observed, side="right")))

    def _crossing(self, observed: float, quantile: Floats, after: int) -> float:
        if after in (0, len(quantile)):
            return float(self.truth[min(after, len(quantile) - 1)])
        step = slice(after - 1, after + 1)
        return float(np.interp(observed, quantile[step], self.truth[step]))


def widened(low: float, high: float, center: float, reach: float) -> tuple[float, float]:
    """Both ends moved away from the centre by an independent error: distances add in squares. Zero stays zero."""
    center = float(min(max(center, low), high))
    bottom = 0.0 if low <= 0 else max(center - float(np.hypot(center - low, reach)), 0.0)
    return bottom, center + float(np.hypot(high - center, reach))
