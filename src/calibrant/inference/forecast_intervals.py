"""Intervals of the scale factor of predicted spreads, and of one coverage; also over few clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.data import validation
from calibrant.data.forecasts import Forecast
from calibrant.data.validation import fail
from calibrant.inference.inversion.spread import TAILS
from calibrant.inference.inversion.spread_fit import SpreadCells, missing_mass, require_errors
from calibrant.inference.sample import row_clusters, rows_that_count
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.target import Target


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

    serves: ClassVar[str] = "forecasts"

    def interval(self, data: Any, estimate: Estimate, *, level: float = 0.95) -> Interval:
        """The interval of an estimate that is a mean of zeros and ones."""
        from scipy.special import ndtri

        level = validation.fraction("level", level)
        losses = None if estimate.target is None else estimate.target.losses
        if losses is None or not isinstance(data, Forecast):
            fail(f"Wilson needs a share of rows of a forecast, such as coverage, not {estimate!r}.")
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


@dataclass(frozen=True)
class LogMeanSquare:
    r"""The logarithm L of the mean squared z-score, its standard error, and the most that it may be too low by.

    .. math:: L = \log \overline{z^2}, \qquad \mathrm{se}^2 = \frac{\kappa - 1}{N - 1},

    with κ the kurtosis of the z-scores; over clusters where there are some. A sample without the rare large errors of
    its population looks too small and too quiet at once: `missing` is what the largest term suggests may be absent from
    L.
    """

    value: float
    error: float
    missing: float
    heavy_tails: bool

    @classmethod
    def of(cls, data: Any, *, needed_by: str) -> LogMeanSquare:
        """From forecasts that have a standard deviation, or a fine table of them."""
        cells = SpreadCells.of(data, needed_by=needed_by)
        require_errors(cells)
        mean = cells.mean_square
        if cells.cluster is None or cells.row_share is None or cells.row_second is None:
            size = cells.effective_n
            squares = max(float(cells.fourth.sum()) / mean**2 - 1, 0.0) / size
        else:
            terms = np.bincount(cells.cluster, cells.row_share * cells.row_second)
            share = np.bincount(cells.cluster, cells.row_share)
            size = 1 / float(share @ share)
            squares = float(((terms - mean * share) ** 2).sum()) / mean**2
        variance = squares * size / max(size - 1, 1.0)
        kurtosis = 1 + variance * size
        missing = missing_mass(kurtosis, cells.largest_share)
        return cls(float(np.log(mean)), float(np.sqrt(variance)), missing, cells.heavy_tails(size, kurtosis))

    def statistic(self, null: float = 0.0) -> float:
        """L less its null value over its standard error; below it L is first raised by what may be missing."""
        apart = self.value - null
        toward = apart if apart > 0 else min(apart + self.missing, 0.0)
        if self.error > 0:
            return toward / self.error
        return 0.0 if toward == 0 else float(np.copysign(np.inf, toward))

    def ends(self, level: float) -> tuple[float, float]:
        """The interval of L."""
        from scipy.special import ndtri

        reach = float(ndtri((1 + level) / 2)) * self.error
        return self.value - reach, self.value + reach + self.missing


@dataclass(frozen=True)
class LogScale:
    r"""Interval of the scale factor (or of its square, the mean squared z-score) on the logarithmic scale.

    .. math:: s \in \exp\bigl(\tfrac12 [L - z\,\mathrm{se},\; L + z\,\mathrm{se} + m]\bigr), \qquad
              L = \log\overline{z^2}, \quad \mathrm{se}^2 = \frac{\kappa-1}{N-1}

    with m the amount by which L may be too low because rare large errors are not in the sample: between 1.5 and 3 times
    the share of the largest term in the sum of z², more with heavier tails. Clusters are summed first, and weights
    count by Kish's number of rows.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(1, 3, 1000)
    >>> found = cal.interval(cal.scale_factor, cal.Gaussian(1.2 * std * rng.normal(size=1000), np.zeros(1000), std))
    >>> str(found.interval), str(found.interval.target)
    ('[1.18, 1.293]', 'scale factor')
    """

    serves: ClassVar[str] = "forecasts"

    def interval(self, data: Any, target: Target, *, level: float = 0.95) -> Interval:
        """The interval of the factor, or of its square for a target of norm "squared"."""
        level = validation.fraction("level", level)
        if target.quantity != "scale factor":
            fail(f"LogScale is for scale_factor and mean_squared_z, not for a target {str(target)!r}.", TypeError)
        found = LogMeanSquare.of(data, needed_by="LogScale")
        power = 1.0 if target.norm == "squared" else 0.5
        low, high = (float(np.exp(power * end)) for end in found.ends(level))
        words = "independent rows (or clusters); a finite fourth moment of the errors"
        words = f"{TAILS}; {words}" if found.heavy_tails else words
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=target)
