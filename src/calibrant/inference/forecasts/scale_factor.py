"""The factor between predicted spreads and errors: interval and test that heavy tails do not mislead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.inference.forecasts.spread_cells import SpreadCells
from calibrant.inference.forecasts.spread_fit import missing_mass, require_errors
from calibrant.inference.forecasts.spread_inversion import TAILS
from calibrant.results.estimate import Interval
from calibrant.results.target import Target


@dataclass(frozen=True)
class LogMeanSquare:
    r"""The logarithm L of the mean squared z-score, its standard error, and how much too low it may be.

    .. math:: L = \log \overline{z^2}, \qquad \mathrm{se}^2 = \frac{\kappa - 1}{N - 1},

    with κ the kurtosis of the z-scores; over clusters where there are some. A sample without the rare large errors of
    its population looks too small and too quiet at once: `missing` is what the largest term suggests may be absent
    from L.

    Attributes
    ----------
    value, error, missing : float
        L, its standard error, and the largest amount by which L is allowed to be too low.
    heavy_tails : bool
        Whether the effective number of rows is less than 20 (κ - 1).
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

    def interval(self, data: Any, target: Target, *, level: float = 0.95) -> Interval:
        """The interval of the factor, or of its square for a target of norm "squared"."""
        level = validation.fraction("level", level)
        if target.quantity != "scale factor":
            message = f"LogScale is for scale_factor and mean_squared_z, not for a target {str(target)!r}."
            raise TypeError(message)
        found = LogMeanSquare.of(data, needed_by="LogScale")
        power = 1.0 if target.norm == "squared" else 0.5
        low, high = (float(np.exp(power * end)) for end in found.ends(level))
        words = "independent rows (or clusters); a finite fourth moment of the errors"
        words = f"{TAILS}; {words}" if found.heavy_tails else words
        return Interval(low, high, level=level, method=repr(self), assumption=words, target=target)
