"""A mean score in three parts: miscalibration, discrimination, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np

from calibrant.data.predictions import Column, Columns, Multiclass, binary
from calibrant.data.validation import fail
from calibrant.estimators import proper_scores
from calibrant.estimators.cross_fitting import CrossFitted
from calibrant.estimators.proper_scores import Score
from calibrant.estimators.variational import Source
from calibrant.estimators.variational_engine import Settings, Variational
from calibrant.numerics.arrays import Floats
from calibrant.numerics.smoothers import isotonic_blocks, pool_adjacent_violators
from calibrant.numerics.sorting import sorted_rows
from calibrant.results.estimate import Estimate
from calibrant.results.target import Target, takes_columns
from calibrant.table.bintable import BinTable, Data, outcome_cells


@dataclass(frozen=True)
class Decomposition:
    """A mean score = miscalibration - discrimination + uncertainty; what `decompose` returns.

    Attributes
    ----------
    score : Estimate
        The mean score itself.
    miscalibration : Estimate
        Score that recalibration would remove (MCB, reliability).
    discrimination : Estimate
        Score of the constant base rate less that of the recalibrated predictions (DSC, resolution).
    uncertainty : Estimate
        The score of the constant base rate (UNC).

    Examples
    --------
    >>> parts = decompose([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> parts.miscalibration
    <Miscalibration 0.075, n=4, CORP, Brier score>
    >>> round(parts.miscalibration - parts.discrimination + parts.uncertainty, 12) == parts.score
    True
    >>> parts.refinement
    0.125
    """

    score: Estimate
    miscalibration: Estimate
    discrimination: Estimate
    uncertainty: Estimate

    @property
    def refinement(self) -> float:
        """Score after recalibration: uncertainty - discrimination."""
        return self.uncertainty - self.discrimination

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import decomposition_html

        return decomposition_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {name: getattr(self, name).to_dict() for name in self.__dataclass_fields__}


@takes_columns
def decompose(
    data: Data = None,
    y_prob: Column = None,
    *,
    score: Score = "brier",
    method: Literal["corp", "variational"] | None = None,
    floor: float = 0.0,
    **columns: Unpack[Columns],
) -> Decomposition:
    r"""Decomposition of a mean score into miscalibration, discrimination and uncertainty.

    .. math:: \bar S = \underbrace{(\bar S - \bar S_{iso})}_{MCB} -
              \underbrace{(\bar S_{const} - \bar S_{iso})}_{DSC} + \underbrace{\bar S_{const}}_{UNC}

    where S_iso is the score after isotonic regression of the outcomes on the predictions (pool adjacent violators:
    no bins, no tuning; CORP) and S_const that of the base rate. All three are non-negative. Multiclass vectors
    have no order; the out-of-fold probabilities of a map fitted on other rows replace isotonic regression.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
    score : {"brier", "log_loss"}
    method : {"corp", "variational"}, optional
        By default "corp", and "variational" for multiclass data. The latter replaces isotonic regression by the
        cross-fitted map of `variational_error`, which is not biased upward by fitting its own rows. Whatever the map,
        the expected miscalibration is then at most the true one, and the expected refinement at least the true one;
        parts may be negative by chance.
    floor : float in [0, 0.5)
        For the log loss: probabilities (predicted, recalibrated and base rate alike) are moved into [floor, 1 - floor]
        before logarithms are taken, see `log_loss`. With 0 the score is infinite where an outcome of predicted
        probability 0 was observed; ``score.details`` then counts these rows and names the first.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers. Berta, Braun,
    Holzmüller, Bach, Jordan (2026), A Variational Estimator for Calibration Errors.

    Examples
    --------
    >>> parts = decompose([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> parts.miscalibration.value, parts.discrimination.value, parts.uncertainty.value
    (0.07500000000000001, 0.125, 0.25)

    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> parts = decompose(cal.Multiclass(y, p**2 / (p**2).sum(axis=1, keepdims=True)))
    >>> parts.miscalibration  # the true one is 0.036
    <Miscalibration 0.0..., n=1_000, 5 folds x 3, conditional logit>
    """
    if score not in ("brier", "log_loss"):
        fail(f"score must be 'brier' or 'log_loss', got {score!r}.", ValueError)
    settings = Settings(floor=floor)
    settings.require_log_score(used=score == "log_loss", where="score='log_loss'")
    several = isinstance(data, Multiclass)
    if method == "variational" or (method is None and several):
        return _variational(data, y_prob, score, settings)
    if several:
        fail("Isotonic regression needs one score per row: leave method out for multiclass data.")
    if method not in ("corp", None):
        fail(f"method must be 'corp' or 'variational', got {method!r}.", ValueError)
    mean, weight, observed = _scored_blocks(data, y_prob, score, floor)
    total = weight.sum()
    recalibrated = _block_score(weight, observed, score, floor) / total
    constant = _block_score(weight.sum(keepdims=True), observed.sum(keepdims=True), score, floor) / total
    words = f"CORP, {mean.name}" + (f", floor={floor:g}" if floor > 0 else "")

    def part(value: float, name: str) -> Estimate:
        return Estimate(value, name=name, method=words, n=mean.n)

    return Decomposition(
        score=mean,
        miscalibration=part(float(mean - recalibrated), "Miscalibration"),
        discrimination=part(float(constant - recalibrated), "Discrimination"),
        uncertainty=part(float(constant), "Uncertainty"),
    )


def _scored_blocks(data: Data, y_prob: Column, score: Score, floor: float) -> tuple[Estimate, Floats, Floats]:
    """The mean score, and weight and outcomes of the blocks of isotonic regression."""
    scored = proper_scores.brier if score == "brier" else partial(proper_scores.log_loss, floor=floor)
    if not isinstance(data, BinTable):
        task = binary(data, y_prob)
        rows = proper_scores.probability_rows(task)
        if rows.plain_binary:
            _, weight, observed = isotonic_blocks(sorted_rows(rows))
            return scored(task), weight, observed
        data = task
    cells = outcome_cells(data, needed_by="decompose")
    _, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
    return scored(cells), weight, observed


def _block_score(weight: Floats, observed: Floats, score: Score, floor: float) -> float:
    """Total score of blocks whose prediction is their mean outcome."""
    rate = observed / weight
    if score == "brier":
        return float((weight * rate * (1 - rate)).sum())
    return float(proper_scores.log_losses(proper_scores.floored(rate, floor), observed, weight - observed).sum())


def _variational(data: Source, y_prob: Column, score: Score, settings: Settings) -> Decomposition:
    """Score = miscalibration - discrimination + uncertainty, with the cross-fitted map in place of the isotonic one."""
    fitted = Variational.of(data, y_prob, settings)
    refinement = fitted.refinement(score)
    error = fitted.error("squared" if score == "brier" else "kl")
    base = _constant_score(fitted.runs[0], score, settings.floor)
    name = "Brier score" if score == "brier" else "Log loss"

    def part(value: float, name: str, of: Estimate = refinement) -> Estimate:
        kept = {key: value for key, value in of.details.items() if key in proper_scores.PROVENANCE}
        return Estimate(value, name=name, method=of.method, n=of.n, details=kept)

    return Decomposition(
        score=part(float(refinement + error), name, error).with_target(Target("mean score")),
        miscalibration=part(float(error), "Miscalibration", error),
        discrimination=part(base - float(refinement), "Discrimination"),
        uncertainty=part(base, "Uncertainty"),
    )


def _constant_score(rows: CrossFitted, score: Score, floor: float) -> float:
    """The mean score of the base rates."""
    rate = rows.base_rates
    if score == "brier":
        return float((rate * (1 - rate)).sum())
    every = np.append(rate, 1 - rate) if len(rate) == 1 else rate
    predicted = proper_scores.floored(every[None], floor)[0]
    some = every > 0
    return float(-(every[some] * np.log(predicted[some])).sum())
