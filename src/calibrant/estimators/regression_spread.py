"""Predicted spread against errors: per bin of the spread (ENCE, UCE and relatives), and as a whole."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from scipy.special import gammaln

from calibrant.data.forecasts import Forecast, Samples
from calibrant.data.predictions import BinnedColumns, Column, Columns
from calibrant.estimators import regression_common as common
from calibrant.estimators.binned import result, signed_root, swept, with_norm
from calibrant.estimators.regression_common import ForecastData
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import effective_n
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import Binning, EqualMass
from calibrant.table.bintable import BinTable, fine


@estimates("relative spread error", norm=1)
def ence(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: Binning = EqualMass(10),
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Expected normalised calibration error, ENCE: relative gap of error and spread, in bins of the predicted spread.

    .. math:: \sum_k \frac{w_k}{W} \frac{\lvert \mathrm{RMV}_k - \mathrm{RMSE}_k\rvert}{\mathrm{RMV}_k}, \qquad
              \mathrm{RMV}_k^2 = \overline{\sigma^2}, \quad \mathrm{RMSE}_k^2 = \overline{(y-\mu)^2} \text{ in bin } k

    ``details["mean_over_bins"]`` is the plain mean of the same gaps over the bins, equation 8 of the paper. Both are
    the same with bins of equal size; where ties or other edges make bins unequal, a bin of few rows counts less here.
    Equal spreads are never split, so the result does not depend on the order of rows; a constant spread is one bin.
    Too large a spread adds at most 1, too small a spread is not bounded.

    A calibrated forecaster does not score 0: noise alone gives about :math:`\sqrt{(\kappa-1) K / 2\pi n}` with K
    bins and errors of kurtosis κ. ``details["null"]`` holds that level (exact in the spread of sigma within bins
    and in small bins), its 95 % range, and the same for Gaussian errors.

    For ensembles (`Samples`) μ and σ are the mean and the standard deviation of outcome and draws together, see
    `Samples.pooled`: each ratio is then 1 for a calibrated ensemble of any distribution and any number m of draws, and
    at most √m.

    Parameters
    ----------
    data : Gaussian, Distribution, Samples, BinTable, or y_true (then `mean` and `std`)
        Several outputs are pooled, and the value of each one is in ``details["outputs"]``.
    bins : Binning
        How to cut the predicted standard deviations.

    References
    ----------
    Levi, Gispan, Giladi, Fetaya (2022), Evaluating and Calibrating Uncertainty Prediction in Regression Tasks,
    eq. 6-8; Pernot (2023), Properties of the ENCE and other MAD-based calibration metrics.

    Examples
    --------
    >>> import calibrant as cal
    >>> e = ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=cal.EqualMass(2))
    >>> e
    <ENCE 0.5, n=4, EqualMass(n_bins=2)>
    """
    data = common.table_or_forecast(data, mean, std)
    table, method = common.spread_table(data, None, None, bins, needed_by="ence")
    details = common.by_output(data, lambda output: ence(output, bins=bins))
    return _ence_result(table, "ENCE", method, _kurtosis(data, table), **details)


