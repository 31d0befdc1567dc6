"""A mean score in three parts: miscalibration, discrimination, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.predictions import binary
from calibrant.estimators.common import Data, outcome_cells
from calibrant.estimators.cross_fitting import Held
from calibrant.estimators.proper_scores import Score, _log_losses, _probability_pairs, brier, log_loss
from calibrant.estimators.variational import Source
from calibrant.estimators.variational_engine import Settings, Variational
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import isotonic_blocks, pool_adjacent_violators
from calibrant.numerics.sorting import sorted_rows
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable


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
    y_prob: ArrayLike | None = None,
    /,
    *,
    score: Score = "brier",
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
    >>> parts = decompose([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> parts.miscalibration.value, parts.discrimination.value, parts.uncertainty.value
    (0.07500000000000001, 0.125, 0.25)
    """
    if score not in ("brier", "log_loss"):
        message = f"score must be 'brier' or 'log_loss', got {score!r}."
        raise ValueError(message)
    if method == "variational":
        return _variational(data, y_prob, score)
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


def _variational(data: Source, y_prob: ArrayLike | None, score: Score) -> Decomposition:
    """Score = miscalibration - discrimination + uncertainty, with the cross-fitted map in place of the isotonic one."""
    fitted = Variational.of(data, y_prob, Settings())
    left = fitted.refinement(score)
    error = fitted.error("squared" if score == "brier" else "kl")
    held = fitted.runs[0]
    base = _constant_score(held, score)

    def part(value: float, name: str) -> Estimate:
        return Estimate(value, name=name, method=left.method, n=left.n)

    return Decomposition(
        score=part(float(left + error), "Brier score" if score == "brier" else "Log loss"),
        miscalibration=part(float(error), "Miscalibration"),
        discrimination=part(base - float(left), "Discrimination"),
        uncertainty=part(base, "Uncertainty"),
    )


def _constant_score(held: Held, score: Score) -> float:
    """The mean score of the base rates."""
    rate: Floats = held.weight @ held.outcome / held.weight.sum()
    if score == "brier":
        return float((rate * (1 - rate)).sum())
    every = np.append(rate, 1 - rate) if len(rate) == 1 else rate
    some = every[every > 0]
    return float(-(some * np.log(some)).sum())
