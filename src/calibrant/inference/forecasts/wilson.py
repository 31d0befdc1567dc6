"""Wilson's interval of a share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.design_effect import row_clusters, rows_that_count
from calibrant.results.estimate import Estimate, Interval


@dataclass(frozen=True)
class Wilson:
    r"""Wilson's interval of a share of rows, such as one coverage.

    .. math:: \frac{\hat p + z^2/2N \pm z\sqrt{\hat p(1-\hat p)/N + z^2/4N^2}}{1 + z^2/N}

    with N Kish's number of rows, divided by the design effect of clusters.

    References
    ----------
    Wilson (1927), Probable Inference, the Law of Succession, and Statistical Inference.

    Examples
    --------
    >>> import calibrant as cal
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> str(cal.interval(cal.coverage, cal.Gaussian(y, np.zeros(500), np.ones(500))).interval)
    '[0.8906, 0.939]'
    """

    def interval(self, data: Any, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of an estimate that is a mean of zeros and ones."""
        from scipy.special import ndtri

        level = validation.fraction("level", level)
        losses = None if estimate.target is None else estimate.target.losses
        if losses is None or not isinstance(data, Forecast):
            message = f"Wilson needs a share of rows of a forecast, such as coverage, not {estimate!r}."
            raise InvalidPredictions(message)
        inside = losses(data)
        clusters = row_clusters(data, len(inside))
        size = rows_that_count(data.flat_weight, [inside - float(estimate)], clusters, len(inside))
        share, square = min(max(float(estimate), 0.0), 1.0), float(ndtri((1 + level) / 2)) ** 2
        middle = (share + square / (2 * size)) / (1 + square / size)
        reach = np.sqrt(square * share * (1 - share) / size + (square / (2 * size)) ** 2) / (1 + square / size)
        words = "independent rows (or clusters)"
        low = 0.0 if share == 0 else float(middle - reach)
        high = 1.0 if share == 1 else float(middle + reach)
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=estimate.target)
