"""Does the predicted spread match the errors? ENCE and its family, from one table of squared spreads and errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.binning import Binning, EqualMass
from calibrant.bintable import BinTable
from calibrant.estimate import Estimate
from calibrant.estimators.common import fine, result
from calibrant.estimators.forecast import (
    ForecastData,
    by_output,
    effective_size,
    forecast,
    mean_of,
    null_reference,
    ratio_variance,
    root_mean_gap,
    spread_pairs,
    spread_table,
    squared_error_kurtosis,
    table_kurtosis,
)
from calibrant.estimators.sweep import sweep_ece
from calibrant.kernels import Floats


def ence(
    data: ForecastData,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    /,
    *,
    bins: Binning = EqualMass(10),
) -> Estimate:
    r"""Expected normalised calibration error, ENCE: relative gap of error and predicted spread over bins of the spread.

    .. math:: \sum_k \frac{w_k}{W} \frac{\lvert \mathrm{RMV}_k - \mathrm{RMSE}_k\rvert}{\mathrm{RMV}_k}, \qquad
              \mathrm{RMV}_k^2 = \overline{\sigma^2}, \quad \mathrm{RMSE}_k^2 = \overline{(y-\mu)^2} \text{ in bin } k

    With bins of equal size this is the paper's mean over bins. Equal spreads never part, so the result does not
    depend on the order of rows; a constant spread is one bin. Under-confidence counts at most 1, over-confidence
    has no bound.

    A calibrated forecaster does not score 0: noise alone gives about :math:`\sqrt{(\kappa-1) K / 2\pi n}` with K
    bins and errors of kurtosis κ. ``details["null"]`` holds that level (exact in the spread of sigma within bins
    and in small bins), its 95 % range, and the same for Gaussian errors.

    Parameters
    ----------
    data : Gaussian, Distribution, Samples, BinTable, or y_true
        What to measure; with plain arrays, `mean` and `std` come next. Several outputs are pooled, and each one's
        value stands in ``details["outputs"]``.
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
    <ENCE 0.5, n=4, EqualMass(n=2)>
    """
    table, method = spread_table(data, mean, std, bins, needed_by="ence")
    return _ence_result(table, "ENCE", method, **by_output(data, lambda output: ence(output, bins=bins)))


def uce(
    data: ForecastData,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    /,
    *,
    bins: Binning = EqualMass(10),
) -> Estimate:
    r"""Uncertainty calibration error, UCE: gap of mean squared error and mean variance, in squared units of the target.

    .. math:: \sum_k \frac{w_k}{W} \bigl\lvert \overline{(y-\mu)^2}_k - \overline{\sigma^2}_k \bigr\rvert

    The paper cuts the variance into bins of equal width: ``bins=EqualWidth(10, low, high)`` in terms of sigma
    comes near; bins of equal mass are steadier.

    References
    ----------
    Laves, Ihler, Fast, Kahrs, Ortmaier (2020), Well-Calibrated Regression Uncertainty in Medical Imaging.

    Examples
    --------
    >>> import calibrant as cal
    >>> uce([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=cal.EqualMass(2)).value
    6.0
    """
    from scipy.special import gammaln

    table, method = spread_table(data, mean, std, bins, needed_by="uce")
    some = table.filled()
    value = float(some.share @ np.abs(some.observed_mean - some.predicted_mean))
    kurtosis = table_kurtosis(table)
    variance = ratio_variance(some, kurtosis)
    shape = 1 / np.maximum(variance, 1e-15)
    gap = 2 * np.exp(shape * np.log(shape) - shape - gammaln(shape + 1))  # E|G - 1| of a Gamma(shape) of mean 1
    sizes = some.share * some.predicted_mean
    sd = np.sqrt(sizes**2 @ np.maximum(variance - gap**2, 0.0))
    null = null_reference(sizes @ gap, sd, "gamma law of the mean square per bin", kurtosis=kurtosis)
    details = by_output(data, lambda output: uce(output, bins=bins))
    return result(value, "UCE", method, table, null=null, **details)


def debiased_ence(
    data: ForecastData,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    /,
    *,
    bins: Binning = EqualMass(10),
) -> Estimate:
    r"""Squared relative variance error over bins without the bias of noise: zero on average when calibrated.

    .. math:: \sum_k \frac{w_k}{W} \frac{(\sum_i a_i)^2 - \sum_i a_i^2}{n_k (n_k - 1)}, \qquad
              a_i = \frac{(y_i - \mu_i)^2 - \sigma_i^2}{\overline{\sigma^2}_k}

    a U-statistic of :math:`(\mathrm{MSE}_k / \mathrm{MV}_k - 1)^2`, which unlike `ence` does not grow with the number
    of bins. It may be negative. Near calibration it is four times the square of the relative error of the spread:
    ``details["relative"]`` is sign(S) sqrt(abs(S)) / 2, on the scale of `ence`. A bin of one row adds nothing.

    Examples
    --------
    >>> import calibrant as cal
    >>> debiased_ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=cal.EqualMass(2)).value
    4.5
    """
    table, method = spread_table(data, mean, std, bins, needed_by="debiased_ence")
    some = table.filled()
    variance, unit = some.predicted_mean, some.weight_squares / some.weight
    total = (some.observed - some.predicted) / variance
    squares = (some.observed_squares - 2 * some.product + some.predicted_squares) / variance**2
    several = some.effective_count > 1 + 1e-9
    room = np.where(several, some.weight * (some.weight - unit), 1.0)
    value = float(some.share @ np.where(several, (total**2 - unit * squares) / room, 0.0))
    kurtosis = table_kurtosis(table)
    noise = ratio_variance(some, kurtosis)
    count = np.maximum(some.effective_count, 1 + 1e-9)
    sd = float(np.sqrt(some.share**2 @ np.where(several, 2 * noise**2 * count / (count - 1), 0.0)))
    null = null_reference(0.0, sd, "U-statistic of calibrated rows", kurtosis=kurtosis)
    details = by_output(data, lambda output: debiased_ence(output, bins=bins))
    relative = float(np.sign(value) * np.sqrt(abs(value)) / 2)
    return result(value, "ENCE_debias", method, table, relative=relative, null=null, **details)


def sweep_ence(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""ENCE with the most equal-mass bins whose mean squared errors rise with the predicted spread.

    The monotone sweep of `sweep_ece` on the table of squared errors: a useful spread sorts the errors, so bins in
    disorder are too small to be believed. Of the ways to choose the number of bins it has the least bias both for
    calibrated and for miscalibrated forecasters. ``details["bins"]`` is the number chosen; the null reference is
    that of `ence` with this many bins.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), for the sweep; Levi et al. (2022), for ENCE.

    Examples
    --------
    >>> sweep_ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.5, 2.0, 2.5])
    <ENCE_sweep 0.4833, n=4, EqualMass(n=4)>
    """
    if isinstance(data, BinTable):
        swept = sweep_ece(data)
    else:
        task = forecast(data, mean, std)
        spread_pairs(task, needed_by="sweep_ence")
        swept = sweep_ece(task)
    table = swept.bins
    if table is None:  # pragma: no cover - the sweep always keeps its table
        raise RuntimeError(repr(swept))
    details = by_output(data, sweep_ence)
    return _ence_result(table, "ENCE_sweep", swept.method, bins=swept.details["bins"], **details)


