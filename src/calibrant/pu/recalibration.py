"""Maps fitted to positives and unlabeled rows: logistic, isotonic and histogram maps, and a safe average."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Codes, Floats, expit, log_odds
from calibrant.numerics.logistic.binary import affine, positive_unlabeled_fit
from calibrant.numerics.rows import importance_weights, weighted_rows
from calibrant.numerics.smoothers import pool_adjacent_violators
from calibrant.recalibrate.base import BinaryMap
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, beta_log_odds, mixture, polynomial
from calibrant.recalibrate.expressions import expit as expit_expression
from calibrant.recalibrate.inputs import BinomialCells, Input, Scores
from calibrant.recalibrate.logistic import beta_features
from calibrant.recalibrate.nonparametric import LineMap, StepMap, bin_of, block_ends, edges_of
from calibrant.table.binning import Cut, EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.task import largest_prior


@dataclass(frozen=True, eq=False)
class Sides:
    """The two samples as a map sees them: masses sum to the prior and to 1; effective numbers are Kish's."""

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
        sides = ((place.reshape(-1), self.unlabeled_mass), (above, self.positive_mass))
        sums = (np.bincount(at, mass, len(p)).astype(np.float64, copy=False) for at, mass in sides)
        return BinomialCells(Scores(p, logits=False), *sums)


@dataclass(kw_only=True, eq=False, repr=False)
class PURecalibrator(BinaryMap):
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
                fail("Give either a PositiveUnlabeled or the two samples, not both.", TypeError)
            scores = (Scores(positive.positive, logits=False), Scores(positive.unlabeled, logits=False))
            prior, weights = positive.prior, (positive.positive_weight, positive.unlabeled_weight)
        elif unlabeled is None or self.prior is None:
            name = type(self).__name__
            fail(f"{name}.fit needs a PositiveUnlabeled, or two samples and {name}(prior=...).")
        else:
            scores = (self._validate_scores(positive), self._validate_scores(unlabeled))
            prior, weights = validation.fraction("prior", self.prior), (None, None)
        (positive, mass, size), (unlabeled, whole, rows) = map(_with_mass, scores, weights)
        return Sides(positive, unlabeled, prior * mass, whole, size, rows)

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        fail(f"{type(self).__name__} is fitted to positives and unlabeled rows.", TypeError)

    @abstractmethod
    def _fit_sides(self, sides: Sides) -> None:
        """Set the fitted attributes."""


@dataclass(kw_only=True, eq=False, repr=False)
class _PULogistic(PURecalibrator):
    r"""Logistic maps: minimise the unbiased risk mean_U softplus(z) - π mean_P z, with a ridge towards the identity."""

    #: The coefficients that change nothing, and whether all of them but the last must be at least 0.
    _identity: ClassVar[tuple[float, ...]]
    _nonnegative: ClassVar[bool] = False

    ridge: float | None = None

    def _fit_sides(self, sides: Sides) -> None:
        ridge = 1 / sides.effective_positives if self.ridge is None else self.ridge
        if not ridge > 0:
            fail(f"ridge must be positive (without one there may be no finite fit), got {self.ridge!r}.", ValueError)
        features = (self._features(side.log_odds) for side in (sides.positive, sides.unlabeled))
        masses = {"positive_mass": sides.positive_mass, "unlabeled_mass": sides.unlabeled_mass}
        start = np.array(self._identity)
        self.coefficients_ = positive_unlabeled_fit(
            *features, **masses, start=start, ridge=ridge, nonnegative=self._nonnegative
        )

    def _map(self, scores: Scores) -> Floats:
        return expit(self._features(scores.log_odds) @ self.coefficients_)

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        return expit_expression(self._log_odds_expression(scores.log_odds))

    def _features(self, x: Floats) -> Floats:
        """The columns of the design, from log odds; of a line, without the intercept where there is none."""
        return affine(x)[:, -len(self._identity) :]

    def _log_odds_expression(self, x: Expression) -> Expression:
        """The recalibrated log odds as an expression."""
        return polynomial(x, [0.0, *self.coefficients_.tolist()][-2:])


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

    _identity = (0.0, 1.0)


