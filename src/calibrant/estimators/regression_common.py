"""What the regression metrics share: from input to forecast or table, and the references of a perfect forecaster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaln, ndtri

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.data.predictions import Column, Predictions
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows
from calibrant.results.estimate import Estimate
from calibrant.table.binning import Binning, EqualWidth, as_binning
from calibrant.table.bintable import BinTable, require_kind

ForecastData = Forecast | BinTable | Column
"""What a regression metric takes first: predictions, a table where sums suffice, or y_true (then mean and std)."""

#: Half the width of a 95 % range in standard deviations. Derived: the normal quantile of 97.5 %.
WIDE = 1.959963984540054

#: Transforms nearer to 0 or 1 than this count as this near.
#: Derived: the spacing of numbers next to 1 in double precision, 2.2e-16; beyond it there are no transforms below 1.
MOST_CERTAIN = 2.2e-16


def forecast(data: ForecastData, mean: ArrayLike | None, std: ArrayLike | None) -> Forecast:
    """`data` itself if it is a forecast, else the Gaussian task of (y_true, mean, std)."""
    if isinstance(data, Forecast):
        if mean is not None or std is not None:
            fail("Give either predictions or (y_true, mean, std), not both.", TypeError)
        return data
    if isinstance(data, BinTable | Predictions):
        kind = "a table" if isinstance(data, BinTable) else type(data).__name__
        message = f"This metric needs predicted distributions (Gaussian, Distribution, Quantiles, Samples), got {kind}."
        raise validation.UnsupportedPredictions(message)
    if data is None or mean is None or std is None:
        fail("Give predictions, e.g. Gaussian(y_true, mean, std), or y_true, mean and std.", TypeError)
    return Gaussian.borrowing(data, mean, std)


def table_or_forecast(data: ForecastData, mean: ArrayLike | None, std: ArrayLike | None) -> BinTable | Forecast:
    """A table as it is, else the forecast of `data`."""
    return data if isinstance(data, BinTable) and mean is None and std is None else forecast(data, mean, std)


def spread_rows(data: Forecast, *, needed_by: str) -> Rows:
    """Spread, its square and the squared error of each row."""
    return with_std(data, needed_by=needed_by).rows()


def moments(data: Forecast) -> Forecast:
    """Ensembles as the means and standard deviations of their draws alone, other forecasts as they are."""
    if not isinstance(data, Samples):
        return data
    validation.require("draws", data.draws, data.std > 0, "must not be all alike in a row: their spread is zero")
    return Gaussian(data.y_true, data.mean, data.std, weight=data.weight)


def with_std(data: Forecast, *, needed_by: str) -> Forecast:
    """`data` itself, which must have a standard deviation per row."""
    if isinstance(data, Quantiles):
        message = (
            f"{needed_by} needs a standard deviation per row, which Quantiles lack; see quantile_error and coverage."
        )
        raise validation.UnsupportedPredictions(message)
    return data


def spread_table(
    data: ForecastData, mean: ArrayLike | None, std: ArrayLike | None, bins: Binning, *, needed_by: str
) -> tuple[BinTable, str]:
    """The table of squared spreads and errors in `bins`, and the words for it. Given bins are taken as they are."""
    bins = as_binning(bins)
    if isinstance(data, BinTable):
        require_kind(data, needed_by=needed_by, spread=True)
        if not data.fine:
            return data, f"{len(data)} given bins"
        table = data.coarsen(bins)
    else:
        table = BinTable.of(with_std(forecast(data, mean, std), needed_by=needed_by), bins)
    wanted = getattr(bins, "n_bins", len(table))
    fewer = f", {len(table)} after ties" if len(table) < wanted else ""
    return table, repr(bins) + fewer


def central_interval(task: Forecast, nominal: float) -> tuple[Floats, Floats]:
    """Lower and upper end of the central interval of this nominal coverage, per outcome."""
    return task.quantile((1 - nominal) / 2), task.quantile((1 + nominal) / 2)


def equal_width(bins: EqualWidth | int) -> EqualWidth:
    """Bins of the probability integral transform; a whole number n means `EqualWidth(n)`."""
    return bins if isinstance(bins, EqualWidth) else EqualWidth(validation.whole("bins", bins))


def finished(
    task: Forecast,
    value: float,
    name: str,
    method: str,
    null: dict[str, Any],
    measure: Callable[[Forecast], Estimate],
    **details: Any,
) -> Estimate:
    """The estimate with its null reference, further details, and what `measure` finds for each of several outputs."""
    details = {"null": null, **details, **by_output(task, measure)}
    return Estimate(value, name=name, method=method, n=task.y_true.size, details=details)


def by_output(data: ForecastData, measure: Callable[[Forecast], Estimate]) -> dict[str, Any]:
    """The same metric for each of several outputs, for the details of the pooled one."""
    if not isinstance(data, Forecast) or len(data.outputs) == 1:
        return {}
    return {"outputs": [measure(output).value for output in data.outputs]}


def mean_of(values: NDArray[Any], weight: Floats | None) -> float:
    """Weighted mean."""
    return float(values.mean() if weight is None else np.average(values, weights=weight))


def null_reference(
    mean: float, sd: float, law: str, *, low: float | None = None, high: float | None = None, **more: Any
) -> dict[str, Any]:
    """The value of a perfect forecaster: mean, standard deviation, 95 % range, and in words how they were found."""
    return {
        "mean": float(mean),
        "sd": float(sd),
        "low": float(mean - WIDE * sd if low is None else low),
        "high": float(mean + WIDE * sd if high is None else high),
        "law": law,
        **more,
    }


def squared_error_kurtosis(squared_z: Floats, weight: Floats | None) -> float:
    """E z^4 / (E z^2)^2: 3 for Gaussian errors, more for heavy tails; 1 where there are no errors at all."""
    second = mean_of(squared_z, weight)
    return mean_of(squared_z**2, weight) / second**2 if second > 0 else 1.0


def table_kurtosis(table: BinTable) -> float:
    """Kurtosis of the errors in units of their bin's root mean variance; sigma's spread in bins is divided out."""
    some = table.filled()
    variance = some.predicted_mean
    fourth = some.share @ (some.observed_squares / some.weight / variance**2)
    inside = some.share @ (some.predicted_squares / some.weight / variance**2)
    second = some.share @ (some.observed_mean / variance)
    return max(float(fourth / inside / second**2), 1.0) if second > 0 else 1.0


def ratio_variance(table: BinTable, kurtosis: float) -> Floats:
    """Variance of MSE / mean variance in each bin of a calibrated forecaster whose errors have this kurtosis."""
    spread = table.predicted_squares / table.weight / table.predicted_mean**2
    return (kurtosis - 1) * spread / table.effective_count


def root_mean_gap(variance: Floats) -> tuple[Floats, Floats]:
    r"""E|sqrt(G) - 1| and its standard deviation for G of mean 1 and this variance, by a gamma law.

    With shape a = 1 / variance, m = E sqrt(G) and P the regularised incomplete gamma function,

    .. math:: \mathrm E\lvert\sqrt G - 1\rvert = m - 1 + 2\,[P(a, a) - m\,P(a + \tfrac12, a)].
    """
    shape, root = 1 / np.maximum(variance, 1e-15), mean_root(variance)
    gap = root - 1 + 2 * (gammainc(shape, shape) - root * gammainc(shape + 0.5, shape))
    return gap, np.sqrt(np.maximum(2 - 2 * root - gap**2, 0.0))


def mean_root(variance: Floats) -> Floats:
    """E sqrt(G) for the gamma law of mean 1 and this variance."""
    shape = 1 / np.maximum(variance, 1e-15)
    small = np.minimum(shape, 100.0)
    return np.where(
        shape < 100,
        np.exp(gammaln(small + 0.5) - gammaln(small)) / np.sqrt(small),
        1 - 1 / (8 * shape) + 1 / (128 * shape**2) + 5 / (1024 * shape**3),  # the quotient would cancel out
    )


def normal_scores(data: Forecast) -> Floats:
    """Normal quantiles of the probability integral transforms, of the middle of those known up to an interval."""
    low, high = data.pit()
    return ndtri(np.clip((low + high) / 2, MOST_CERTAIN, 1 - MOST_CERTAIN))


def stretch_factor(data: Samples) -> float:
    r"""The factor c by which draws must be stretched about their mean for outcome and draws to look exchangeable.

    The root of :math:`\overline{D_c^2} = 1`, see `calibrant.scale_factor`: :math:`D_c` is the error of the outcome from
    the mean of all m + 1 values in units of their standard deviation, and its mean square falls with c.
    """
    from scipy.optimize import brentq

    size, squares = data.draws.shape[1], squared_t(data)
    moving, stuck = np.isfinite(squares), mean_of(np.isinf(squares), data.weight) * size
    if stuck >= 1:
        fail(
            f"draws are all alike in {int(np.isinf(squares).sum()):,} of {len(data):,} rows whose y_true differs from "
            "them, so that no stretch of the draws is enough."
        )
    weight = data.weight[moving] if data.weight is not None else None
    share, known = mean_of(moving, data.weight), squares[moving]

    def excess(logarithm: float) -> float:
        return share * mean_of(pooled_squares(known * np.exp(-2 * logarithm), size), weight) + stuck - 1

    if not known.any() or share * mean_of(known > 0, weight) * size + stuck <= 1:
        return 0.0  # the outcome is the mean of the draws in so many rows that any spread is too large
    middle = 0.5 * float(np.log(np.median(known[known > 0])))
    low, high = middle - 1, middle + 1
    while excess(low) < 0:
        low -= 2
    while excess(high) > 0:
        high += 2
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def squared_t(data: Samples) -> Floats:
    """The squared error of the mean of the draws over its variance if the outcome is one more draw."""
    size = data.draws.shape[1]
    squares = (data.y_true.astype(np.float64, copy=False) - data.mean) ** 2 * (size / (size + 1))
    variance = data.draws.astype(np.float64, copy=False).var(axis=1, ddof=1)
    found = np.where(squares > 0, np.inf, 0.0)
    np.divide(squares, variance, out=found, where=variance > 0)
    return found


def pooled_squares(squares: Floats, size: int) -> Floats:
    """Squared errors in units of the variance of outcome and draws together, from `squared_t` of `size` draws."""
    with np.errstate(divide="ignore"):
        return np.asarray(size / ((size - 1) / squares + 1))  # infinite squares are size, zeros 0


def cell_scores(edges: Floats) -> Floats:
    """Scores of bias and spread of cells of the unit interval, (cells, 2): orthonormal under their probabilities.

    The means over each cell of z and (z² - 1) / √2, z the normal quantile; zero where there are too few cells.
    """
    share = np.diff(edges)
    z = ndtri(edges[1:-1])
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    ends = np.zeros((len(edges), 2))
    ends[1:-1] = np.column_stack([-density, -z * density / np.sqrt(2)])
    scores = np.diff(ends, axis=0) / share[:, None]
    for column in range(2):
        one = scores[:, column]
        one = one - (share @ (one * scores[:, 0])) * scores[:, 0] if column else one
        size = float(share @ one**2)
        scores[:, column] = one / np.sqrt(size) if size > 1e-12 else 0.0
    return scores


def rank_scores(data: Samples) -> Floats:
    """Scores of bias and spread of the rank of the outcome among the draws; values that tie share their mean score."""
    size = data.draws.shape[1]
    running = np.zeros((size + 2, 2))
    np.cumsum(cell_scores(np.arange(size + 2) / (size + 1)), axis=0, out=running[1:])
    y = data.y_true[:, None]
    first, last = (data.draws < y).sum(axis=1), (data.draws <= y).sum(axis=1)
    return (running[last + 1] - running[first]) / (last + 1 - first)[:, None]
