"""Calibration curves: the true probability of the event at each score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import expit, log_complement, log_odds, log_probability, times

Family = Literal["logit_logit", "logit_logflip", "log_log", "logflip_logflip"]


class Curve(ABC):
    """The true probability of the event at each score, E[Y | score].

    Call it with scores; `at`, which subclasses define, takes log-odds and is exact next to 0 and 1.

    Examples
    --------
    >>> class Halved(Curve):
    ...     def at(self, z):
    ...         return expit(z) / 2
    >>> Halved()([0.5, 1.0])
    array([0.25, 0.5 ])
    """

    @abstractmethod
    def at(self, z: Floats) -> Floats:
        """The probability of the event at log-odds z."""

    def __call__(self, scores: ArrayLike) -> Floats:
        """The probability of the event at these scores."""
        return self.at(log_odds(scores))


@dataclass(frozen=True)
class IdentityCurve(Curve):
    """A calibrated model: the probability is the score.

    >>> IdentityCurve()([0.25, 1.0])
    array([0.25, 1.  ])
    """

    def at(self, z: Floats) -> Floats:
        """The score itself."""
        return expit(z)


@dataclass(frozen=True)
class PowerCurve(Curve):
    """The probability is the score to the power d: overconfident for d > 1.

    >>> PowerCurve(2)([0.5, 1.0])
    array([0.25, 1.  ])
    """

    d: float

    def __post_init__(self) -> None:
        _positive("PowerCurve", "d", self.d)

    def at(self, z: Floats) -> Floats:
        """exp(d log s)."""
        return np.exp(self.d * log_probability(z))


@dataclass(frozen=True)
class Glm(Curve):
    r"""One of the generalised linear families of the paper, link_transform.

    ===============  ==============================================
    logit_logit      :math:`1/(1 + e^{-(b_0 + b_1 \log(s/(1-s)))}`
    logit_logflip    :math:`1/(1 + e^{-(b_0 + b_1 \log(1-s))}`
    log_log          :math:`e^{b_0} s^{b_1}`
    logflip_logflip  :math:`1 - e^{b_0} (1-s)^{b_1}`
    ===============  ==============================================

    The last two are cut off at 1 and 0, where their formula passes it.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), appendix A.2.

    Examples
    --------
    >>> Glm("logit_logit", b0=0, b1=1)([0.2, 0.9])
    array([0.2, 0.9])
    """

    family: Family
    b0: float = 0.0
    b1: float = 0.0

    def __post_init__(self) -> None:
        if self.family not in get_args(Family):
            fail(f"Glm family must be one of {', '.join(get_args(Family))}, got {self.family!r}.", ValueError)

    def at(self, z: Floats) -> Floats:
        """The inverse link of b0 + b1 t."""
        link = self.family.split("_")[0]
        eta = self.b0 + times(self.b1, transform(self.family, z))
        if link == "logit":
            return expit(eta)
        power = np.exp(np.minimum(eta, 0.0))
        return power if link == "log" else 1 - power


def transform(family: Family, z: Floats) -> Floats:
    """t(s) of a family: the log-odds, log s, or log(1 - s)."""
    if family == "logit_logit":
        return np.asarray(z, dtype=np.float64)
    return log_probability(z) if family == "log_log" else log_complement(z)


@dataclass(frozen=True)
class TemperatureCurve(Curve):
    """Log-odds divided by t: above 1 the model is overconfident.

    >>> TemperatureCurve(2)([0.5, 0.9]).round(3)
    array([0.5 , 0.75])
    """

    t: float

    def __post_init__(self) -> None:
        _positive("TemperatureCurve", "t", self.t)

    def at(self, z: Floats) -> Floats:
        """Logistic of z / t."""
        return expit(z / self.t)


@dataclass(frozen=True)
class ShiftCurve(Curve):
    """The score plus a constant, kept within [0, 1].

    >>> ShiftCurve(0.02)([0.5, 0.99])
    array([0.52, 1.  ])
    """

    by: float

    def at(self, z: Floats) -> Floats:
        """Score plus `by`."""
        return np.clip(expit(z) + self.by, 0.0, 1.0)


@dataclass(frozen=True)
class WavyCurve(Curve):
    r"""A curve that crosses the diagonal many times, so that wide bins average it away.

    .. math:: s + A\Bigl(\frac{2}{10\pi}\sin 10\pi s + \frac{1}{10\pi}\sin\frac{40\pi s}{3}\Bigr)

    >>> WavyCurve()([0.0, 0.05]).round(4)
    array([0.    , 0.1412])
    """

    amplitude: float = 1.0

    def at(self, z: Floats) -> Floats:
        """Score plus two waves, kept within [0, 1]."""
        s = expit(z)
        waves = 2 * np.sin(10 * np.pi * s) + np.sin(40 * np.pi / 3 * s)
        return np.clip(s + self.amplitude * waves / (10 * np.pi), 0.0, 1.0)


@dataclass(frozen=True)
class FromScores(Curve):
    """Any vectorised function of the score; its values are kept within [0, 1].

    >>> FromScores(np.square)([0.5])
    array([0.25])
    """

    function: Callable[[Any], Any]

    def at(self, z: Floats) -> Floats:
        """The function of the score."""
        return np.clip(np.asarray(self.function(expit(z)), dtype=np.float64), 0.0, 1.0)

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", repr(self.function))


@dataclass(frozen=True)
class Blend(Curve):
    """A share of another curve's departure from the diagonal; above 1 it is exaggerated (and kept within [0, 1]).

    >>> Blend(PowerCurve(2), 0.5)([0.5])
    array([0.375])
    """

    curve: Curve
    share: float

    def at(self, z: Floats) -> Floats:
        """The score and a share of the gap."""
        s = expit(z)
        return np.clip(s + self.share * (self.curve.at(z) - s), 0.0, 1.0)


@dataclass(frozen=True)
class WithEnds(Curve):
    """A curve with its own values at scores of exactly 0 and 1, for worlds with atoms there.

    >>> WithEnds(IdentityCurve(), at_one=0.98)([0.5, 1.0])
    array([0.5 , 0.98])
    """

    curve: Curve
    at_zero: float | None = None
    at_one: float | None = None

    def at(self, z: Floats) -> Floats:
        """The curve, but at infinite log-odds."""
        values = np.array(self.curve.at(z))
        if self.at_zero is not None:
            values[z == -np.inf] = self.at_zero
        if self.at_one is not None:
            values[z == np.inf] = self.at_one
        return values


def as_curve(curve: Curve | Callable[[Any], Any]) -> Curve:
    """A curve as it is; any other callable is treated as a function of the score."""
    return curve if isinstance(curve, Curve) else FromScores(curve)


def _positive(name: str, parameter: str, value: float) -> None:
    if not (value > 0 and np.isfinite(value)):
        fail(f"{name} needs a positive {parameter}, got {value!r}.", ValueError)
