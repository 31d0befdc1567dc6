"""Calibration curves, and worlds of known error: samples of any size, and the true error that is to be estimated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.predictions import Binary
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm
from calibrant.numerics.arrays import Floats, expit, log_complement, log_odds, log_probability, times
from calibrant.numerics.random_draws import generator
from calibrant.simulate.score_distributions import BetaScores, FixedScores, Scores

Seed = int | np.random.SeedSequence
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


@dataclass(frozen=True)
class World:
    """A distribution of scores and the true probability of the event at each: its calibration error is known.

    Parameters
    ----------
    scores : Scores
        `BetaScores`, `UniformScores`, `LogitMixtureScores`, `EmpiricalScores`, or one of them `WithAtoms`.
    curve : Curve or callable
        `IdentityCurve`, `PowerCurve`, `Glm`, `TemperatureCurve`, `ShiftCurve`, `WavyCurve`, ..., or any vectorised
        function of the score.
    name : str
        What tables call it, and part of the random seed of a simulation; made from the other two where empty.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating Bias in Calibration Error Estimation, section 4.

    Examples
    --------
    >>> world = World(BetaScores(2.7752, 0.0478), Glm("logflip_logflip", b0=-0.24, b1=0.30))
    >>> round(world.true_error(norm=2), 5)
    0.10709
    >>> world.sample(1000, seed=0)
    <Binary, n=1_000>
    """

    scores: Scores
    curve: Curve | Callable[[Any], Any] = field(default_factory=IdentityCurve)
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", as_curve(self.curve))
        if not self.name:
            object.__setattr__(self, "name", f"{self.scores!r}, {self.curve!r}")

    def true_error(self, norm: float | Literal["squared", "kl"] = 1) -> float:
        r"""The true calibration error, TCE.

        .. math:: \bigl(\mathrm E\lvert S - c(S)\rvert^q\bigr)^{1/q}

        where S is the score, c the curve and q the `norm`; infinity gives the largest gap, ``"squared"`` the mean
        squared gap, ``"kl"`` the mean Kullback-Leibler divergence of c(S) from S. Exact to 1e-6.
        """
        if norm == "kl":
            return self.scores.expect(self._divergence)
        if norm == "squared":
            return self.true_error(2) ** 2
        q = check_norm(norm)
        if np.isinf(q):
            return float(np.abs(self.gap(self.scores.support())).max())
        return max(0.0, self.scores.expect(lambda z: np.abs(self.gap(z)) ** q)) ** (1 / q)

    def gap(self, z: Floats) -> Floats:
        """Score less true probability, at log-odds z."""
        return expit(z) - self._curve.at(z)

    def expect(self, function: Callable[[Floats, Floats], Floats]) -> float:
        """Expectation of a vectorised function of the score and of the true probability."""
        return self.scores.expect(lambda z: function(expit(z), self._curve.at(z)))

    def sample(self, n: int, seed: Seed = 0) -> Binary:
        """`n` independent rows: the same seed gives the same rows."""
        score, outcome = self.draw(generator(seed, "world"), n)
        return Binary(outcome, score)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> tuple[Floats, NDArray[np.int8]]:
        """Scores and outcomes of any shape."""
        z = self.scores.draw(rng, size)
        if isinstance(self.scores, FixedScores):
            z = self.scores.support()  # of every sample: the curve is evaluated once
        score, outcome = expit(z), (rng.random(size) < self._curve.at(z)).view(np.int8)
        return (score if score.shape == outcome.shape else np.tile(score, (*outcome.shape[:-1], 1))), outcome

    def calibrated(self) -> World:
        """The same scores from a calibrated model."""
        return replace(self, curve=IdentityCurve(), name=f"{self.name}, calibrated")

    @property
    def _curve(self) -> Curve:
        return as_curve(self.curve)

    def _divergence(self, z: Floats) -> Floats:
        truth = self._curve.at(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            hit = np.where(truth > 0, truth * (np.log(truth) - log_probability(z)), 0.0)
            miss = np.where(truth < 1, (1 - truth) * (np.log1p(-truth) - log_complement(z)), 0.0)
        divergence: Floats = hit + miss
        return divergence


#: Scores and curve of each. Reference: Roelofs, Cain, Shlens, Mozer (2022), Tables 2 and 3.
_PUBLISHED: list[tuple[str, float, float, Any, float, float]] = [
    ("resnet110_c10", 2.7752, 0.0478, "logflip_logflip", -0.24, 0.30),
    ("resnet110_SD_c10", 2.1714, 0.0394, "logit_logflip", -0.27, -0.35),
    ("resnet_wide32_c10", 2.3806, 0.0379, "logit_logit", 0.0, 0.26),
    ("densenet40_c10", 1.9824, 0.0397, "logit_logflip", 0.0, -0.26),
    ("resnet110_c100", 1.1823, 0.1081, "logflip_logflip", -0.11, 0.28),
    ("resnet110_SD_c100", 1.1233, 0.1147, "logit_logit", -0.88, 0.49),
    ("resnet_wide32_c100", 1.0611, 0.0650, "logflip_logflip", -0.13, 0.21),
    ("densenet40_c100", 1.0805, 0.0808, "logit_logit", -0.97, 0.34),
    ("resnet152_imgnet", 1.1359, 0.2069, "logflip_logflip", -0.12, 0.58),
    ("densenet161_imgnet", 1.1928, 0.2206, "log_log", -0.03, 1.27),
]
#: The ten published fits of networks on CIFAR-10, CIFAR-100 and ImageNet (Roelofs et al. 2022, Tables 2 and 3).
PAPER_WORLDS = {name: World(BetaScores(a, b), Glm(family, b0, b1), name) for name, a, b, family, b0, b1 in _PUBLISHED}
