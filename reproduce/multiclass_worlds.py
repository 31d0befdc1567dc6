"""Multiclass worlds with known errors: laws of scores, and ways in which a model may be wrong.

*gauss* has Gaussian logits, *peaked* is confident with unequal shares of the classes, *rounded* is the same with whole
logits, so that vectors repeat, and *rare* has one frequent class and others of about 5 % and less. The looks, weights
and constants of the methods were chosen on gauss worlds with the errors of `TUNED`; the other worlds and errors were
not used, except for *bend*, on which the upper end of classwise intervals was found too low and corrected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.numerics.arrays import log_softmax, softmax

Array = Any

#: Rows behind the true errors of a world, and bins of a class's probability that gaps are averaged in.
ROWS, BINS = 1 << 17, 128

TUNED = ("calibrated", "temperature", "swap", "prior", "one class", "confident", "noise", "interaction")


def gauss(rng: np.random.Generator, n: int, k: int) -> Array:
    return 2 * rng.normal(size=(n, k))


def peaked(rng: np.random.Generator, n: int, k: int) -> Array:
    return _confident(rng, n, (1 + np.arange(k)) ** -0.7)


def rounded(rng: np.random.Generator, n: int, k: int) -> Array:
    return np.round(peaked(rng, n, k))


def rare(rng: np.random.Generator, n: int, k: int) -> Array:
    return _confident(rng, n, 20.0 ** -np.minimum(np.arange(k), 2))


def _confident(rng: np.random.Generator, n: int, share: Array) -> Array:
    k = len(share)
    z = rng.normal(size=(n, k)) + 0.5 * np.log(share)
    z[np.arange(n), rng.choice(k, n, p=share / share.sum())] += rng.exponential(4.0, n) + 0.5 * np.log(k)
    return z


SCORES: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "gauss": gauss,
    "peaked": peaked,
    "rounded": rounded,
    "rare": rare,
}


def _ordered(z: Array, place: int) -> Array:
    chosen = np.argsort(-z, axis=1)[:, place]
    return np.arange(z.shape[1]) == chosen[:, None]


def _fixed(k: int, *shape: int) -> Array:
    return np.random.default_rng([5, k]).normal(size=shape or (k,))


def _doubt(z: Array) -> Array:
    """Place of each row's confidence, 0 for the least and 1 for the most confident, by fixed scale."""
    top = softmax(z).max(axis=1)
    return np.clip(top, 0, 1)[:, None]


def _swap(z: Array, a: float) -> Array:
    """Part of what is said to be class 0 rather than class 1 is class 1."""
    t = softmax(z)
    moved = a * t[:, 0] * t[:, 1] / (t[:, 0] + t[:, 1])
    t[:, 0] -= moved
    t[:, 1] += moved
    return t


def _interaction(z: Array, a: float) -> Array:
    t = softmax(z)
    other = z[:, 2] - z[:, 3] if z.shape[1] > 3 else z[:, 2] - 0.5 * (z[:, 0] + z[:, 1])
    moved = a * np.sign(z[:, 0] - z[:, 1]) * np.sign(other) * t[:, 0] * t[:, 1] / (t[:, 0] + t[:, 1])
    t[:, 0] += moved
    t[:, 1] -= moved
    return t


#: True probabilities from logits and the size a of the error; 0 is calibrated.
ERRORS: dict[str, Callable[[Array, float], Array]] = {
    "calibrated": lambda z, a: softmax(z),
    "temperature": lambda z, a: softmax(z * (1 - a)),
    "swap": _swap,
    "prior": lambda z, a: softmax(z + a * _fixed(z.shape[1])),
    "one class": lambda z, a: softmax(z + a * (np.arange(z.shape[1]) == 1)),
    "confident": lambda z, a: softmax(z * (1 - a * (_doubt(z) > 0.95))),
    "noise": lambda z, a: (1 - a) * softmax(z) + a / z.shape[1],
    "interaction": _interaction,
    "bend": lambda z, a: softmax(z + a * _ordered(z, 0) * np.cos(2 * np.pi * _doubt(z))),
    "second": lambda z, a: softmax(z + a * (1.0 * _ordered(z, 1) - _ordered(z, 2))),
    "halves": lambda z, a: softmax(z + a * (np.arange(z.shape[1]) == 0) * np.sign(z[:, 1:2])),
    "off-diagonal": lambda z, a: softmax(z + a / z.shape[1] ** 0.5 * z @ _fixed(z.shape[1], z.shape[1], z.shape[1])),
}


