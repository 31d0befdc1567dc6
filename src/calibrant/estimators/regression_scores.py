"""Proper scores of predicted distributions (lower is better), each with its reference score.

A score alone does not say whether a forecaster is calibrated, but each predicted distribution implies the score to be
expected if it is right. ``details["null"]`` is that expectation: in closed form for Gaussian predictions, by outcomes
simulated from the predicted distributions otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.estimators import score_references
from calibrant.estimators.forecast_losses import (
    crps_losses,
    crps_of,
    interval_score_losses,
    log_loss_of,
    nll_losses,
    pinball_levels,
    pinball_loss,
    pinball_losses,
    winkler_loss,
)
from calibrant.estimators.log_scores import infinite_rows, log_provenance
from calibrant.estimators.regression_common import (
    ForecastData,
    by_output,
    forecast,
    mean_of,
    null_reference,
    spread_rows,
    squared_error_kurtosis,
)
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import effective_n
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates


@estimates("mean score", losses=nll_losses)
def nll(
    data: ForecastData,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    /,
    *,
    floor: float = 0.0,
) -> Estimate:
    r"""Negative log likelihood per outcome (logarithmic score).

    .. math:: -\frac1W\sum_i w_i \log \max(f_i(y_i), \varepsilon)

    where f_i is the predicted density (or probability mass) and :math:`\varepsilon` is `floor`. The sum over rows in
    the paper is n times this. Needs a density: `Gaussian`, or a `Distribution` with ``logpdf`` (or ``logpmf``).

    Parameters
    ----------
    data : Gaussian, Distribution, or y_true
        What to measure; with plain arrays, `mean` and `std` come next.
    floor : float, at least 0
        Densities are raised to at least this. By default nothing is raised, and an outcome outside the support of its
        distribution makes the mean infinite; ``details`` then counts these outcomes and names the first.

    References
    ----------
    Levi et al. (2022), eq. 10; Good (1952).

    Examples
    --------
    >>> nll([0.0], [0.0], [1.0])
    <NLL 0.9189, n=1, mean>
    """
    task = forecast(data, mean, std)
    if not 0 <= floor < np.inf:
        message = f"floor must be a number of at least 0, got {floor!r}."
        raise ValueError(message)
    losses = nll_losses(task, floor=floor)
    infinite = infinite_rows(losses)
    first = int(infinite[0]) // (task.y_true.size // len(task)) if len(infinite) else None
    method, details = log_provenance("mean", floor, infinite=len(infinite), first=first)
    if isinstance(task, Gaussian) and floor == 0:
        null = _entropy(task)
    else:
        null = score_references.simulated(task, log_loss_of(task, floor))
    details |= by_output(task, lambda output: nll(output, floor=floor))
    return _score(losses, "NLL", method, task, null, details)


@estimates("mean score", losses=crps_losses)
def crps(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Continuous ranked probability score, CRPS, in units of the target.

    .. math:: \frac1W \sum_i w_i \int \bigl(F_i(x) - \mathbf 1\{y_i \le x\}\bigr)^2 dx

    Gaussian: closed form. Draws: the fair version, unbiased for the distribution behind the ensemble,
    :math:`\frac1m\sum_j\lvert x_j - y\rvert - \frac{1}{m(m-1)}\sum_{j<k}\lvert x_j - x_k\rvert`. Quantiles: twice the
    pinball loss, each level standing for the levels nearest to it. Distribution: Gauss-Legendre on both sides of F(y).

    References
    ----------
    Gneiting and Raftery (2007), Strictly Proper Scoring Rules; Ferro (2014) for the fair version.

    Examples
    --------
    >>> crps([0.0], [0.0], [1.0])
    <CRPS 0.2337, n=1, mean>
    """
    task = forecast(data, mean, std)
    details, losses, unit_score = by_output(task, crps), crps_losses(task), score_references.gaussian_crps
    if isinstance(task, Gaussian):
        null, method = score_references.gaussian(task, unit_score, 1 / np.sqrt(np.pi)), "mean"
    elif isinstance(task, Samples):
        null, method = score_references.leave_one_out(task, score_references.fair_crps), "fair"
    else:
        null = score_references.simulated(task, crps_of(task))
        method = f"{len(task.levels)} quantiles" if isinstance(task, Quantiles) else "quadrature"
    return _score(losses, "CRPS", method, task, null, details)


