"""Proper scores and what they are made of."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Multiclass, Predictions, binary
from calibrant.estimators.common import Data, fine
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.table.binning import EqualWidth
from calibrant.table.bintable import BinTable

Score = Literal["brier", "log_loss"]


def brier(data: Data, y_prob: ArrayLike | None = None, /) -> Estimate:
    r"""Brier score, the mean squared error of the probabilities.

    .. math:: \frac1W\sum_i w_i (p_i - y_i)^2, \qquad
              \frac1W\sum_i w_i \lVert p_i - e_{y_i}\rVert^2 \text{ for several classes}

    On positive-unlabeled data it is mean_U(p²) - 2 π mean_P(p) + π, which is unbiased for the same number.

    References
    ----------
    Brier (1950), Verification of Forecasts Expressed in Terms of Probability.

    Examples
    --------
    >>> brier([0, 1], [0.5, 1.0])
    <Brier score 0.125, n=2, mean>
    """
    if isinstance(data, BinTable) and data.prior is not None:
        return pu_brier(data)
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="brier")
        total = float((cells.predicted_squares - 2 * cells.product + cells.observed_squares).sum())
        return _score(total / cells.total, "Brier score", cells.n)
    task = binary(data, y_prob)
    if isinstance(task, PositiveUnlabeled):
        return pu_brier(BinTable.of(task, EqualWidth(1)))
    if isinstance(task, Multiclass):
        p = task.y_prob.astype(np.float64, copy=False)
        hit = p[np.arange(len(p)), task.y_true]
        return _score(_mean(np.einsum("ij,ij->i", p, p) - 2 * hit + 1, task), "Brier score", len(task))
    pairs = _probability_pairs(task)
    return _score(_mean((pairs.predicted.astype(np.float64) - pairs.observed) ** 2, task), "Brier score", len(task))


def log_loss(data: Data, y_prob: ArrayLike | None = None, /) -> Estimate:
    r"""Logarithmic score: the mean of minus the log of the probability given to what happened.

    .. math:: -\frac1W\sum_i w_i \log p_i(y_i)

    Nothing is clipped: a certain forecast that failed costs infinity, and the result says so. On positive-unlabeled
    data it is -π mean_P(logit p) - mean_U(log(1 - p)), which is unbiased for the same number.

    References
    ----------
    Good (1952), Rational Decisions.

    Examples
    --------
    >>> log_loss([0, 1], [0.5, 1.0])
    <Log loss 0.3466, n=2, mean>
    """
    if isinstance(data, BinTable) and data.prior is not None:
        return pu_log_loss(fine(data, None, needed_by="log_loss"))
    if isinstance(data, BinTable):
        cells = fine(data, None, needed_by="log_loss")
        p = cells.predicted_mean
        losses = _log_losses(p, cells.observed, cells.weight - cells.observed)
        return _score(float(losses.sum()) / cells.total, "Log loss", cells.n)
    task = binary(data, y_prob)
    if isinstance(task, PositiveUnlabeled):
        return pu_log_loss(task)
    if isinstance(task, Multiclass):
        hit = task.y_prob[np.arange(len(task)), task.y_true].astype(np.float64)
        return _score(_mean(_log_losses(hit, np.ones_like(hit), np.zeros_like(hit)), task), "Log loss", len(task))
    pairs = _probability_pairs(task)
    observed = pairs.observed.astype(np.float64)
    losses = _log_losses(pairs.predicted.astype(np.float64), observed, 1 - observed)
    return _score(_mean(losses, task), "Log loss", len(task))


def _log_losses(p: Floats, positives: Floats, negatives: Floats) -> Floats:
    """-positives log p - negatives log(1 - p), with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(positives > 0, -positives * np.log(p), 0.0)
        misses = np.where(negatives > 0, -negatives * np.log1p(-p), 0.0)
    total: Floats = hits + misses
    return total


def _probability_pairs(task: Predictions) -> Any:
    pairs = task.pairs()
    if pairs.predicted is not pairs.key:
        message = f"{type(task).__name__} predictions have no probability score of this kind."
        raise ValueError(message)
    return pairs


def _mean(values: Floats, task: Predictions) -> float:
    return float(values.mean() if task.weight is None else np.average(values, weights=task.weight))


def _score(value: float, name: str, n: int) -> Estimate:
    return Estimate(float(value), name=name, method="mean", n=n)


def pu_brier(table: BinTable) -> Estimate:
    """mean_U(p²) - 2 π mean_P(p) + π, from the sums of any table."""
    product, observed = (table.observed_scale * float(column.sum()) for column in (table.product, table.observed))
    value = (float(table.predicted_squares.sum()) - 2 * product + observed) / table.total
    return Estimate(value, name="Brier score", method="positive-unlabeled mean", n=table.n)


def pu_log_loss(data: PositiveUnlabeled | BinTable) -> Estimate:
    """-π mean_P(logit p) - mean_U(log(1 - p)), with scores of 0 and 1 taken together before their logs are."""
    if isinstance(data, BinTable):
        p = (data.predicted + data.product) / (data.weight + data.observed)
        population, positives = data.share, data.observed * data.observed_scale / data.total
        n = data.n
    else:
        p = np.concatenate([data.unlabeled, data.positive]).astype(np.float64, copy=False)
        split, n = len(data.unlabeled), len(data)
        population, positives = np.zeros(len(p)), np.zeros(len(p))
        population[:split] = _shares(split, data.unlabeled_weight)
        positives[split:] = data.prior * _shares(len(data.positive), data.positive_weight)
    return Estimate(_log_loss(p, population, positives), name="Log loss", method="positive-unlabeled mean", n=n)


def _log_loss(p: Floats, population: Floats, positives: Floats) -> float:
    rounding = 1e-12
    certain, excluded = p == 1, p == 0
    if positives[excluded].sum() > rounding or (population - positives)[certain].sum() > rounding:
        return float("inf")
    some = ~(certain | excluded)
    p, population, positives = p[some], population[some], positives[some]
    return float(-(positives @ np.log(p)) - (population - positives) @ np.log1p(-p))


def _shares(size: int, weight: Floats | None) -> Floats:
    return np.full(size, 1 / size) if weight is None else weight / weight.sum()