@dataclass(frozen=True)
class ClassWorld:
    """Scores of K classes and an error of size a."""

    scores: str
    classes: int
    error: str = "calibrated"
    size: float = 0.0

    @property
    def name(self) -> str:
        """Scores, classes and error in words."""
        return f"{self.scores} K={self.classes} {self.error}" + (f" {self.size:.3g}" if self.size else "")

    @property
    def tuned(self) -> bool:
        """Whether methods were tuned on it."""
        return self.error == "bend" or (self.scores == "gauss" and self.error in TUNED)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Predicted and true probabilities."""
        z = log_softmax(SCORES[self.scores](rng, n, self.classes))
        return np.exp(z), ERRORS[self.error](z, self.size)

    def sample(self, n: int, seed: Any = 0) -> cal.Multiclass:
        """`n` independent rows."""
        rng = np.random.default_rng(seed)
        p, truth = self.draw(rng, n)
        running = np.cumsum(truth, axis=1)
        return cal.Multiclass((rng.random((n, 1)) * running[:, -1:] >= running[:, :-1]).sum(axis=1), p)

    def vector_error(self, norm: float | str = 1) -> float:
        """E |p - E[Y|p]| of whole vectors in a norm, its square, or KL."""
        p, t = _many(self)
        if norm == "kl":
            return float((t * (np.log(np.maximum(t, 1e-300)) - np.log(np.maximum(p, 1e-300)))).sum(axis=1).mean())
        gap = np.linalg.norm(p - t, ord=2 if norm == "squared" else norm, axis=1)
        return float((gap**2).mean() if norm == "squared" else gap.mean())

    def classwise_error(self, norm: float = 1) -> float:
        """Mean over classes of (E|p_k - E[Y_k|p_k]|^q)^(1/q); signs of one half of the rows, gaps of the other."""
        return float(
            np.mean([_error_of_class(p, p - t, norm) for p, t in zip(*(a.T for a in _many(self)), strict=True)])
        )


@lru_cache(maxsize=4)
def _many(world: ClassWorld) -> tuple[Array, Array]:
    rows = max(1 << 14, ROWS // max(1, world.classes // 10))
    return world.draw(np.random.default_rng(9), rows)


def _error_of_class(p: Array, gap: Array, norm: float) -> float:
    parts = gap[np.argsort(p)].reshape(BINS, -1)
    one, two = parts[:, ::2].mean(axis=1), parts[:, 1::2].mean(axis=1)
    if norm == 1:
        return max(float((np.sign(one) * two + np.sign(two) * one).mean() / 2), 0.0)
    return max(float((one * two).mean()), 0.0) ** 0.5


def scaled(scores: str, classes: int, error: str, n: int, signal: float) -> ClassWorld:
    """The world whose error makes the sum over n rows of (t - p)^2 / p equal to `signal`, the same for all errors."""
    if error == "calibrated":
        return ClassWorld(scores, classes)
    z = log_softmax(SCORES[scores](np.random.default_rng(3), 20_000, classes))
    p = np.exp(z)
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        t = ERRORS[error](z, middle)
        if n * float(((t - p) ** 2 / np.maximum(p, 1e-12)).sum(axis=1).mean()) < signal:
            low = middle
        else:
            high = middle
    return ClassWorld(scores, classes, error, float(f"{high:.4g}"))
