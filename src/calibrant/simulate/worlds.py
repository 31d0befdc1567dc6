"""Worlds of known error: samples of any size, and the true calibration error that estimators should report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary
from calibrant.estimators.binned import check_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.special import expit, log_complement, log_probability
from calibrant.simulate.calibration_curves import Curve, Glm, IdentityCurve, as_curve
from calibrant.simulate.score_distributions import BetaScores, FixedScores, Scores

Seed = int | np.random.SeedSequence


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
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating Bias in Calibration Error Estimation, section 5.

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
