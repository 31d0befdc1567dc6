"""The predicted spread as a whole: mean squared z-score, scale factor, and coefficient of variation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.forecasts import Forecast, Samples
from calibrant.estimators.regression_common import (
    ForecastData,
    by_output,
    mean_of,
    null_reference,
    spread_rows,
    squared_error_kurtosis,
    table_kurtosis,
    table_or_forecast,
)
from calibrant.estimators.score_references import LEAVE_ONE_OUT, leave_one_out_ensembles
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import effective_n
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import fine


@estimates("scale factor", norm="squared")
def mean_squared_z(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Mean squared z-score (ZMS, reduced chi square), which is 1 when calibrated.

    .. math:: \frac1W\sum_i w_i \frac{(y_i-\mu_i)^2}{\sigma_i^2}

    Its root is the factor by which STD scaling multiplies every spread. One tiny sigma can dominate the sum:
    ``details["largest_share"]`` is the share of its largest term. The null reference allows for the
    kurtosis of the z-scores.

    Examples
    --------
    >>> mean_squared_z([1.0, -2.0], [0.0, 0.0], [1.0, 1.0])
    <Mean z^2 2.5, n=2, mean>
    """
    return _mean_square(table_or_forecast(data, mean, std), needed_by="mean_squared_z")


@estimates("scale factor")
def scale_factor(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Root of the mean squared z-score: how many times the predicted spread the errors are, 1 when calibrated.

    .. math:: s = \sqrt{\frac1W\sum_i w_i \frac{(y_i-\mu_i)^2}{\sigma_i^2}}

    the factor by which `calibrant.recalibrate.StdScaling` multiplies every spread: above 1 the model is overconfident.
    ``interval(scale_factor, data)`` allows for heavy tails, see `calibrant.inference.LogScale`.

    Parameters
    ----------
    data : Gaussian, Distribution, Samples, fine BinTable, or y_true
        What to measure; with plain arrays, `mean` and `std` come next.

    References
    ----------
    Levi et al. (2022), section 4; Pernot (2022), The long road to calibrated prediction uncertainty, arXiv 2204.13477.

    Examples
    --------
    >>> scale_factor([1.0, -2.0], [0.0, 0.0], [1.0, 1.0])
    <Scale factor 1.581, n=2, root mean z^2>
    """
    found = _mean_square(table_or_forecast(data, mean, std), needed_by="scale_factor")
    details = {**found.details, "null": _root_of_null(found.details["null"])}
    if "outputs" in details:
        details["outputs"] = [float(np.sqrt(value)) for value in details["outputs"]]
    return Estimate(float(np.sqrt(found)), name="Scale factor", method="root mean z^2", n=found.n, details=details)


@estimates("dispersion")
def std_dispersion(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Coefficient of variation of the predicted standard deviations, C_v.

    .. math:: \frac1{\bar\sigma}\sqrt{\frac{\sum_i (\sigma_i - \bar\sigma)^2}{n-1}}

    Measures how much the predicted spread differs between rows, not whether it is right: a constant spread equal to
    the overall error has an ENCE near 0 and a C_v of 0. A calibrated forecaster may have any value; the null reference
    is that of a constant spread. ``details["variance_dispersion"]`` is the same for the predicted variances.

    References
    ----------
    Levi et al. (2022), eq. 9. The 0.79 in its Figure 2 is that of the variances; eq. 9 gives 0.47 there.

    Examples
    --------
    >>> std_dispersion([0.0, 0.0, 0.0], [0.0] * 3, [1.0, 2.0, 3.0]).value
    0.5
    """
    data = table_or_forecast(data, mean, std)
    weight: Floats | None
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="std_dispersion", spread=True)
        sigma, weight, size = np.sqrt(cells.predicted_mean), cells.weight, cells.n
        ddof = cells.weight_squares.sum() / cells.total
    else:
        rows = spread_rows(data, needed_by="std_dispersion")
        sigma, weight, size = rows.key, rows.weight, len(rows.key)
        ddof = 1.0 if weight is None else float(weight @ weight / weight.sum())
    null = null_reference(0.0, 0.0, "a constant spread; a calibrated one may have any dispersion")
    details = {
        "null": null,
        "variance_dispersion": _variation(sigma**2, weight, ddof),
        **by_output(data, std_dispersion),
    }
    return Estimate(_variation(sigma, weight, ddof), name="C_v", method="Bessel", n=size, details=details)


def _mean_square(data: BinTable | Forecast, *, needed_by: str) -> Estimate:
    """`mean_squared_z`, with the name of what asks for it."""
    weight: Floats | None
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by=needed_by, spread=True)
        squared, weight, size = cells.observed_mean / cells.predicted_mean, cells.weight, float(cells.n)
        kurtosis = table_kurtosis(cells)
    else:
        rows = spread_rows(data, needed_by=needed_by)
        squared, weight = rows.observed / rows.predicted, rows.weight
        kurtosis, size = squared_error_kurtosis(squared, weight), effective_n(weight, len(squared))
    value = mean_of(squared, weight)
    largest = float((squared if weight is None else squared * weight).max())
    total = value * (len(squared) if weight is None else float(weight.sum()))
    null = null_reference(
        1.0, np.sqrt(max(kurtosis - 1, 0.0) / size), "normal approximation of a mean", kurtosis=kurtosis
    )
    if isinstance(data, Samples):
        means = [
            mean_of(rows.observed / rows.predicted, data.weight)
            for rows in map(Samples.rows, leave_one_out_ensembles(data))
        ]
        null |= null_reference(float(np.mean(means)), null["sd"], LEAVE_ONE_OUT) if means else {}
    return Estimate(
        value,
        name="Mean z^2",
        method="mean",
        n=data.n if isinstance(data, BinTable) else len(squared),
        details={
            "null": null,
            "largest_share": largest / total if total > 0 else 0.0,
            **by_output(data, mean_squared_z),
        },
    )


def _root_of_null(null: dict[str, Any]) -> dict[str, Any]:
    """The null reference of a root, from that of its square."""
    middle, low, high = (float(np.sqrt(max(null[key], 0.0))) for key in ("mean", "low", "high"))
    return {**null, "mean": middle, "sd": null["sd"] / (2 * middle), "low": low, "high": high}


def _variation(values: Floats, weight: Floats | None, ddof: float) -> float:
    center = mean_of(values, weight)
    total = len(values) if weight is None else float(weight.sum())
    if total <= ddof:
        return 0.0
    return float(np.sqrt(mean_of((values - center) ** 2, weight) * total / (total - ddof)) / center)
