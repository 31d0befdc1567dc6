"""Maps fitted to positives and unlabeled rows. Never hand such labels to an ordinary map: unlabeled is not negative."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import InvalidPredictions
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.logistic import affine, positive_unlabeled_fit
from calibrant.numerics.special import expit
from calibrant.numerics.weights import importance_weights, weighted_rows
from calibrant.recalibrate.base import Recalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.sql import not_sql
from calibrant.recalibrate.sql_scores import SqlScores


@dataclass(frozen=True, eq=False)
class Sides:
    """The two samples as a map sees them: masses sum to the prior on the positives, to 1 on the unlabeled rows.

    The effective numbers of rows, (sum w)² / sum w², are the numbers of rows where there are no weights.
    """

    positive: Scores
    unlabeled: Scores
    positive_mass: Floats
    unlabeled_mass: Floats
    effective_positives: float
    effective_unlabeled: float

    @property
    def rising(self) -> BinomialCells:
        """Distinct unlabeled scores, each with the positives up to it; positives beyond the last go to the last."""
        p, place = np.unique(self.unlabeled.probability.astype(np.float64), return_inverse=True)
        above = np.minimum(np.searchsorted(p, self.positive.probability, side="left"), len(p) - 1)
        weight: Floats = np.bincount(place.reshape(-1), self.unlabeled_mass, len(p)).astype(np.float64, copy=False)
        positive: Floats = np.bincount(above, self.positive_mass, len(p)).astype(np.float64, copy=False)
        return BinomialCells(Scores(p, logits=False), weight, positive)


@dataclass(kw_only=True, eq=False, repr=False)
class PURecalibrator(Recalibrator):
    """Base of the maps fitted to positives and unlabeled rows: `fit(data)`, or `fit(positive, unlabeled)` with a prior.

    Parameters
    ----------
    prior : float, optional
        The share of positives; not needed where `fit` gets a `PositiveUnlabeled`, which holds it.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Examples
    --------
    >>> class BaseRate(PURecalibrator):
    ...     def _fit_sides(self, sides):
    ...         self.rate_ = sides.positive_mass.sum()
    ...
    ...     def _map(self, scores):
    ...         return np.full(len(scores), self.rate_)
    >>> BaseRate(prior=0.2).fit([0.6, 0.8], [0.1, 0.2, 0.8]).predict_proba([0.5])
    array([[0.8, 0.2]])
    """

    _multiclass = False

    prior: float | None = None

    def fit(  # type: ignore[override]
        self, positive: ArrayLike | PositiveUnlabeled, unlabeled: ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        positive : PositiveUnlabeled, or scores of labelled positives
        unlabeled : scores of unlabeled rows, drawn from the whole population
        """
        sides = self._sides(positive, unlabeled)
        self._set_one_event(sides.effective_positives + sides.effective_unlabeled)
        self._fit_sides(sides)
        return self

    def _sides(self, positive: Any, unlabeled: Any) -> Sides:
        if isinstance(positive, PositiveUnlabeled):
            if unlabeled is not None:
                message = "Give either a PositiveUnlabeled or the two samples, not both."
                raise TypeError(message)
            scores = (Scores(positive.positive, logits=False), Scores(positive.unlabeled, logits=False))
            prior, weights = positive.prior, (positive.positive_weight, positive.unlabeled_weight)
        elif unlabeled is None or self.prior is None:
            name = type(self).__name__
            message = f"{name}.fit needs a PositiveUnlabeled, or two samples and {name}(prior=...)."
            raise InvalidPredictions(message)
        else:
            scores = (self._validate_scores(positive), self._validate_scores(unlabeled))
            prior, weights = validation.fraction("prior", self.prior), (None, None)
        (positive, mass, size), (unlabeled, whole, rows) = map(_with_mass, scores, weights)
        return Sides(positive, unlabeled, prior * mass, whole, size, rows)

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        message = f"{type(self).__name__} is fitted to positives and unlabeled rows."
        raise TypeError(message)

    def _predict(self, scores: Scores) -> Floats:
        p = self._map(scores)
        return np.stack([1 - p, p], axis=1)

    def _sql(self, scores: SqlScores) -> list[str]:
        return scores.dialect.two_classes(self._map_sql(scores))

    @abstractmethod
    def _fit_sides(self, sides: Sides) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _map(self, scores: Scores) -> Floats:
        """Recalibrated probability of being positive."""

    def _map_sql(self, scores: SqlScores) -> str:
        """The same as an expression."""
        raise not_sql(self)


