"""Proper scores of predicted distributions (lower is better), each with its reference score.

A score alone does not say whether a forecaster is calibrated, but each predicted distribution implies the score to be
expected if it is right. ``details["null"]`` is that expectation: in closed form for Gaussian predictions, by outcomes
simulated from the predicted distributions otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.estimators import score_references
from calibrant.estimators.log_scores import infinite_rows, log_provenance
from calibrant.estimators.regression_common import (
    ForecastData,
    by_output,
    central_interval,
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


@estimates("mean score")
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
    loss = _bounded(_negative_log_density(task), floor)
    losses, weight = loss(task.y_true), task.flat_weight
    if weight is not None:
        losses = np.where(weight > 0, losses, 0.0)
    infinite = infinite_rows(losses)
    first = int(infinite[0]) // (task.y_true.size // len(task)) if len(infinite) else None
    method, details = log_provenance("mean", floor, infinite=len(infinite), first=first)
    null = _entropy(task) if isinstance(task, Gaussian) and floor == 0 else score_references.simulated(task, loss)
    details |= by_output(task, lambda output: nll(output, floor=floor))
    return _score(losses, "NLL", method, task, null, details)


@estimates("mean score")
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
    details = by_output(task, crps)
    if isinstance(task, Gaussian):
        return _score(
            score_references.gaussian_crps(task.z()) * task.std.ravel(),
            "CRPS",
            "mean",
            task,
            score_references.gaussian(task, score_references.gaussian_crps, 1 / np.sqrt(np.pi)),
            details,
        )
    if isinstance(task, Samples):
        null = score_references.leave_one_out(task, score_references.fair_crps)
        return _score(score_references.fair_crps(task), "CRPS", "fair", task, null, details)
    if isinstance(task, Quantiles):
        middle = np.concatenate([[0.0], (task.levels[1:] + task.levels[:-1]) / 2, [1.0]])

        def loss(y: Floats) -> Floats:
            return 2 * (_pinballs(y[:, None] - task.values, task.levels) @ np.diff(middle))

        method = f"{len(task.levels)} quantiles"
    elif isinstance(task, Distribution) and not task.discrete:
        method = "quadrature"

        def loss(y: Floats) -> Floats:
            return score_references.crps_by_quadrature(Distribution(y.reshape(task.y_true.shape), task.dist))

    else:
        message = "crps has no closed form for this distribution of counts; draw from it and use Samples."
        raise TypeError(message)
    return _score(loss(task.y_true.ravel()), "CRPS", method, task, score_references.simulated(task, loss), details)


@estimates("mean score")
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
    if levels is None:
        levels = task.levels if isinstance(task, Quantiles) else np.arange(1, 10) / 10
    at = np.array([validation.fraction("levels", level) for level in validation.column("levels", levels).tolist()])

    quantiles = [task.quantile(level) for level in at]
    y, weight = task.y_true.ravel(), task.flat_weight
    single = [mean_of(_pinballs(y - quantile, level), weight) for level, quantile in zip(at, quantiles, strict=True)]
    details = {
        "by_level": dict(zip(at.tolist(), single, strict=True)),
        **by_output(task, lambda output: pinball(output, levels=at)),
    }
    if isinstance(task, Gaussian):
        from scipy.special import ndtri

        place = ndtri(at)
        expected = float(np.mean(np.exp(-(place**2) / 2)) / np.sqrt(2 * np.pi))
        null = score_references.gaussian(task, lambda z: _pinballs(z[:, None] - place, at).mean(axis=1), expected)
    else:
        null = score_references.of_quantiles(
            task, at, lambda y, q: np.mean([_pinballs(y - q[k], at[k]) for k in range(len(at))], 0)
        )
    method = f"mean over {len(at)} level{'s' if len(at) > 1 else ''}"
    return _finished(float(np.mean(single)), "Pinball loss", method, task, null, details)


@estimates("mean score")
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
    low, high = central_interval(task, nominal)
    if isinstance(task, Gaussian):
        from scipy.special import ndtri

        edge = np.array(ndtri((1 + nominal) / 2))
        expected = 4 / missed * float(np.exp(-(edge**2) / 2)) / np.sqrt(2 * np.pi)
        null = score_references.gaussian(task, lambda z: _winkler(z, -edge, edge, missed), expected)
    else:
        ends = np.array([(1 - nominal) / 2, (1 + nominal) / 2])
        null = score_references.of_quantiles(task, ends, lambda y, q: _winkler(y, q[0], q[1], missed))
    losses = _winkler(task.y_true.ravel(), low, high, missed)
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


def _negative_log_density(task: Forecast) -> Callable[[Floats], Floats]:
    """Minus the log of the predicted density, as a function of the outcomes."""
    if isinstance(task, Gaussian):
        mean, sigma = (part.ravel().astype(np.float64, copy=False) for part in (task.mean, task.std))
        return lambda y: np.log(sigma) + ((y.ravel() - mean) / sigma) ** 2 / 2 + np.log(2 * np.pi) / 2
    dist = task.dist if isinstance(task, Distribution) else None
    density = next((getattr(dist, name) for name in ("logpdf", "logpmf") if hasattr(dist, name)), None)
    if density is None:
        message = f"nll needs a density, which {type(task).__name__} lacks here; crps does without."
        raise TypeError(message)
    return lambda y: -np.asarray(density(y.reshape(task.y_true.shape)), dtype=np.float64).ravel()


def _bounded(loss: Callable[[Floats], Floats], floor: float) -> Callable[[Floats], Floats]:
    """Losses of densities that are raised to at least `floor`."""
    return loss if floor == 0 else lambda y: np.minimum(loss(y), -np.log(floor))


def _entropy(task: Gaussian) -> dict[str, Any]:
    """The log score that Gaussian predictions expect: their mean entropy."""
    sigma, weight = task.std.ravel().astype(np.float64, copy=False), task.flat_weight
    kurtosis = squared_error_kurtosis(task.z() ** 2, weight)
    mean = mean_of(np.log(sigma), weight) + (np.log(2 * np.pi) + 1) / 2
    sd = np.sqrt((kurtosis - 1) / 4 / effective_n(weight, len(sigma)))
    return null_reference(mean, sd, "entropy of the predicted distributions", kurtosis=kurtosis)


def _winkler(y: Floats, low: Floats, high: Floats, missed: float) -> Floats:
    return (high - low) + 2 / missed * (np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0))


def _pinballs(gap: Floats, level: Floats | float) -> Floats:
    return np.maximum(level * gap, (level - 1) * gap)


def _score(
    losses: Floats, name: str, method: str, task: Forecast, null: dict[str, Any], details: dict[str, Any]
) -> Estimate:
    return _finished(mean_of(losses, task.flat_weight), name, method, task, null, details)


def _finished(
    value: float, name: str, method: str, task: Forecast, null: dict[str, Any], details: dict[str, Any]
) -> Estimate:
    return Estimate(value, name=name, method=method, n=task.y_true.size, details={"null": null, **details})
