"""The curves behind the regression diagrams, each with the band of a perfect forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtri

from calibrant.data import validation
from calibrant.data.predictions import BinnedColumns, Column, Columns
from calibrant.estimators import regression_common as common
from calibrant.estimators.regression_common import ForecastData
from calibrant.estimators.regression_coverage import central_curve, pit_curve
from calibrant.estimators.regression_spread import ence_null, ence_value
from calibrant.numerics.arrays import Floats
from calibrant.results.target import takes_columns
from calibrant.table.binning import Binning, Distinct, EqualMass, EqualWidth
from calibrant.table.bintable import BinTable, fine

Diagram = Literal["spread", "pit", "interval", "ence"]


@dataclass(frozen=True, eq=False)
class ForecastCurve:
    """Observed values along x, with the mean and the band of a perfect forecaster.

    Attributes
    ----------
    diagram : {"spread", "pit", "interval", "ence"}
        Which figure this is.
    x, observed, expected, low, high : arrays
        The band [low, high] holds a perfect forecaster's value at each x with probability `level`.
    details : dict
        Further numbers, e.g. the ENCE extrapolated to no bins.

    Examples
    --------
    >>> curve = interval_curve([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4, levels=[0.5, 0.9])
    >>> curve
    <ForecastCurve 'interval', 2 points, n=4>
    >>> curve.observed, curve.expected, curve.outside
    (array([0.25, 0.75]), array([0.5, 0.9]), 0)
    """

    diagram: Diagram
    x: Floats
    observed: Floats
    expected: Floats
    low: Floats
    high: Floats
    level: float
    n: int
    details: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<ForecastCurve {self.diagram!r}, {len(self.x)} points, n={self.n:_}>"

    @property
    def outside(self) -> int:
        """At how many points the observed value leaves the band."""
        return int(((self.observed < self.low) | (self.observed > self.high)).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        columns = {name: getattr(self, name).tolist() for name in ("x", "observed", "expected", "low", "high")}
        return {"diagram": self.diagram, "level": self.level, "n": self.n, **columns, "details": self.details}

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the diagram (needs matplotlib)."""
        from calibrant.plot.reliability_diagrams import forecast_diagram

        return forecast_diagram(self, ax=ax, **style)


@takes_columns
def spread_curve(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: Binning = EqualMass(10),
    level: float = 0.95,
    **columns: Unpack[BinnedColumns],
) -> ForecastCurve:
    """RMSE against root mean variance per bin of the predicted spread: the reliability diagram of regression.

    The band is the range in which the RMSE of a calibrated bin stays, given its number of rows and the kurtosis of the
    errors.

    References
    ----------
    Levi et al. (2022), eq. 6-7 and Figure 4.

    Examples
    --------
    >>> curve = spread_curve([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=EqualMass(2))
    >>> curve.x, curve.observed
    (array([1., 2.]), array([1., 4.]))
    """
    level = validation.fraction("level", level)
    some = common.spread_table(data, mean, std, bins, needed_by="spread_curve")[0].filled()
    kurtosis = common.table_kurtosis(some)
    shape = 1 / np.maximum(common.ratio_variance(some, kurtosis), 1e-12)
    spread, error = np.sqrt(some.predicted_mean), np.sqrt(some.observed_mean)
    low, high = (spread * np.sqrt(gammaincinv(shape, (1 + side * level) / 2) / shape) for side in (-1, 1))
    details = {"count": some.count.tolist(), "kurtosis": kurtosis}
    return ForecastCurve("spread", spread, error, spread, low, high, level, some.n, details)


@takes_columns
def pit_histogram(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: EqualWidth | int = EqualWidth(10),
    level: float = 0.95,
    **columns: Unpack[BinnedColumns],
) -> ForecastCurve:
    """Density of the probability integral transforms per bin; 1 everywhere when calibrated.

    A U shape means too narrow, a hump too wide, a slope biased. The band is binomial, bin by bin.

    Examples
    --------
    >>> pit_histogram([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4, bins=EqualWidth(2)).observed
    array([1., 1.])
    """
    task, bins = common.forecast(data, mean, std), common.equal_width(bins)
    curve = pit_curve(task)
    share = 1 / bins.n_bins
    low, high = (bound / share for bound in _binomial_band(np.full(bins.n_bins, share), curve.size, level))
    middle = (bins.edges[1:] + bins.edges[:-1]) / 2
    return ForecastCurve(
        "pit", middle, curve.shares(bins.edges) / share, np.ones(bins.n_bins), low, high, level, task.y_true.size
    )


@takes_columns
def interval_curve(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    levels: ArrayLike | None = None,
    central: bool = True,
    level: float = 0.95,
    **columns: Unpack[Columns],
) -> ForecastCurve:
    """Observed against nominal coverage: of central intervals, or of quantiles with ``central=False``.

    By default at 101 levels, or at those of `Quantiles`. The band is binomial, level by level.

    References
    ----------
    Kuleshov, Fenner, Ermon (2018), calibration plot.

    Examples
    --------
    >>> interval_curve([0.0, 1.0, -1.0, 2.0], [0.0] * 4, [1.0] * 4, levels=[0.5, 0.9]).observed
    array([0.25, 0.75])
    """
    task = common.forecast(data, mean, std)
    own = None if central else getattr(task, "levels", None)
    at = np.linspace(0, 1, 101) if own is None else own
    if levels is not None:
        at = validation.probabilities("levels", levels).astype(np.float64)
    curve = central_curve(task) if central else pit_curve(task)
    low, high = _binomial_band(at, curve.size, level)
    details = {"central": central, "area": curve.distance(1)}
    return ForecastCurve("interval", at, curve(at), at, low, high, level, task.y_true.size, details)


@takes_columns
def ence_curve(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: Sequence[int] | None = None,
    level: float = 0.95,
    **columns: Unpack[BinnedColumns],
) -> ForecastCurve:
    r"""ENCE against the number of equal-mass bins, with its null law :math:`\sqrt{(\kappa-1) K / 2\pi n}`.

    A value on that law is noise, whatever its size. ``details["intercept"]`` extrapolates the line through
    ENCE and the root of the number of bins (those above 16) to none, with its standard error: Pernot's test asks
    whether it is 0. By default bins of at least 30 rows are tried.

    References
    ----------
    Pernot (2023), Properties of the ENCE and other MAD-based calibration metrics, arXiv 2305.11905.

    Examples
    --------
    >>> ence_curve([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=[1, 2]).observed.round(3)
    array([0.844, 0.5  ])
    """
    data = common.table_or_forecast(data, mean, std)
    if not isinstance(data, BinTable):
        data = BinTable.of(common.with_std(data, needed_by="ence_curve"), Distinct())
    cells = fine(data, None, needed_by="ence_curve", spread=True)
    if bins is None:
        tried = np.array([1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 120, 140, 160])
        bins = tried[(tried == 1) | (cells.n / tried > 30)].tolist()
    if not np.iterable(bins):
        validation.fail(f"bins must be several numbers of bins, such as [5, 10, 20], got {bins!r}.", TypeError)
    tables = [cells.coarsen(EqualMass(count)) for count in bins]
    kurtosis = common.table_kurtosis(tables[int(np.argmin(np.abs(np.array(bins) - 20)))])
    law = np.array([ence_null(table, kurtosis) for table in tables])
    values, wide = np.array([ence_value(table) for table in tables]), float(ndtri((1 + level) / 2))
    low, high = np.maximum(law[:, 0] - wide * law[:, 1], 0.0), law[:, 0] + wide * law[:, 1]
    details = {"kurtosis": kurtosis, **_intercept(np.array(bins, dtype=np.float64), values)}
    return ForecastCurve(
        "ence", np.array(bins, dtype=np.float64), values, law[:, 0], low, high, level, cells.n, details
    )


def _intercept(bins: Floats, values: Floats) -> dict[str, float]:
    """Least-squares line of ENCE on the root of the number of bins, at zero."""
    many = bins > 16
    if many.sum() < 3:
        return {}
    (_, intercept), covariance = np.polyfit(np.sqrt(bins[many]), values[many], 1, cov=True)
    return {"intercept": float(intercept), "standard_error": float(np.sqrt(covariance[1, 1]))}


def _binomial_band(share: Floats, size: float, level: float) -> tuple[Floats, Floats]:
    """Normal approximation with a continuity correction of half a row, inside [0, 1]."""
    wide = ndtri((1 + validation.fraction("level", level)) / 2) * np.sqrt(share * (1 - share) / size) + 0.5 / size
    wide = np.where((share == 0) | (share == 1), 0.0, wide)
    return np.maximum(share - wide, 0.0), np.minimum(share + wide, 1.0)
