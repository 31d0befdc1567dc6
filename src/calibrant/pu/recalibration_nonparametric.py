"""Maps without a formula fitted to positives and unlabeled rows, and the shift of a wrong prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import pool_adjacent_violators
from calibrant.numerics.special import expit, log_odds
from calibrant.pu.recalibration import PURecalibrator, Sides
from calibrant.recalibrate.histogram import bin_of, edges_of
from calibrant.recalibrate.inputs import Input, Scores
from calibrant.recalibrate.sql_scores import SqlScores
from calibrant.table.binning import Cut, EqualMass


class PUIsotonic(PURecalibrator):
    r"""Isotonic regression from positives and unlabeled rows.

    .. math:: \min_{g \text{ rising}}\; \mathrm{mean}_U\, g(p)^2 - 2\pi\, \mathrm{mean}_P\, g(p)

    Each positive counts at the smallest unlabeled score that is not below it (past the last: there); then it is
    ordinary isotonic regression, cut at 0 and 1. Linear between the unlabeled scores, constant beyond them.

    Attributes
    ----------
    knots_, values_ : array
        Corners of the map.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.5)
    >>> PUIsotonic().fit(data).predict_proba([0.2, 0.8])
    array([[1., 0.],
           [0., 1.]])
    """

    knots_: Floats
    values_: Floats

    def _fit_sides(self, sides: Sides) -> None:
        cells = sides.rising
        starts, weight, positive = pool_adjacent_violators(cells.weight, cells.positive)
        ends = np.append(starts[1:], len(cells.weight)) - 1
        p = cells.probability
        rate = np.clip(positive / weight, 0.0, 1.0)
        knots = np.stack([p[starts], p[ends]], axis=1).ravel()
        once = np.stack([np.ones(len(starts), dtype=bool), ends > starts], axis=1).ravel()
        self.knots_, self.values_ = knots[once], np.repeat(rate, 2)[once]

    def _map(self, scores: Scores) -> Floats:
        return np.interp(scores.probability, self.knots_, self.values_)

    def _map_sql(self, scores: SqlScores) -> str:
        return scores.interpolated(self.knots_, self.values_)


@dataclass(kw_only=True, eq=False, repr=False)
class PUHistogram(PURecalibrator):
    r"""Histogram binning from positives and unlabeled rows: the implied share of positives, π P_b / u_b, at most 1.

    Parameters
    ----------
    bins : EqualMass, EqualWidth or Edges
        Cut by the unlabeled rows. A bin without any keeps its middle.
    prior, input, laplace, clip
        As for `PUPlatt`.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.4)
    >>> PUHistogram(bins=cal.EqualMass(2)).fit(data).values_
    array([0. , 0.8])
    """

    bins: Cut | int = EqualMass(10)

    def _fit_sides(self, sides: Sides) -> None:
        self.edges_ = edges_of(sides.rising, self.bins)
        size = len(self.edges_) - 1
        weight = np.bincount(bin_of(sides.unlabeled.probability, self.edges_), sides.unlabeled_mass, size)
        positive = np.bincount(bin_of(sides.positive.probability, self.edges_), sides.positive_mass, size)
        middle = (self.edges_[1:] + self.edges_[:-1]) / 2
        self.values_ = np.where(weight > 0, np.minimum(positive / np.where(weight > 0, weight, 1), 1.0), middle)

    def _map(self, scores: Scores) -> Floats:
        values: Floats = self.values_[bin_of(scores.probability, self.edges_)]
        return values

    def _map_sql(self, scores: SqlScores) -> str:
        values = [scores.dialect.number(value) for value in self.values_]
        return scores.steps("probability", self.edges_[1:-1], values)


def prior_shift(
    scores: ArrayLike, *, from_prior: float, to_prior: float, input: Input = "probabilities", clip: bool = False
) -> Floats:
    r"""Probabilities of a model made for one share of positives, moved to another.

    .. math:: q = \sigma\bigl(\operatorname{logit} p + \operatorname{logit}\pi - \operatorname{logit}\pi'\bigr)

    Exact where the two populations differ in the share of positives alone. A model trained by the imbalanced nnPU
    risk learns the posterior for the prior π' it was trained with (1/2), so this repairs it: `from_prior=0.5`.

    Examples
    --------
    >>> prior_shift([0.5, 0.9], from_prior=0.5, to_prior=0.14).round(3)
    array([0.14 , 0.594])
    """
    after, before = validation.fraction("to_prior", to_prior), validation.fraction("from_prior", from_prior)
    shift = float(log_odds(after) - log_odds(before))
    checked = Scores.of(scores, input=input, clip=clip)
    if checked.columns > 1:
        message = f"prior_shift moves one column, the probability of being positive, got {checked.columns}."
        raise InvalidPredictions(message)
    if checked.logits:
        return expit(checked.log_odds + shift)
    p, ratio = checked.probability.astype(np.float64), np.exp(shift)
    moved: Floats = p * ratio / (p * ratio + (1 - p))
    return moved