class PUTemperature(_PULogistic):
    """Temperature scaling from positives and unlabeled rows: as `PUPlatt`, without the intercept.

    It cannot repair a wrong base rate; `PUPlatt` can.

    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.5)
    >>> PUTemperature().fit(data).predict_proba([0.5])
    array([[0.5, 0.5]])
    """

    _identity = (1.0,)


class PUBeta(_PULogistic):
    r"""Beta calibration from positives and unlabeled rows: z = a log p - b log(1 - p) + c with a, b >= 0.

    The risk is that of `PUPlatt`; the bounds are met exactly, as in `Beta`.

    >>> import calibrant as cal
    >>> data = cal.PositiveUnlabeled([0.6, 0.8, 0.9], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9], prior=0.5)
    >>> PUBeta().fit(data).coefficients_.round(2)
    array([1.17, 1.2 , 0.03])
    """

    _identity = (1.0, 1.0, 0.0)
    _nonnegative = True

    def _features(self, x: Floats) -> Floats:
        return beta_features(x)

    def _log_odds_expression(self, x: Expression) -> Expression:
        return beta_log_odds(x, *self.coefficients_.tolist())


def _with_mass(scores: Scores, weight: NDArray[Any] | None) -> tuple[Scores, Floats, float]:
    """The rows that have weight, their shares of it, and their effective number."""
    if weight is not None:
        some = weighted_rows(weight)
        scores, weight = scores.take(some), importance_weights(weight[some])
    if weight is None:
        return scores, np.full(len(scores), 1 / len(scores)), float(len(scores))
    total = float(weight.sum())
    return scores, weight / total, total


