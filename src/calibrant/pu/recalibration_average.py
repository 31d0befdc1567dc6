"""A map from positives and unlabeled rows for a share of positives that is not known exactly."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.numerics.arrays import Floats
from calibrant.pu.recalibration import PUPlatt, PURecalibrator, Sides
from calibrant.pu.recalibration_nonparametric import PUIsotonic
from calibrant.recalibrate.inputs import Scores
from calibrant.recalibrate.sql_scores import SqlScores
from calibrant.table.binning import EqualMass
from calibrant.table.bintable import BinTable
from calibrant.table.unlabeled import largest_prior

#: The prior is taken to be known to this part of itself, if no interval is given.
_KNOWN_TO = 0.1
#: Bins and level of the largest prior that the scores allow.
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
            message = f"prior_interval must rise, got {self.prior_interval!r}."
            raise ValueError(message)
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

    def _map_sql(self, scores: SqlScores) -> str:
        return scores.dialect.mixture(np.full(2, 0.5), [inner._map_sql(scores) for inner in self.maps_])


def _mean(maps: list[Any], scores: Scores) -> Floats:
    return np.asarray((maps[0]._map(scores) + maps[1]._map(scores)) / 2)


def _largest(sides: Sides, prior: float) -> float:
    """The largest prior at which no bin holds more positives than rows."""
    weight = np.concatenate(
        [
            sides.positive_mass / prior * sides.effective_positives,
            sides.unlabeled_mass * sides.effective_unlabeled,
        ]
    )
    data = PositiveUnlabeled(sides.positive.probability, sides.unlabeled.probability, prior=prior, weight=weight)
    return largest_prior(BinTable.of(data, EqualMass(_BINS)), level=_LEVEL)
