"""Confidence intervals by inverting a test along a path of hypotheses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.numerics.arrays import Floats

#: Share of alpha that the quantiles use; the rest is reserved for the true shape not being that of the path.
ALPHA_SHARE = 0.7


def tail_risk(level: float, *, one_sided: bool = False) -> float:
    """The probability that the quantiles of an inverted test leave in each tail."""
    return ALPHA_SHARE * (1 - level) / (1 if one_sided else 2)


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
    def of(cls, truth: Floats, drawn: Floats, risk: float) -> InvertedPath:
        """From the statistics drawn under each hypothesis (a row each), which need not be in order."""
        low, high, middle = np.quantile(drawn, [risk, 1 - risk, 0.5], axis=1)
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