@dataclass(kw_only=True, eq=False, repr=False)
class _PULogistic(PURecalibrator):
    r"""Logistic maps: minimise the unbiased risk mean_U softplus(z) - π mean_P z, with a ridge towards the identity."""

    #: Whether all coefficients but the last must be at least 0.
    _nonnegative: ClassVar[bool] = False

    ridge: float | None = None

    def _fit_sides(self, sides: Sides) -> None:
        ridge = 1 / sides.effective_positives if self.ridge is None else self.ridge
        if not ridge > 0:
            message = f"ridge must be positive (without one there may be no finite fit), got {self.ridge!r}."
            raise ValueError(message)
        self.coefficients_ = positive_unlabeled_fit(
            self._features(sides.positive.log_odds),
            self._features(sides.unlabeled.log_odds),
            positive_mass=sides.positive_mass,
            unlabeled_mass=sides.unlabeled_mass,
            start=self._identity(),
            ridge=ridge,
            nonnegative=self._nonnegative,
        )

    def _map(self, scores: Scores) -> Floats:
        return expit(self._features(scores.log_odds) @ self.coefficients_)

    def _map_sql(self, scores: SqlScores) -> str:
        return scores.dialect.expit(self._log_odds_sql(scores))

    @abstractmethod
    def _features(self, x: Floats) -> Floats:
        """The columns of the design, from log odds."""

    @abstractmethod
    def _log_odds_sql(self, scores: SqlScores) -> str:
        """The recalibrated log odds as an expression."""

    @abstractmethod
    def _identity(self) -> Floats:
        """The coefficients that change nothing."""


class PUPlatt(_PULogistic):
    r"""Platt scaling from positives and unlabeled rows.

    .. math:: q = \sigma(a + b\operatorname{logit} p), \qquad
              \min_{a,b}\; \mathrm{mean}_U \log(1 + e^z) - \pi\, \mathrm{mean}_P z
              + \tfrac\varrho2\bigl(a^2 + \overline{z_0^2}\,(b - 1)^2\bigr)

    The risk is convex, and with all rows unlabeled and their own positives it is the ordinary log loss. Without the
    ridge ϱ there is no finite fit in about 4 % of samples of 100 positives and 1000 unlabeled rows; with it there
    always is.

    Parameters
    ----------
    prior : float, optional
        The share of positives; not needed where `fit` gets a `PositiveUnlabeled`.
    ridge : float, optional
        ϱ; by default one over the effective number of positives.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    coefficients_ : array (a, b)

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.5)
    >>> PUPlatt().fit(data).predict_proba([0.5]).round(3)
    array([[0.49, 0.51]])
    """

    def _features(self, x: Floats) -> Floats:
        return affine(x)

    def _log_odds_sql(self, scores: SqlScores) -> str:
        return scores.dialect.polynomial(scores.log_odds, self.coefficients_)

    def _identity(self) -> Floats:
        return np.array([0.0, 1.0])


class PUTemperature(_PULogistic):
    """Temperature scaling from positives and unlabeled rows: as `PUPlatt`, without the intercept.

    It cannot repair a wrong base rate; `PUPlatt` can.

    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.5)
    >>> PUTemperature().fit(data).predict_proba([0.5])
    array([[0.5, 0.5]])
    """

    def _features(self, x: Floats) -> Floats:
        return x[:, None]

    def _log_odds_sql(self, scores: SqlScores) -> str:
        return scores.dialect.polynomial(scores.log_odds, [0.0, *self.coefficients_])

    def _identity(self) -> Floats:
        return np.ones(1)


class PUBeta(_PULogistic):
    r"""Beta calibration from positives and unlabeled rows: z = a log p - b log(1 - p) + c with a, b >= 0.

    The risk is that of `PUPlatt`; the bounds are met exactly, as in `Beta`.

    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.5)
    >>> PUBeta().fit(data).coefficients_.round(2)
    array([1.17, 1.2 , 0.03])
    """

    _nonnegative = True

    def _features(self, x: Floats) -> Floats:
        return np.stack([-np.logaddexp(0, -x), np.logaddexp(0, x), np.ones(len(x))], axis=1)

    def _log_odds_sql(self, scores: SqlScores) -> str:
        return scores.dialect.beta_log_odds(scores.log_odds, *self.coefficients_.tolist())

    def _identity(self) -> Floats:
        return np.array([1.0, 1.0, 0.0])


def _with_mass(scores: Scores, weight: NDArray[Any] | None) -> tuple[Scores, Floats, float]:
    """The rows that have weight, their shares of it, and their effective number."""
    if weight is not None:
        some = weighted_rows(weight)
        scores, weight = scores.take(some), importance_weights(weight[some])
    if weight is None:
        return scores, np.full(len(scores), 1 / len(scores)), float(len(scores))
    total = float(weight.sum())
    return scores, weight / total, total