def mean_squared_z(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Mean squared z-score (ZMS, reduced chi square), which is 1 when calibrated.

    .. math:: \frac1W\sum_i w_i \frac{(y_i-\mu_i)^2}{\sigma_i^2}

    Its root is the factor by which STD scaling multiplies every spread. One tiny sigma can carry the whole sum:
    ``details["largest_share"]`` is the part that the largest term has in it. The null reference allows for the
    kurtosis of the z-scores.

    Examples
    --------
    >>> mean_squared_z([1.0, -2.0], [0.0, 0.0], [1.0, 1.0])
    <Mean z^2 2.5, n=2, mean>
    """
    weight: Floats | None
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="mean_squared_z")
        squared, weight, size = cells.observed_mean / cells.predicted_mean, cells.weight, float(cells.n)
        kurtosis = table_kurtosis(cells)
    else:
        task = forecast(data, mean, std)
        pairs = spread_pairs(task, needed_by="mean_squared_z")
        squared, weight = pairs.observed / pairs.predicted, pairs.weight
        kurtosis, size = squared_error_kurtosis(squared, weight), effective_size(weight, len(squared))
    value = mean_of(squared, weight)
    largest = float((squared if weight is None else squared * weight).max())
    total = value * (len(squared) if weight is None else float(weight.sum()))
    null = null_reference(1.0, np.sqrt(max(kurtosis - 1, 0.0) / size), "normal law of a mean", kurtosis=kurtosis)
    return Estimate(
        value,
        name="Mean z^2",
        method="mean",
        n=data.n if isinstance(data, BinTable) else len(squared),
        details={"null": null, "largest_share": largest / total, **by_output(data, mean_squared_z)},
    )


def std_dispersion(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Coefficient of variation of the predicted standard deviations, C_v.

    .. math:: \frac1{\bar\sigma}\sqrt{\frac{\sum_i (\sigma_i - \bar\sigma)^2}{n-1}}

    Says whether the spread tells rows apart, not whether it is right: a constant spread equal to the overall error
    has an ENCE near 0 and a C_v of 0. No value belongs to a calibrated forecaster; the null reference is that of
    the constant one. ``details["variance_dispersion"]`` is the same for the predicted variances.

    References
    ----------
    Levi et al. (2022), eq. 9. The 0.79 in its Figure 2 is that of the variances; eq. 9 gives 0.47 there.

    Examples
    --------
    >>> std_dispersion([0.0, 0.0, 0.0], [0.0] * 3, [1.0, 2.0, 3.0]).value
    0.5
    """
    weight: Floats | None
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="std_dispersion")
        sigma, weight, size = np.sqrt(cells.predicted_mean), cells.weight, cells.n
        lost = cells.weight_squares.sum() / cells.total
    else:
        task = forecast(data, mean, std)
        pairs = spread_pairs(task, needed_by="std_dispersion")
        sigma, weight, size = pairs.key, pairs.weight, len(pairs.key)
        lost = 1.0 if weight is None else float(weight @ weight / weight.sum())
    null = null_reference(0.0, 0.0, "a constant spread; a calibrated one may have any dispersion")
    details = {
        "null": null,
        "variance_dispersion": _variation(sigma**2, weight, lost),
        **by_output(data, std_dispersion),
    }
    return Estimate(_variation(sigma, weight, lost), name="C_v", method="Bessel", n=size, details=details)


