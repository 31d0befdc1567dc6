"""Losses of predicted distributions, outcome by outcome: what their mean scores and intervals are made from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles, Samples
from calibrant.estimators import score_references
from calibrant.estimators.regression_common import central_interval
from calibrant.numerics.arrays import Floats


def nll_losses(task: Forecast, *, floor: float = 0.0) -> Floats:
    """Minus the log density at each outcome; zero where the weight is."""
    losses = log_loss_of(task, floor)(task.y_true)
    weight = task.flat_weight
    return losses if weight is None else np.where(weight > 0, losses, 0.0)


def log_loss_of(task: Forecast, floor: float) -> Callable[[Floats], Floats]:
    """Minus the log of the predicted density, raised to at least `floor`, as a function of the outcomes."""
    loss = _negative_log_density(task)
    return loss if floor == 0 else lambda y: np.minimum(loss(y), -np.log(floor))


def crps_losses(task: Forecast) -> Floats:
    """CRPS of each outcome."""
    if isinstance(task, Gaussian):
        return score_references.gaussian_crps(task.z()) * task.std.ravel()
    if isinstance(task, Samples):
        return score_references.fair_crps(task)
    return crps_of(task)(task.y_true.ravel())


def crps_of(task: Forecast) -> Callable[[Floats], Floats]:
    """CRPS of quantiles and of continuous distributions, as a function of the outcomes."""
    if isinstance(task, Quantiles):
        middle = np.concatenate([[0.0], (task.levels[1:] + task.levels[:-1]) / 2, [1.0]])
        return lambda y: 2 * (pinball_loss(y[:, None] - task.values, task.levels) @ np.diff(middle))
    if isinstance(task, Distribution) and not task.discrete:
        return lambda y: score_references.crps_by_quadrature(Distribution(y.reshape(task.y_true.shape), task.dist))
    message = "crps has no closed form for this distribution of counts; draw from it and use Samples."
    raise validation.UnsupportedPredictions(message)


def pinball_losses(task: Forecast, *, levels: ArrayLike | None = None) -> Floats:
    """Pinball loss of each outcome, averaged over the levels."""
    y = task.y_true.ravel()
    return np.mean([pinball_loss(y - task.quantile(level), level) for level in pinball_levels(task, levels)], axis=0)


def pinball_levels(task: Forecast, levels: ArrayLike | None) -> Floats:
    """The levels asked for; by default those of the quantiles, and 0.1 to 0.9 for the rest."""
    if levels is None:
        levels = task.levels if isinstance(task, Quantiles) else np.arange(1, 10) / 10
    return np.array([validation.fraction("levels", level) for level in validation.column("levels", levels).tolist()])


def pinball_loss(gap: Floats, level: Floats | float) -> Floats:
    """Pinball loss of outcomes this far above the quantile."""
    return np.maximum(level * gap, (level - 1) * gap)


def interval_score_losses(task: Forecast, *, nominal: float = 0.9) -> Floats:
    """Winkler's score of each outcome."""
    return winkler_loss(task.y_true.ravel(), *central_interval(task, nominal), 1 - nominal)


def winkler_loss(y: Floats, low: Floats, high: Floats, missed: float) -> Floats:
    """Width of an interval plus the penalty of outcomes beyond it, with `missed` one less its nominal coverage."""
    return (high - low) + 2 / missed * (np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0))


def covered(task: Forecast, *, nominal: float = 0.9) -> Floats:
    """One for each outcome in its central interval, else zero."""
    low, high = central_interval(task, nominal)
    y = task.y_true.ravel()
    return ((low <= y) & (y <= high)).astype(np.float64)


def _negative_log_density(task: Forecast) -> Callable[[Floats], Floats]:
    if isinstance(task, Gaussian):
        mean, sigma = (part.ravel().astype(np.float64, copy=False) for part in (task.mean, task.std))
        return lambda y: np.log(sigma) + ((y.ravel() - mean) / sigma) ** 2 / 2 + np.log(2 * np.pi) / 2
    dist = task.dist if isinstance(task, Distribution) else None
    density = next((getattr(dist, name) for name in ("logpdf", "logpmf") if hasattr(dist, name)), None)
    if density is None:
        message = f"nll needs a density, which {type(task).__name__} lacks here; crps does without."
        raise validation.UnsupportedPredictions(message)
    return partial(_minus_log, density, task.y_true.shape)


def _minus_log(density: Callable[[Floats], Floats], shape: tuple[int, ...], y: Floats) -> Floats:
    return -np.asarray(density(y.reshape(shape)), dtype=np.float64).ravel()
