"""Reference scores: the score to be expected if the predicted distributions are right. And the CRPS row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.estimators.regression_common import mean_of, null_reference
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import effective_n

#: In words how the reference of an ensemble was found.
LEAVE_ONE_OUT = "leave-one-out ensembles"
#: Number of outcomes to simulate, at least.
SIMULATED = 10_000


def gaussian(task: Gaussian, unit_score: Callable[[Floats], Floats], expected: float) -> dict[str, Any]:
    """Reference of a score that is sigma times a function of z, whose mean for normal z is `expected`."""
    from scipy.special import ndtri

    scores = unit_score(ndtri((np.arange(2048) + 0.5) / 2048))
    sigma, weight = task.std.ravel().astype(np.float64, copy=False), task.flat_weight
    size = effective_n(weight, len(sigma))
    largest = float(sigma.max())  # divided out, since squares of extreme units are no numbers
    sd = largest * np.sqrt(scores.var() * mean_of((sigma / largest) ** 2, weight) / size)
    return null_reference(expected * mean_of(sigma, weight), sd, "expectation under the predicted distributions")


def simulated(task: Forecast, score: Callable[[Floats], Floats]) -> dict[str, Any]:
    """Reference of any score, from outcomes simulated from the predicted distribution of each row."""
    rng = np.random.default_rng(0)
    size = task.y_true.size
    rounds = max(2, -(-SIMULATED // size))
    scores = np.stack([score(_simulated_outcomes(task, rng)) for _ in range(rounds)])
    return _of_scores(scores, task, "simulated outcomes")


def leave_one_out(task: Samples, score: Callable[[Samples], Floats]) -> dict[str, Any]:
    """Leave-one-out reference of a score of ensembles; see `leave_one_out_ensembles`."""
    ensembles = leave_one_out_ensembles(task)
    if not ensembles:
        return null_reference(np.nan, np.nan, "none: leaving one out needs at least three draws")
    return _of_scores(np.stack([score(one) for one in ensembles]), task, LEAVE_ONE_OUT)


def leave_one_out_ensembles(task: Samples, *, most: int = 10) -> list[Samples]:
    """Tasks of a perfect forecaster: one draw of each row is the outcome, the others are the ensemble.

    Up to `most` draws are left out, each from all rows at once; none where fewer than two would be left.
    """
    size = task.draws.shape[1]
    if size < 3:
        return []
    columns = np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))
    return [
        Samples(task.draws[:, column], np.delete(task.draws, column, axis=1), weight=task.weight) for column in columns
    ]


def of_quantiles(task: Forecast, levels: Floats, score: Callable[[Floats, list[Floats]], Floats]) -> dict[str, Any]:
    """Reference of a score of the outcome and of the quantiles at `levels`."""
    if isinstance(task, Samples):
        return leave_one_out(task, lambda one: score(one.y_true, [one.quantile(level) for level in levels]))
    quantiles = [task.quantile(level) for level in levels]
    return simulated(task, lambda y: score(y, quantiles))


def gaussian_crps(z: Floats) -> Floats:
    r"""CRPS of the standard normal at z: :math:`z(2\Phi(z) - 1) + 2\varphi(z) - 1/\sqrt\pi`."""
    from scipy.special import erf

    return z * erf(z / np.sqrt(2)) + np.exp(-(z**2) / 2) * np.sqrt(2 / np.pi) - 1 / np.sqrt(np.pi)


def fair_crps(task: Samples) -> Floats:
    """Mean distance of draws and outcome less half the mean distance of two different draws, per row."""
    ordered, y = np.sort(task.draws.astype(np.float64, copy=False), axis=1), task.y_true
    size = ordered.shape[1]
    ranks = 2 * np.arange(1, size + 1) - size - 1
    return np.abs(ordered - y[:, None]).mean(axis=1) - ordered @ (ranks / (size * (size - 1)))


def crps_by_quadrature(task: Distribution, *, nodes: int = 48) -> Floats:
    r"""CRPS from quantiles, on both sides of u = F(y).

    .. math:: 2\int_0^u \tau\,(y - q_\tau)\,d\tau + 2\int_u^1 (1-\tau)(q_\tau - y)\,d\tau

    The nodes are denser towards 0 and 1 (fourth power), because of the tails.
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    part, share = (1 + x) / 2, w / 2
    y, u = task.y_true.astype(np.float64).ravel(), task.pit()[1]
    total = np.zeros(len(y))
    for t, weight in zip(part**4, share * 4 * part**3, strict=True):
        low, high = u * t, (1 - u) * t
        total += weight * u * low * (y - _finite(task.quantiles_at(low), y))
        total += weight * (1 - u) * high * (_finite(task.quantiles_at(1 - high), y) - y)
    return 2 * total


def _finite(quantiles: Floats, y: Floats) -> Floats:
    """Quantiles are infinite only at levels that round to 0 or 1, whose share vanishes: they count as the outcome."""
    return np.where(np.isfinite(quantiles), quantiles, y)


def _of_scores(scores: Floats, task: Forecast, law: str) -> dict[str, Any]:
    weight = task.flat_weight
    center = mean_of(scores.mean(axis=0), weight)
    sd = np.sqrt(mean_of(scores.var(axis=0, ddof=1), weight))
    return null_reference(center, sd / np.sqrt(effective_n(weight, scores.shape[1])), law)


def _simulated_outcomes(task: Forecast, rng: np.random.Generator) -> Floats:
    """One outcome per row from its predicted distribution, at quantile levels stratified over the rows."""
    from scipy.special import ndtri

    size = task.y_true.size
    level = (rng.permutation(size) + rng.random(size)) / size
    if isinstance(task, Gaussian):
        return np.asarray(task.mean.ravel() + ndtri(level) * task.std.ravel(), dtype=np.float64)
    if isinstance(task, Distribution):
        return task.quantiles_at(level)
    if isinstance(task, Quantiles):
        return _between_quantiles(task, level)
    message = f"Cannot simulate outcomes of {type(task).__name__}."
    raise TypeError(message)


def _between_quantiles(task: Quantiles, level: Floats) -> Floats:
    """Quantile function of pieces of normal ones through neighbouring predicted quantiles; the outer pieces go on."""
    from scipy.special import ndtri

    levels, level = ndtri(task.levels), ndtri(level)
    values = task.values.astype(np.float64, copy=False)
    if len(levels) == 1:
        return values[:, 0]
    left = np.clip(np.searchsorted(levels, level) - 1, 0, len(levels) - 2)
    rows = np.arange(len(level))
    part = (level - levels[left]) / (levels[left + 1] - levels[left])
    return values[rows, left] + part * (values[rows, left + 1] - values[rows, left])
