"""Multiclass worlds: Dirichlet scores and the true probabilities behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from calibrant.data.predictions import Multiclass
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.random_draws import generator
from calibrant.numerics.special import log_softmax
from calibrant.simulate.calibration_curves import IdentityCurve, TemperatureCurve
from calibrant.simulate.worlds import Seed

#: Draws behind a true error, and bins behind that of the top label (each the mean of noise-free gaps).
#: Derived: a gap of at most 0.2 standard deviations has a standard error of 0.2 / 2^9.5 = 3e-4; bins are a thousandth.
#: Test: tests/simulate/test_multiclass_worlds.py::test_true_errors_are_the_same_on_every_day.
_DRAWS, _BINS = 1 << 19, 1 << 10


@dataclass(frozen=True)
class DirichletScores:
    """Vectors of class probabilities, drawn as logarithms so that small ones keep their digits.

    >>> np.exp(DirichletScores([0.5, 0.5, 0.5]).draw(np.random.default_rng(0), 2)).sum(axis=1)
    array([1., 1.])
    """

    alpha: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", tuple(float(a) for a in self.alpha))
        if len(self.alpha) < 2 or min(self.alpha) <= 0:
            fail(f"DirichletScores needs at least two positive numbers, got {list(self.alpha)}.", ValueError)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Log-probabilities, one row each."""
        alpha, size = np.array(self.alpha), (n, len(self.alpha))
        logs = np.log(rng.standard_gamma(alpha + 1, size)) - rng.standard_exponential(size) / alpha
        return log_softmax(logs)


@dataclass(frozen=True)
class MulticlassWorld:
    """Predicted class probabilities and the true ones behind them.

    Parameters
    ----------
    scores : DirichletScores
    curve : IdentityCurve, TemperatureCurve or callable
        ``TemperatureCurve(t)`` is softmax(log p / t); a callable maps predicted to true probabilities, both (n, K).
    name : str
        As for `World`.

    Examples
    --------
    >>> world = MulticlassWorld(DirichletScores([0.5] * 3), TemperatureCurve(1 / 0.3))
    >>> round(world.true_error(2), 3)
    0.276
    >>> world.sample(100)
    <Multiclass, n=100>
    """

    scores: DirichletScores
    curve: IdentityCurve | TemperatureCurve | Callable[[Any], Any] = field(default_factory=IdentityCurve)
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{self.scores!r}, {self.curve!r}")

    def true_probabilities(self, log_probabilities: Floats) -> Floats:
        """The true probability of each class."""
        if isinstance(self.curve, IdentityCurve):
            return np.exp(log_probabilities)
        if isinstance(self.curve, TemperatureCurve):
            return np.exp(log_softmax(log_probabilities / self.curve.t))
        values = np.asarray(self.curve(np.exp(log_probabilities)), dtype=np.float64)
        return values / values.sum(axis=1, keepdims=True)

    def true_error(
        self, norm: float | Literal["squared", "kl"] = 1, *, of: Literal["vector", "top_label"] = "vector"
    ) -> float:
        r"""The true calibration error of the whole vector, or that of the confidence in the predicted class.

        .. math:: \mathrm E\lVert P - c(P)\rVert_q, \qquad
                  \bigl(\mathrm E\lvert M - \mathrm E[Y = \hat k \mid M]\rvert^q\bigr)^{1/q}

        ``"squared"`` and ``"kl"`` as for `World`. By 2^19 draws: exact to about 3e-4.
        """
        return _true_error(self, norm, of)

    def sample(self, n: int, seed: Seed = 0) -> Multiclass:
        """`n` independent rows."""
        rng = generator(seed, "multiclass world")
        logs = self.scores.draw(rng, n)
        running = np.cumsum(self.true_probabilities(logs), axis=1)
        label = (rng.random((n, 1)) * running[:, -1:] >= running[:, :-1]).sum(axis=1)
        return Multiclass(label, np.exp(logs))


@lru_cache(maxsize=256)
def _true_error(world: MulticlassWorld, norm: Any, of: str) -> float:
    rng, step = generator(0, "true error of a multiclass world"), 1 << 17
    logs = [world.scores.draw(rng, step) for _ in range(_DRAWS // step)]
    if of == "top_label":
        return _top_label_error(world, logs, check_norm(norm))
    return float(np.mean([_vector_errors(world, part, norm).mean() for part in logs]))


def _vector_errors(world: MulticlassWorld, logs: Floats, norm: Any) -> Floats:
    truth = world.true_probabilities(logs)
    if norm == "kl":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(truth > 0, truth * (np.log(truth) - logs), 0.0).sum(axis=1))
    gap = np.abs(np.exp(logs) - truth)
    if norm == "squared":
        return np.asarray((gap**2).sum(axis=1))
    return np.asarray(np.linalg.norm(gap, ord=check_norm(norm), axis=1))


def _top_label_error(world: MulticlassWorld, parts: list[Floats], norm: float) -> float:
    """Gaps averaged over draws of like confidence: what is left is the error of the confidence alone."""
    confidence, gap = [], []
    for logs in parts:
        best = logs.argmax(axis=1)[:, None]
        top = np.exp(np.take_along_axis(logs, best, axis=1)[:, 0])
        confidence.append(top)
        gap.append(top - np.take_along_axis(world.true_probabilities(logs), best, axis=1)[:, 0])
    order = np.argsort(np.concatenate(confidence))
    means = np.abs(np.concatenate(gap)[order].reshape(_BINS, -1).mean(axis=1))
    return float(means.max() if np.isinf(norm) else np.mean(means**norm) ** (1 / norm))
