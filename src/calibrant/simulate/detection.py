"""Can a miscalibration be detected? Type I and type II errors when an estimate is used as a test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.data import validation
from calibrant.results.target import Estimator, name_of, norm_of
from calibrant.simulate.estimation_bias import estimates
from calibrant.simulate.worlds import World


@dataclass(frozen=True)
class Detection:
    """Error rates of an estimate used as a test of calibration, with Monte-Carlo standard errors (`_se`).

    Attributes
    ----------
    estimator, world : str
    n, repeats : int
    alpha : float
        The nominal significance: the rate of false alarms that was asked for.
    true_error, threshold : float
        The world's error, and the estimate above which a model is called miscalibrated.
    type_one : float
        Rate of false alarms on fresh samples of the calibrated world.
    type_two : float
        Rate of misses in the world itself.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import PowerCurve, UniformScores, World
    >>> world = World(UniformScores(), PowerCurve(1.5), name="power 1.5")
    >>> found = power(cal.ece, world, 200, alpha=0.1, repeats=200)
    >>> found.alpha, round(found.true_error, 3), found.power == 1 - found.type_two
    (0.1, 0.1, True)
    """

    estimator: str
    world: str
    n: int
    repeats: int
    alpha: float
    true_error: float
    threshold: float
    type_one: float
    type_one_se: float
    type_two: float
    type_two_se: float

    @property
    def power(self) -> float:
        """The probability of detecting the miscalibration: 1 - type_two."""
        return 1 - self.type_two

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        misses, alarms = (f"{rate:.1%} ± {se:.1%}" for rate, se in self._rates())
        what = f"<{self.estimator} misses an error of {self.true_error:.4f} in {misses} of samples at n={self.n:_}"
        return f"{what}, with false alarms in {alarms}>"

    def _rates(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.type_two, self.type_two_se), (self.type_one, self.type_one_se)


def power(
    estimator: Estimator,
    world: World,
    n: int,
    *,
    alpha: float = 0.05,
    repeats: int = 1000,
    seed: int = 0,
    norm: Any = None,
) -> Detection:
    """Type I and type II error of calling a model miscalibrated when its estimate is large.

    The threshold is the 1 - `alpha` quantile of the estimator on samples of the same scores from a calibrated model;
    the type I error is measured on independent samples, not those that gave the threshold.

    Parameters
    ----------
    estimator, world, n, repeats, seed, norm
        As for `bias`.
    alpha : float in (0, 1)
        The significance: the accepted rate of false alarms.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), section 7.2 and Figure 5.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import World, UniformScores, PowerCurve
    >>> result = power(cal.sweep_ece, World(UniformScores(), PowerCurve(1.5)), 500, repeats=200)
    >>> result.type_two < 0.2
    True
    """
    alpha, seed = validation.fraction("alpha", alpha), validation.seed(seed)
    null, name = world.calibrated(), name_of(estimator)

    def simulated(source: World, offset: int) -> Any:
        return estimates({name: estimator}, source, n, repeats=repeats, seed=seed + offset)[name]

    threshold = float(np.quantile(simulated(null, 0), 1 - alpha))
    false_alarms = float(np.mean(simulated(null, 1) > threshold))
    misses = float(np.mean(simulated(world, 0) <= threshold))
    return Detection(
        estimator=name,
        world=world.name,
        n=n,
        repeats=repeats,
        alpha=alpha,
        true_error=world.true_error(norm_of(estimator) if norm is None else norm),
        threshold=threshold,
        type_one=false_alarms,
        type_one_se=_rate_error(false_alarms, repeats),
        type_two=misses,
        type_two_se=_rate_error(misses, repeats),
    )


def _rate_error(rate: float, repeats: int) -> float:
    return float(np.sqrt(rate * (1 - rate) / repeats))
