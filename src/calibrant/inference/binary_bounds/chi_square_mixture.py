"""Interval for the squared binned error: a sum of squares of nearly normal gaps, with a known distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.data import validation
from calibrant.data.predictions import Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Interval
from calibrant.results.target import Target
from calibrant.table.binning import Cut, EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import binned


@dataclass(frozen=True)
class ChiSquareMixture:
    r"""All L2 errors of the bins that a test by the sum of squared gaps does not reject, without resampling.

    With share :math:`s_k` and variance :math:`v_k` of the gap of bin k, the statistic :math:`\sum_k s_k g_k^2` is a
    mixture of non-central chi squares with weights :math:`s_k v_k`. Its mean, variance and skewness along multiples of
    the fitted gaps are known, and a gamma distribution with these moments gives its quantiles, both at zero error and
    far from it (there it is the normal interval of the debiased U-statistic). The sampling variance of the scores is
    added.

    The target is the error of the *binned* model, which is below the true error if the gap varies within bins.

    Parameters
    ----------
    bins : EqualWidth, EqualMass or Edges

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> data = cal.Binary(rng.random(1000) < 0.5 + 0.6 * (p - 0.5), p)
    >>> found = cal.interval(partial(cal.ece, norm=2), data, method=cal.inference.ChiSquareMixture(cal.EqualMass(10)))
    >>> found.interval.low > 0
    True
    """

    bins: Cut | int = EqualMass(15)

    def interval(self, data: Predictions | BinTable, *, norm: float = 2, level: float = 0.95) -> Interval:
        """The interval for the L2 error."""
        if norm != 2:
            message = f"ChiSquareMixture is for the L2 norm, got norm={norm!r}; use Inversion() or IsotonicBand()."
            raise ValueError(message)
        if getattr(data, "group", None) is not None:
            message = "ChiSquareMixture needs independent rows, but these have a group; use Inversion()."
            raise InvalidPredictions(message)
        risk = (1 - validation.fraction("level", level)) / 2
        some = binned(data, None, self.bins)[0].filled()
        gap, share = some.predicted_mean - some.observed_mean, some.share
        rows = some.total**2 / float(some.weight_squares.sum())
        floor = 0.25 / some.effective_count**2  # a bin with only one outcome is not free of noise
        variance = np.fmax(some.task.gap_variance(some) / share**2, floor)
        null_variance = np.clip(some.predicted_mean * (1 - some.predicted_mean), 0, None) / some.effective_count
        size = float(share @ gap**2)
        reach = float(np.sqrt(share @ (variance + null_variance)) / max(np.sqrt(size), 1e-300))
        multiples = np.linspace(0, 1 + 4 * min(reach, 1e6), 257)
        mix = np.minimum(multiples, 1.0)[:, None] ** 2  # at zero error the variance is that of a calibrated model
        spread = np.maximum((1 - mix) * null_variance + mix * variance, 1e-18)
        low, high = _quantiles(multiples[:, None] * gap, share, spread, rows, risk)
        kept = np.flatnonzero((low <= size) & (size <= high))
        truth = multiples * np.sqrt(size)
        ends = (truth[kept[0]], truth[kept[-1]]) if len(kept) else (0.0, 0.0)
        words = "independent rows; the target is the error of the binned model; approximate in small bins"
        low_end, high_end = float(ends[0]), float(ends[1])
        target = Target("binned error", 2)
        return Interval(low_end, high_end, level=level, method=repr(self), assumption=words, target=target)


def _quantiles(gaps: Floats, share: Floats, variance: Floats, rows: float, risk: float) -> tuple[Floats, Floats]:
    """Two quantiles of the sum of squares per row of true gaps, by a gamma distribution with the same three moments."""
    from scipy.special import gammaincinv

    weights, centre = share * variance, gaps**2 / variance
    mean = (weights * (1 + centre)).sum(axis=1)
    second = 2 * (weights**2 * (1 + 2 * centre)).sum(axis=1)
    third = 8 * (weights**3 * (1 + 3 * centre)).sum(axis=1)
    squares = gaps**2
    sampled = ((squares - (squares @ share)[:, None]) ** 2 @ share) / rows
    total = second + sampled
    shape = 4 * total**3 / np.maximum(third**2, 1e-300)
    low, high = (mean + np.sqrt(total) * (gammaincinv(shape, at) - shape) / np.sqrt(shape) for at in (risk, 1 - risk))
    return low, high