@estimates("mean score", losses=pinball_losses)
def pinball(
    data: ForecastData,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    /,
    *,
    levels: ArrayLike | None = None,
) -> Estimate:
    r"""Pinball (quantile, check) loss, averaged over levels: :math:`(\tau - \mathbf 1\{y < q_\tau\})(y - q_\tau)`.

    `levels` are by default those of `Quantiles`, and 0.1 to 0.9 for the rest. ``details["by_level"]`` holds each
    level's loss.

    References
    ----------
    Koenker and Bassett (1978), Regression Quantiles.

    Examples
    --------
    >>> pinball([1.0], [0.0], [1.0], levels=[0.5])
    <Pinball loss 0.5, n=1, mean over 1 level>
    """
    task = forecast(data, mean, std)
    at = pinball_levels(task, levels)
    quantiles = [task.quantile(level) for level in at]
    y, weight = task.y_true.ravel(), task.flat_weight
    single = [mean_of(pinball_loss(y - quantile, level), weight) for level, quantile in zip(at, quantiles, strict=True)]
    details = {
        "by_level": dict(zip(at.tolist(), single, strict=True)),
        **by_output(task, lambda output: pinball(output, levels=at)),
    }
    if isinstance(task, Gaussian):
        from scipy.special import ndtri

        place = ndtri(at)
        expected = float(np.mean(np.exp(-(place**2) / 2)) / np.sqrt(2 * np.pi))
        null = score_references.gaussian(task, lambda z: pinball_loss(z[:, None] - place, at).mean(axis=1), expected)
    else:
        null = score_references.of_quantiles(
            task, at, lambda y, q: np.mean([pinball_loss(y - q[k], at[k]) for k in range(len(at))], 0)
        )
    method = f"mean over {len(at)} level{'s' if len(at) > 1 else ''}"
    return _finished(float(np.mean(single)), "Pinball loss", method, task, null, details)


@estimates("mean score", losses=interval_score_losses)
def interval_score(
    data: ForecastData,
    mean: ArrayLike | None = None,
    std: ArrayLike | None = None,
    /,
    *,
    nominal: float = 0.9,
) -> Estimate:
    r"""Winkler's interval score of the central interval [l, u] of nominal coverage c: width plus a penalty for misses.

    .. math:: (u - l) + \frac2\alpha (l - y)_+ + \frac2\alpha (y - u)_+, \qquad \alpha = 1 - c

    Parameters
    ----------
    data : Gaussian, Distribution, Quantiles, Samples, or y_true
        What to measure; with plain arrays, `mean` and `std` come next.
    nominal : float in (0, 1)
        Nominal coverage c of the central interval.

    References
    ----------
    Winkler (1972); Gneiting and Raftery (2007), eq. 43.

    Examples
    --------
    >>> interval_score([0.0, 3.0], [0.0, 0.0], [1.0, 1.0], nominal=0.5).value
    6.0
    """
    task = forecast(data, mean, std)
    nominal = validation.fraction("nominal", nominal)
    missed = 1 - nominal
    if isinstance(task, Gaussian):
        from scipy.special import ndtri

        edge = np.array(ndtri((1 + nominal) / 2))
        expected = 4 / missed * float(np.exp(-(edge**2) / 2)) / np.sqrt(2 * np.pi)
        null = score_references.gaussian(task, lambda z: winkler_loss(z, -edge, edge, missed), expected)
    else:
        ends = np.array([(1 - nominal) / 2, (1 + nominal) / 2])
        null = score_references.of_quantiles(task, ends, lambda y, q: winkler_loss(y, q[0], q[1], missed))
    losses = interval_score_losses(task, nominal=nominal)
    details = by_output(task, lambda output: interval_score(output, nominal=nominal))
    return _score(losses, "Interval score", f"nominal coverage {nominal:.6g}", task, null, details)


@estimates("dispersion")
def sharpness(data: ForecastData, mean: ArrayLike | None = None, std: ArrayLike | None = None, /) -> Estimate:
    r"""Root mean predicted variance, in units of the target: how concentrated the forecasts are.

    Small is good only where calibration holds; a calibrated forecaster's sharpness is its root mean square error,
    which is the null reference.

    Examples
    --------
    >>> sharpness([0.0, 0.0], [0.0, 0.0], [3.0, 4.0])
    <Sharpness 3.536, n=2, root mean variance>
    """
    task = forecast(data, mean, std)
    rows = spread_rows(task, needed_by="sharpness")
    error = np.sqrt(mean_of(rows.observed, rows.weight))
    kurtosis = squared_error_kurtosis(rows.observed, rows.weight)
    sd = error * np.sqrt((kurtosis - 1) / 4 / effective_n(rows.weight, len(rows.key)))
    null = null_reference(error, sd, "root mean square error", kurtosis=kurtosis)
    value = float(np.sqrt(mean_of(rows.predicted, rows.weight)))
    return _finished(value, "Sharpness", "root mean variance", task, null, by_output(task, sharpness))


def _entropy(task: Gaussian) -> dict[str, Any]:
    """The log score that Gaussian predictions expect: their mean entropy."""
    sigma, weight = task.std.ravel().astype(np.float64, copy=False), task.flat_weight
    kurtosis = squared_error_kurtosis(task.z() ** 2, weight)
    mean = mean_of(np.log(sigma), weight) + (np.log(2 * np.pi) + 1) / 2
    sd = np.sqrt((kurtosis - 1) / 4 / effective_n(weight, len(sigma)))
    return null_reference(mean, sd, "entropy of the predicted distributions", kurtosis=kurtosis)


def _score(
    losses: Floats, name: str, method: str, task: Forecast, null: dict[str, Any], details: dict[str, Any]
) -> Estimate:
    return _finished(mean_of(losses, task.flat_weight), name, method, task, null, details)


def _finished(
    value: float, name: str, method: str, task: Forecast, null: dict[str, Any], details: dict[str, Any]
) -> Estimate:
    return Estimate(value, name=name, method=method, n=task.y_true.size, details={"null": null, **details})
