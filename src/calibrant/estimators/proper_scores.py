"""Proper scores and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Multiclass, Predictions, binary
from calibrant.estimators.common import Data, fine, outcome_cells
from calibrant.estimators.proper_scores_unlabeled import pu_brier, pu_log_loss
from calibrant.numerics.binned_sums import Floats
from calibrant.numerics.sorting import isotonic_blocks, pool_adjacent_violators, sorted_rows
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


@dataclass(frozen=True)
class Decomposition:
    """A mean score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score : Estimate
        The mean score itself.
    miscalibration : Estimate
        What recalibration would save (MCB, reliability).
    discrimination : Estimate
        What the forecast saves over the constant base rate once recalibrated (DSC, resolution).
    uncertainty : Estimate
        The score of the constant base rate (UNC).
    """

    score: Estimate
    miscalibration: Estimate
    discrimination: Estimate
    uncertainty: Estimate

    @property
    def refinement(self) -> float:
        """What is left after recalibration: uncertainty - discrimination."""
        return self.uncertainty - self.discrimination

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {name: getattr(self, name).to_dict() for name in self.__dataclass_fields__}


def decompose(
    data: Data,
    score: Score = "brier",
    y_prob: ArrayLike | None = None,
    *,
    method: Literal["corp", "variational"] = "corp",
) -> Decomposition:
    r"""CORP decomposition of a mean score into miscalibration, discrimination and uncertainty.

    .. math:: \bar S = \underbrace{(\bar S - \bar S_{iso})}_{MCB} -
              \underbrace{(\bar S_{const} - \bar S_{iso})}_{DSC} + \underbrace{\bar S_{const}}_{UNC}

    where S_iso is the score after isotonic regression of the outcomes on the predictions (pool adjacent violators:
    no bins, no tuning) and S_const that of the base rate. All three are non-negative.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    score : {"brier", "log_loss"}
    method : {"corp", "variational"}
        "variational" puts the cross-fitted map of `calibration_error` in the place of isotonic regression: it is not
        biased upward by fitting its own rows, takes Multiclass predictions too, and its parts may come out negative.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = decompose(cal.Binary([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]), "brier")
    >>> parts.miscalibration.value, parts.discrimination.value, parts.uncertainty.value
    (0.07500000000000001, 0.125, 0.25)
    """
    if score not in ("brier", "log_loss"):
        message = f"score must be 'brier' or 'log_loss', got {score!r}."
        raise ValueError(message)
    if method == "variational":
        from calibrant.estimators.variational import decomposition

        return decomposition(data, y_prob, score)
    if method != "corp":
        message = f"method must be 'corp' or 'variational', got {method!r}."
        raise ValueError(message)
    mean, weight, observed = _scored_blocks(data, y_prob, score)
    total = weight.sum()
    recalibrated = _own_rate_score(weight, observed, score) / total
    constant = _own_rate_score(weight.sum(keepdims=True), observed.sum(keepdims=True), score) / total

    def part(value: float, name: str) -> Estimate:
        return Estimate(value, name=name, method=f"CORP, {mean.name}", n=mean.n)

    return Decomposition(
        score=mean,
        miscalibration=part(float(mean - recalibrated), "Miscalibration"),
        discrimination=part(float(constant - recalibrated), "Discrimination"),
        uncertainty=part(float(constant), "Uncertainty"),
    )


def _scored_blocks(data: Data, y_prob: ArrayLike | None, score: Score) -> tuple[Estimate, Floats, Floats]:
    """The mean score, and weight and outcomes of the blocks of isotonic regression."""
    scored = brier if score == "brier" else log_loss
    if not isinstance(data, BinTable):
        task = binary(data, y_prob)
        pairs = _probability_pairs(task)
        if pairs.plain_binary:
            _, weight, observed = isotonic_blocks(sorted_rows(pairs))
            return scored(task), weight, observed
        data = task
    cells = outcome_cells(data, needed_by="decompose")
    _, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
    return scored(cells), weight, observed


def _own_rate_score(weight: Floats, observed: Floats, score: Score) -> float:
    """Total score of blocks that forecast their own mean outcome."""
    rate = observed / weight
    if score == "brier":
        return float((weight * rate * (1 - rate)).sum())
    return float(_log_losses(rate, observed, weight - observed).sum())


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