@estimates("variance error")
def uce(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: Binning = EqualMass(10),
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Uncertainty calibration error, UCE: gap of mean squared error and mean variance, in squared units of the target.

    .. math:: \sum_k \frac{w_k}{W} \bigl\lvert \overline{(y-\mu)^2}_k - \overline{\sigma^2}_k \bigr\rvert

    The paper cuts the variance into bins of equal width: ``bins=EqualWidth(10, low, high)`` in terms of sigma
    is close to that; bins of equal mass vary less.

    References
    ----------
    Laves, Ihler, Fast, Kahrs, Ortmaier (2020), Well-Calibrated Regression Uncertainty in Medical Imaging.

    Examples
    --------
    >>> import calibrant as cal
    >>> uce([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=cal.EqualMass(2)).value
    6.0
    """
    data = common.table_or_forecast(data, mean, std)
    table, method = common.spread_table(data, None, None, bins, needed_by="uce")
    some = table.filled()
    kurtosis = _kurtosis(data, table)
    variance = common.ratio_variance(some, kurtosis)
    shape = 1 / np.maximum(variance, 1e-15)
    gap = 2 * np.exp(shape * np.log(shape) - shape - gammaln(shape + 1))  # E|G - 1| of a Gamma(shape) of mean 1
    sizes = some.share * some.predicted_mean
    sd = np.sqrt(sizes**2 @ np.maximum(variance - gap**2, 0.0))
    null = common.null_reference(sizes @ gap, sd, "gamma law of the mean square per bin", kurtosis=kurtosis)
    details = common.by_output(data, lambda output: uce(output, bins=bins))
    value = some.share @ np.abs(some.observed_mean - some.predicted_mean)
    return result(float(value), "UCE", method, table, null=null, **details)


@estimates("relative spread error", norm=2)
def debiased_ence(
    data: ForecastData = None,
    mean: Column = None,
    std: Column = None,
    *,
    bins: Binning = EqualMass(10),
    **columns: Unpack[BinnedColumns],
) -> Estimate:
    r"""Root mean square relative gap between error and spread over bins, less what noise adds; ENCE_debias (L2).

    .. math:: S = \sum_k \frac{w_k}{W} \Bigl(q_k - \frac{2\sqrt{q_k}}{m_k} + 1\Bigr), \qquad
              \operatorname{sign}(S)\sqrt{\lvert S\rvert}, \qquad q_k = \mathrm{MSE}_k / \mathrm{MV}_k

    where :math:`m_k = \mathrm E\sqrt{G}` for the gamma law G of mean 1 and the variance that the mean squared error of
    a bin has, given its rows and the kurtosis of the errors. Under that law S is unbiased for the sum of
    :math:`(\mathrm{RMSE}_k/\mathrm{RMV}_k - 1)^2`: 0 on average when calibrated, whatever the number of bins. The root
    is on the scale of `ence`, and equals it in large samples where the spread is off by the same factor in every bin.
    It may be negative; ``details["power"]`` is S, and ``details["null"]`` the range of its root for a perfect
    forecaster.

    References
    ----------
    Kumar, Liang, Ma (2019) and Ferro and Fricker (2012), for subtracting the noise from a squared error.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> std = rng.lognormal(0, 0.5, 5000)
    >>> data = cal.Gaussian(1.3 * std * rng.normal(size=5000), np.zeros(5000), std)
    >>> round(cal.ence(data), 2), round(debiased_ence(data), 2)
    (0.3, 0.3)
    """
    data = common.table_or_forecast(data, mean, std)
    table, method = common.spread_table(data, None, None, bins, needed_by="debiased_ence")
    kurtosis, some = _kurtosis(data, table), table.filled()
    ratio, noise = some.observed_mean / some.predicted_mean, common.ratio_variance(some, kurtosis)
    root = common.mean_root(common.ratio_variance(some, common.table_kurtosis(table)))
    power = float(some.share @ (ratio - 2 * np.sqrt(ratio) / root + 1))
    spread = float(np.sqrt(some.share**2 @ (noise**2 / 8)))  # near 1 the gap of roots is half that of the ratios
    null = common.null_reference(0.0, np.sqrt(spread), "gamma law of the mean square per bin", kurtosis=kurtosis)
    null |= {"low": -float(np.sqrt(common.WIDE * spread)), "high": float(np.sqrt(common.WIDE * spread))}
    details = common.by_output(data, lambda output: debiased_ence(output, bins=bins))
    name = with_norm("ENCE_debias", 2)
    return result(float(signed_root(power, 2)), name, method, table, power=power, null=null, **details)


@estimates("relative spread error", norm=1)
def sweep_ence(
    data: ForecastData = None, mean: Column = None, std: Column = None, **columns: Unpack[Columns]
) -> Estimate:
    r"""ENCE with the largest number of equal-mass bins whose mean squared errors rise with the predicted spread.

    The monotone sweep of `sweep_ece` on the table of squared errors: errors grow with a useful spread, so bins whose
    errors are out of order are dominated by noise. Of the ways to choose the number of bins it has the least bias both
    for calibrated and for miscalibrated forecasters. ``details["bins"]`` is the number chosen; the null reference is
    that of `ence` with this many bins.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), for the sweep; Levi et al. (2022), for ENCE.

    Examples
    --------
    >>> sweep_ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.5, 2.0, 2.5])
    <ENCE_sweep 0.4833, n=4, EqualMass(n_bins=4)>
    """
    data = common.table_or_forecast(data, mean, std)
    if not isinstance(data, BinTable):
        common.with_std(data, needed_by="sweep_ence")
    found = swept(fine(data, None, needed_by="sweep_ence", spread=True))
    table: Any = found.bins  # which the sweep always keeps
    details = {"bins": found.details["bins"], **common.by_output(data, sweep_ence)}
    return _ence_result(table, "ENCE_sweep", found.method, _kurtosis(data, table), **details)


def ence_null(table: BinTable, kurtosis: float) -> tuple[float, float]:
    """Mean and standard deviation of the ENCE of a calibrated forecaster with these bins and this kurtosis."""
    some = table.filled()
    gap, sd = common.root_mean_gap(common.ratio_variance(some, kurtosis))
    return float(some.share @ gap), float(np.sqrt(some.share**2 @ sd**2))


def ence_value(table: BinTable) -> float:
    """The sum of the definition over bins that have weight."""
    some = table.filled()
    return float(some.share @ np.abs(1 - np.sqrt(some.observed_mean / some.predicted_mean)))


def _kurtosis(data: BinTable | Forecast, table: BinTable) -> float:
    """Of the errors of a calibrated forecaster: as seen in the table or, for ensembles, that of values exchanged."""
    return exchanged_kurtosis(data) if isinstance(data, Samples) else common.table_kurtosis(table)


def exchanged_kurtosis(data: Samples) -> float:
    """Mean fourth power of the standardised deviations of all m + 1 values, each of which may be the outcome."""
    values = np.column_stack([data.y_true, data.draws]).astype(np.float64, copy=False)
    values = values - values.mean(axis=1, keepdims=True)
    second = (values**2).mean(axis=1)
    known = second > 0
    fourth = (values[known] ** 4).mean(axis=1) / second[known] ** 2
    return common.mean_of(fourth, None if data.weight is None else data.weight[known]) if known.any() else 3.0


def _ence_result(table: BinTable, name: str, method: str, kurtosis: float, **details: Any) -> Estimate:
    center, sd = ence_null(table, kurtosis)
    more = {"low": max(center - 1.96 * sd, 0.0), "kurtosis": kurtosis, "gaussian": ence_null(table, 3.0)[0]}
    null = common.null_reference(center, sd, "gamma law of the mean square per bin", **more)
    some = table.filled()
    gaps = np.abs(1 - np.sqrt(some.observed_mean / some.predicted_mean))
    named = {"largest": float(gaps.max()), "mean_over_bins": float(gaps.mean())}
    return result(ence_value(table), name, method, table, null=null, **named, **details)


@estimates("scale factor", norm="squared")
def mean_squared_z(
    data: ForecastData = None, mean: Column = None, std: Column = None, **columns: Unpack[Columns]
) -> Estimate:
    r"""Mean squared z-score (ZMS, reduced chi square), which is 1 when calibrated.

    .. math:: \frac1W\sum_i w_i \frac{(y_i-\mu_i)^2}{\sigma_i^2}

    Its root is the factor by which STD scaling multiplies every spread. One tiny sigma can dominate the sum:
    ``details["largest_share"]`` is the share of its largest term. The null reference allows for the
    kurtosis of the z-scores. For ensembles it is the square of `scale_factor`.

    Examples
    --------
    >>> mean_squared_z([1.0, -2.0], [0.0, 0.0], [1.0, 1.0])
    <Mean z^2 2.5, n=2, mean>
    """
    return _mean_square(common.table_or_forecast(data, mean, std), needed_by="mean_squared_z")


@estimates("scale factor")
def scale_factor(
    data: ForecastData = None, mean: Column = None, std: Column = None, **columns: Unpack[Columns]
) -> Estimate:
    r"""Root of the mean squared z-score: how many times the predicted spread the errors are, 1 when calibrated.

    .. math:: s = \sqrt{\frac1W\sum_i w_i \frac{(y_i-\mu_i)^2}{\sigma_i^2}}

    the factor by which `calibrant.recalibrate.StdScaling` multiplies every spread: above 1 the model is overconfident.
    ``interval(scale_factor, data)`` allows for heavy tails, see `calibrant.inference.LogScale`.

    The spread of a few draws is itself uncertain, so that z-scores of a calibrated ensemble (`Samples`) have a mean
    square above 1. Of ensembles the factor is the stretch of the draws about their mean that makes outcome and draws
    look exchangeable, 1 when calibrated for any distribution and any number m of draws:

    .. math:: s:\ \overline{D_s^2} = 1, \qquad D_s^2 = \frac{m\,t^2}{m-1+t^2}, \quad
              t^2 = \frac{m}{m+1}\frac{(y-\bar x)^2}{s^2 \hat\sigma^2}

    Parameters
    ----------
    data : Gaussian, Distribution, Samples, fine BinTable, or y_true (then `mean` and `std`)

    References
    ----------
    Levi et al. (2022), eq. 12; Pernot (2022), The long road to calibrated prediction uncertainty, arXiv 2204.13477.

    Examples
    --------
    >>> scale_factor([1.0, -2.0], [0.0, 0.0], [1.0, 1.0])
    <Scale factor 1.581, n=2, root mean z^2>
    """
    found = _mean_square(common.table_or_forecast(data, mean, std), needed_by="scale_factor")
    details = {**found.details, "null": _root_of_null(found.details["null"])}
    if "outputs" in details:
        details["outputs"] = [float(np.sqrt(value)) for value in details["outputs"]]
    return Estimate(float(np.sqrt(found)), name="Scale factor", method="root mean z^2", n=found.n, details=details)


@estimates("dispersion")
def std_dispersion(
    data: ForecastData = None, mean: Column = None, std: Column = None, **columns: Unpack[Columns]
) -> Estimate:
    r"""Coefficient of variation of the predicted standard deviations, C_v.

    .. math:: \frac1{\bar\sigma}\sqrt{\frac{\sum_i (\sigma_i - \bar\sigma)^2}{n-1}}

    It measures how much the predicted spread varies between rows, not whether it is right: a constant spread equal to
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
    data = common.table_or_forecast(data, mean, std)
    weight: Floats | None
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="std_dispersion", spread=True)
        sigma, weight, size = np.sqrt(cells.predicted_mean), cells.weight, cells.n
        ddof = cells.weight_squares.sum() / cells.total
    else:
        rows = common.spread_rows(common.moments(data), needed_by="std_dispersion")
        sigma, weight, size = rows.key, rows.weight, len(rows.key)
        ddof = 1.0 if weight is None else float(weight @ weight / weight.sum())
    null = common.null_reference(0.0, 0.0, "a constant spread; a calibrated one may have any dispersion")
    details = {"null": null, "variance_dispersion": _variation(sigma**2, weight, ddof)}
    details |= common.by_output(data, std_dispersion)
    return Estimate(_variation(sigma, weight, ddof), name="C_v", method="Bessel", n=size, details=details)