class PUIsotonic(LineMap, PURecalibrator):
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

    def _fit_sides(self, sides: Sides) -> None:
        cells = sides.rising
        starts, weight, positive = pool_adjacent_violators(cells.weight, cells.positive)
        self.knots_, self.values_ = block_ends(cells.probability, starts, np.clip(positive / weight, 0.0, 1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class PUHistogram(StepMap, PURecalibrator):
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
        fail(f"prior_shift moves one column, the probability of being positive, got {checked.columns}.")
    if checked.logits:
        return expit(checked.log_odds + shift)
    p, ratio = checked.probability.astype(np.float64), np.exp(shift)
    return p * ratio / (p * ratio + (1 - p))


#: The prior is taken to be known to this part of itself, if no interval is given. Test:
#: tests/pu/test_recalibration_recalibration_average.py::test_both_maps_have_the_prior_nearest_to_the_mean_score.
_KNOWN_TO = 0.1
#: Bins and level of the largest prior that the scores allow.
#: Test: tests/pu/test_recalibration_recalibration_average.py::test_a_prior_that_the_scores_rule_out_is_cut.
_BINS, _LEVEL = 20, 0.95


class PriorSensitivityWarning(UserWarning):
    """What is not known of the share of positives changes the probabilities by more than the map does.

    >>> import warnings
    >>> warnings.simplefilter("ignore", PriorSensitivityWarning)  # once you have read `sensitivity_`
    """


@dataclass(kw_only=True, eq=False, repr=False)
class PUAverage(PURecalibrator):
    r"""The average of `PUPlatt` and `PUIsotonic`, safe under a share of positives that is somewhat wrong.

    A prior that is too high by a tenth moves every probability of a map that trusts it, whatever the scores say. The
    prior is therefore known only to lie in an interval. Of this, the point is used that is nearest to the mean score of
    the unlabeled rows,

    .. math:: \pi^* = \arg\min_{\pi \in [\pi_L, \min(\pi_U, \pi_{\max})]} |\pi - \mathrm{mean}_U\, p|,

    where no bin holds more positives than rows for π up to :math:`\pi_{\max}` (`largest_prior`). If the model's own
    mean is compatible with what is known, it stays, and only the shape is repaired; else it is moved to the near end
    of the interval, and no further.

    Parameters
    ----------
    prior : float, optional
        The share of positives; not needed where `fit` gets a `PositiveUnlabeled`, which holds it.
    prior_interval : (float, float), optional
        Where the prior is known to lie, e.g. the interval of `estimate_prior`; by default within 10 % of the prior. A
        prior that is known exactly is better used by `PUPlatt`.
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    prior_used_ : float
        π*.
    prior_interval_ : tuple
        Where the prior may lie, cut at the largest prior that the scores allow.
    sensitivity_ : float
        Mean absolute difference of the probabilities of unlabeled rows between maps fitted with the ends of that
        interval.
    change_ : float
        Mean absolute difference of the probabilities of unlabeled rows before and after the map.

    Warns
    -----
    PriorSensitivityWarning
        `sensitivity_` is larger than `change_`: the repair is within what is not known of the prior.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> population = rng.beta(2, 4, 5000)  # scores; the truth is p² / (p² + (1 - p)²)
    >>> truth = population**2 / (population**2 + (1 - population)**2)
    >>> positive = population[rng.random(5000) < truth][:500]
    >>> fitted = PUAverage().fit(cal.PositiveUnlabeled(positive, population, prior=0.3))
    >>> 0.02 < fitted.sensitivity_ < 0.1
    True
    """

    prior_interval: tuple[float, float] | None = None

    def _fit_sides(self, sides: Sides) -> None:
        prior = float(sides.positive_mass.sum())
        low, high = self._interval(prior)
        high = max(low, min(high, _largest(sides, prior)))
        self.prior_interval_ = (low, high)
        p = sides.unlabeled.probability.astype(np.float64)
        self.prior_used_ = float(np.clip(p @ sides.unlabeled_mass, low, high))
        self.maps_ = self._both(sides, self.prior_used_ / prior)
        ends = [_mean(self._both(sides, end / prior), sides.unlabeled) for end in (low, high)]
        self.sensitivity_ = float(np.abs(ends[1] - ends[0]) @ sides.unlabeled_mass)
        self.change_ = float(np.abs(_mean(self.maps_, sides.unlabeled) - p) @ sides.unlabeled_mass)
        if self.sensitivity_ > self.change_:
            warnings.warn(
                f"Between the priors {low:.3g} and {high:.3g} the probabilities of unlabeled rows differ by "
                f"{self.sensitivity_:.3f} on average, and this map changes them by {self.change_:.3f}: what is not "
                "known of the prior matters more than the repair. Give a narrower prior_interval if you have one.",
                PriorSensitivityWarning,
                stacklevel=4,
            )

    def _interval(self, prior: float) -> tuple[float, float]:
        if self.prior_interval is None:
            return prior * (1 - _KNOWN_TO), min(prior * (1 + _KNOWN_TO), (1 + prior) / 2)
        low, high = (validation.fraction("prior_interval", end) for end in self.prior_interval)
        if low > high:
            fail(f"prior_interval must rise, got {self.prior_interval!r}.", ValueError)
        return low, high

    def _both(self, sides: Sides, factor: float) -> list[Any]:
        """Both maps for a prior that is `factor` times the one of the sides."""
        moved = replace(sides, positive_mass=factor * sides.positive_mass)
        maps: list[PURecalibrator] = [PUPlatt(input=self.input), PUIsotonic(input=self.input)]
        for inner in maps:
            inner._set_one_event(self.weight_)
            inner._fit_sides(moved)
        return maps

    def _map(self, scores: Scores) -> Floats:
        return _mean(self.maps_, scores)

    def _map_expression(self, scores: ScoreExpressions) -> Expression:
        return mixture([0.5, 0.5], [inner._map_expression(scores) for inner in self.maps_])


def _mean(maps: list[Any], scores: Scores) -> Floats:
    return np.asarray((maps[0]._map(scores) + maps[1]._map(scores)) / 2)


def _largest(sides: Sides, prior: float) -> float:
    """The largest prior at which no bin holds more positives than rows."""
    positive = sides.positive_mass / prior * sides.effective_positives
    weight = np.concatenate([positive, sides.unlabeled_mass * sides.effective_unlabeled])
    data = PositiveUnlabeled(sides.positive.probability, sides.unlabeled.probability, prior=prior, weight=weight)
    return largest_prior(BinTable.of(data, EqualMass(_BINS)), level=_LEVEL)
