"""Maps of whole distributions: the isotonic map of probabilities, and conformal quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.data.distributions import Distribution
from calibrant.data.forecasts import Forecast, Gaussian, Quantiles
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.recalibrate.regression_base import OutputRecalibrator, spread_of
from calibrant.recalibrate.transformed_distributions import Remapped, as_distribution


@dataclass(kw_only=True, eq=False, repr=False)
class CdfIsotonic(OutputRecalibrator):
    r"""Kuleshov's recalibration: the new distribution function is R(F(y)), with R isotonic.

    The points to fit are :math:`(F_t(y_t), \hat P(F_t(y_t)))`, and P̂, the share of recalibration rows with a smaller
    transform, rises by itself: R is their empirical distribution function, joined by straight lines. It makes any
    forecast pass `quantile_error`, also one whose spread is noise: it multiplies all spreads by the same factor and
    changes their common shape, so it helps `ence` no more than `StdScaling` does.

    Parameters
    ----------
    nodes : int
        R is kept at this many of its points at most (equally spaced in probability).

    Attributes
    ----------
    outputs_ : list of dict
        The points ``u`` and ``p`` of R per output.

    References
    ----------
    Kuleshov, Fenner, Ermon (2018), Algorithm 1; Levi et al. (2022), section 2, for its limits.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> z = np.random.default_rng(0).normal(size=4000)
    >>> data = cal.Gaussian(2 * z, 0 * z, 0 * z + 1)
    >>> fixed = CdfIsotonic().fit(data).transform(data)
    >>> cal.quantile_error(data).value > 0.1, cal.quantile_error(fixed).value < 0.001
    (True, True)
    """

    nodes: int = 4096

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        u = as_distribution(task).pit()[1]
        weight = task.weight
        if weight is None:
            u, place = np.sort(u), (np.arange(len(u)) + 0.5) / len(u)
        else:
            order = np.argsort(u)
            running = np.cumsum(weight[order])
            u, place = u[order], (running - weight[order] / 2) / running[-1]
        if len(u) > self.nodes:
            kept = (np.arange(self.nodes) + 0.5) / self.nodes
            u, place = np.interp(kept, place, u), kept
        inside = (u > 0) & (u < 1)
        u, first = np.unique(u[inside], return_index=True)
        place = place[inside]
        ends = np.append(first[1:], len(place)) - 1
        middle = (place[first] + place[ends]) / 2  # ties share the middle of their jump
        return {"u": np.concatenate([[0.0], u, [1.0]]), "p": np.concatenate([[0.0], middle, [1.0]])}

    def _transform(self, task: Forecast) -> Distribution:
        maps = [(learnt["u"], learnt["p"]) for learnt in self.outputs_]
        dist = Remapped(as_distribution(task).dist, maps)
        return Distribution(task.y_true, dist, weight=task.weight, group=task.group)


@dataclass(kw_only=True, eq=False, repr=False)
class Conformal(OutputRecalibrator):
    r"""Split conformal quantiles: intervals that cover in finite samples, whatever the forecast.

    The quantile of level τ becomes :math:`\mu + \sigma q_\tau`, with q_τ the
    :math:`\lceil (n+1)\tau \rceil`-th smallest (below one half: :math:`\lfloor (n+1)\tau \rfloor`-th) of the n
    recalibration scores :math:`(y-\mu)/\sigma`. For exchangeable rows the interval between levels τ and 1 - τ covers
    at least 1 - 2τ. `Quantiles` are shifted level by level instead (conformalised quantile regression).

    Parameters
    ----------
    levels : sequence of float in (0, 1)
        The quantiles to predict, for forecasts other than `Quantiles`.
    normalised : bool
        Divide the scores by σ. Without, all rows get the same widths (the plain split method).
    symmetric : bool
        Use abs(y - μ), so that intervals are centred; the levels must then pair up as τ and 1 - τ.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani, Wasserman (2018), Distribution-Free Predictive Inference for Regression; Romano,
    Patterson, Candès (2019), Conformalized Quantile Regression.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> z = np.random.default_rng(0).normal(size=2000)
    >>> data = cal.Gaussian(3 * z, 0 * z, 0 * z + 1)
    >>> fixed = Conformal(levels=[0.05, 0.95]).fit(data).transform(data)
    >>> fixed, round(cal.coverage(fixed, nominal=0.9), 2)
    (<Quantiles, n=2_000>, 0.9)
    """

    levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)
    normalised: bool = True
    symmetric: bool = False

    def _fit_output(self, task: Forecast) -> dict[str, Any]:
        if isinstance(task, Quantiles):
            gaps = task.y_true[:, None] - task.values
            shift = [_conformal_quantile(gaps[:, [k]].ravel(), tau, task.weight) for k, tau in enumerate(task.levels)]
            return {"levels": task.levels, "score": np.array(shift)}
        levels = np.array([validation.fraction("levels", level) for level in np.sort(np.asarray(self.levels)).tolist()])
        scores = _errors(task) / (spread_of(task) if self.normalised else 1.0)
        if not self.symmetric:
            return {"levels": levels, "score": np.array([_conformal_quantile(scores, t, task.weight) for t in levels])}
        if np.abs(levels + levels[::-1] - 1).max() > 1e-9:
            message = f"symmetric intervals need levels in pairs t and 1 - t, got {levels.tolist()}."
            raise ValueError(message)
        size = np.abs(scores)
        half = [0.0 if abs(t - 0.5) < 1e-9 else _conformal_quantile(size, abs(2 * t - 1), task.weight) for t in levels]
        return {"levels": levels, "score": np.sign(levels - 0.5) * half}

    def _try(self) -> None:
        if len(self.outputs_) == 1:
            super()._try()

    def _transform(self, task: Forecast) -> Quantiles:
        if len(self.outputs_) > 1:
            message = "Several outputs: transform them one by one (data.outputs), each with a map of its own."
            raise InvalidPredictions(message)
        learnt = self.outputs_[0]
        kept: dict[str, Any] = {"weight": task.weight, "group": task.group}
        if isinstance(task, Quantiles):
            if not np.array_equal(task.levels, learnt["levels"]):
                message = f"levels must be those of the fit, {learnt['levels'].tolist()}, got {task.levels.tolist()}."
                raise InvalidPredictions(message)
            return Quantiles(task.y_true, task.levels, task.values + learnt["score"], sort=True, **kept)
        std = spread_of(task) if self.normalised else np.ones(len(task))
        values = (task.y_true - _errors(task))[:, None] + std[:, None] * np.sort(learnt["score"])
        return Quantiles(task.y_true, learnt["levels"], values, **kept)


def _errors(task: Forecast) -> Floats:
    """Outcome minus mean."""
    if isinstance(task, Gaussian):
        return task.error()
    mean: Floats = task.mean  # type: ignore[attr-defined]  # spread_of has refused what has none
    return np.asarray(task.y_true - mean, dtype=np.float64)


def _conformal_quantile(scores: Floats, level: float, weight: Floats | None) -> float:
    """The order statistic that a new exchangeable score stays below with at least this probability.

    Below one half, the one it stays above with at least the complement.
    """
    if level < 0.5:
        return -_conformal_quantile(-scores, 1 - level, weight)
    size = len(scores)
    if weight is None:
        rank = int(np.ceil((size + 1) * level - 1e-9))
        if rank > size:
            message = f"Level {level:g} needs at least {int(np.ceil(level / (1 - level) - 1e-9))} rows, got {size}."
            raise InvalidPredictions(message)
        return float(np.partition(scores, rank - 1)[rank - 1])
    order = np.argsort(scores)
    running = np.cumsum(weight[order]) / (weight.sum() + weight.max())  # the new row may weigh as much as any
    rank = int(np.searchsorted(running, level - 1e-12))
    if rank == size:
        message = f"Level {level:g} needs more weight than these {size} rows have."
        raise InvalidPredictions(message)
    return float(scores[order][rank])