def _mean_square(data: BinTable | Forecast, *, needed_by: str) -> Estimate:
    """`mean_squared_z`, with the name of what asks for it."""
    if isinstance(data, Samples):
        return _squared_stretch(data)
    weight: Floats | None
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by=needed_by, spread=True)
        squared, weight, size = cells.observed_mean / cells.predicted_mean, cells.weight, float(cells.n)
        kurtosis = common.table_kurtosis(cells)
    else:
        rows = common.spread_rows(data, needed_by=needed_by)
        squared, weight = rows.observed / rows.predicted, rows.weight
        kurtosis, size = common.squared_error_kurtosis(squared, weight), effective_n(weight, len(squared))
    value = common.mean_of(squared, weight)
    sd = np.sqrt(max(kurtosis - 1, 0.0) / size)
    null = common.null_reference(1.0, sd, "normal approximation of a mean", kurtosis=kurtosis)
    details = {"null": null, "largest_share": _largest_share(squared, weight), **common.by_output(data, mean_squared_z)}
    n = data.n if isinstance(data, BinTable) else len(squared)
    return Estimate(value, name="Mean z^2", method="mean", n=n, details=details)


def _squared_stretch(data: Samples) -> Estimate:
    """`mean_squared_z` of an ensemble: the square of the factor that makes outcome and draws look exchangeable."""
    squares = common.pooled_squares(common.squared_t(data), data.draws.shape[1])
    size, kurtosis = effective_n(data.weight, len(data)), exchanged_kurtosis(data)
    sd = np.sqrt(max(kurtosis - 1, 0.0) / size) / max(stretch_slope(data, 1.0), 1e-12)
    null = common.null_reference(1.0, sd, "outcome exchanged with the draws", kurtosis=kurtosis)
    details = {"null": null, "largest_share": _largest_share(squares, data.weight)}
    return Estimate(common.stretch_factor(data) ** 2, name="Mean z^2", method="stretch", n=len(data), details=details)


def stretch_slope(data: Samples, factor: float) -> float:
    """By how much the mean of the squares of `stretch_factor` falls for a small rise of the logarithm of c²."""
    size = data.draws.shape[1]
    squares = common.pooled_squares(common.squared_t(data) / factor**2, size)
    return common.mean_of(squares * (1 - squares / size), data.weight)


def _largest_share(squared: Floats, weight: Floats | None) -> float:
    terms = squared if weight is None else squared * weight
    total = float(terms.sum())
    return float(terms.max()) / total if total > 0 else 0.0


def _root_of_null(null: dict[str, Any]) -> dict[str, Any]:
    """The null reference of a root, from that of its square."""
    middle, low, high = (float(np.sqrt(max(null[key], 0.0))) for key in ("mean", "low", "high"))
    return {**null, "mean": middle, "sd": null["sd"] / (2 * middle), "low": low, "high": high}


def _variation(values: Floats, weight: Floats | None, ddof: float) -> float:
    center = common.mean_of(values, weight)
    total = len(values) if weight is None else float(weight.sum())
    if total <= ddof:
        return 0.0
    return float(np.sqrt(common.mean_of((values - center) ** 2, weight) * total / (total - ddof)) / center)