def ence_null(table: BinTable, kurtosis: float) -> tuple[float, float]:
    """Mean and standard deviation of the ENCE of a calibrated forecaster with these bins and this kurtosis."""
    some = table.filled()
    gap, sd = root_mean_gap(ratio_variance(some, kurtosis))
    return float(some.share @ gap), float(np.sqrt(some.share**2 @ sd**2))


def ence_value(table: BinTable) -> float:
    """The sum of the definition over bins that have weight."""
    some = table.filled()
    return float(some.share @ np.abs(1 - np.sqrt(some.observed_mean / some.predicted_mean)))


def _ence_result(table: BinTable, name: str, method: str, **details: object) -> Estimate:
    kurtosis = table_kurtosis(table)
    center, sd = ence_null(table, kurtosis)
    null = null_reference(
        center,
        sd,
        "gamma law of the mean square per bin",
        low=max(center - 1.96 * sd, 0.0),
        kurtosis=kurtosis,
        gaussian=ence_null(table, 3.0)[0],
    )
    some = table.filled()
    worst = float(np.abs(1 - np.sqrt(some.observed_mean / some.predicted_mean)).max())
    return result(ence_value(table), name, method, table, null=null, largest=worst, **details)


def _variation(values: Floats, weight: Floats | None, lost: float) -> float:
    center = mean_of(values, weight)
    total = len(values) if weight is None else float(weight.sum())
    if total <= lost:
        return 0.0
    return float(np.sqrt(mean_of((values - center) ** 2, weight) * total / (total - lost)) / center)
