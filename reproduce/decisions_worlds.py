"""Worlds of known truth for the numbers of validations and decisions: populations, samples, and their true values."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.numerics.arrays import Floats, expit, softmax
from calibrant.numerics.logistic.binary import LogisticLine
from calibrant.numerics.logistic.multinomial import MultinomialLines

SIZES, RATES = (100, 1000), (0.02, 0.3)
#: The true log odds of the event at predicted log odds z, up to the constant that gives the wanted rate of events.
CURVES: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda z: z,
    "too extreme": lambda z: 0.5 * z,
    "jump": lambda z: z + np.where(z > z.mean(), 0.8, -0.4),
    "too low": lambda z: z,
}
#: By how much predicted log odds are shifted after the true probabilities were set.
SHIFTS = {"too low": -0.7}
#: Rows per cluster (with a common random effect), and whether rows have random weights.
DESIGNS = {"rows": (1, False), "weighted": (1, True), "clusters of 5": (5, False), "clusters of 20": (20, False)}
NODES, CLASS_NODES = 100_000, 20_000

#: Three classes, of which the first is rare and the second is not.
SHARES = (0.02, 0.3, 0.68)
#: The true logits of three classes at predicted logits z, up to constants that give the wanted shares.
CLASS_CURVES: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda z: z,
    "too extreme": lambda z: 0.5 * z,
    "jump": lambda z: z + np.where(z[:, :1] > z[:, 2:] - 2, [[0.8, -0.4, 0.0]], [[-0.4, 0.4, 0.0]]),
}


@lru_cache
def population(curve: str, rate: float) -> tuple[Floats, Floats]:
    """Predicted log odds at equally likely quantiles, and the true probabilities there, which average to `rate`."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = 1.2 * ndtri((np.arange(NODES) + 0.5) / NODES)
    z += brentq(lambda shift: float(expit(z + shift).mean()) - rate, -20, 20)
    true = CURVES[curve](z)
    q = expit(true + brentq(lambda shift: float(expit(true + shift).mean()) - rate, -20, 20))
    return z + SHIFTS.get(curve, 0.0), q


def sample(rng: np.random.Generator, n: int, curve: str, rate: float, design: str) -> cal.Binary:
    """Rows of a world. Clusters share most of their score and of the noise of their outcomes."""
    from scipy.special import ndtr

    size, weighted = DESIGNS[design]
    z, q = population(curve, rate)
    count = n // size
    if size == 1:
        at, u = rng.random(n), rng.random(n)
    else:  # Gaussian copulas, so that each row by itself is one of the population
        at, u = (
            ndtr(np.sqrt(0.5) * np.repeat(rng.normal(size=count), size) + np.sqrt(0.5) * rng.normal(size=n))
            for _ in range(2)
        )
    rows = np.minimum((at * NODES).astype(np.intp), NODES - 1)
    weight = rng.gamma(1.0, size=n) + 0.1 if weighted else None
    group = np.repeat(np.arange(count), size) if size > 1 else None
    return cal.Binary(u < q[rows], expit(z[rows]), weight=weight, group=group)


def observed_expected(curve: str, rate: float) -> float:
    """The O:E ratio of the population."""
    z, q = population(curve, rate)
    return float(q.mean() / expit(z).mean())


@lru_cache
def line(curve: str, rate: float) -> tuple[float, float]:
    """Calibration intercept (with a slope of 1) and calibration slope of the population."""
    z, q = population(curve, rate)
    whole = LogisticLine(z, np.ones(NODES), q)
    return whole.intercept(1.0), whole.fit()[1]


@lru_cache
def net_benefit(curve: str, rate: float, at: tuple[float, ...]) -> Floats:
    """Net benefits of the population at thresholds."""
    z, q = population(curve, rate)
    p = expit(z)
    return np.array([np.mean((p >= t) * (q - t / (1 - t) * (1 - q))) for t in at])


@lru_cache
def costs(curve: str, rate: float, at: tuple[float, ...]) -> Floats:
    """What treating by predictions instead of by true probabilities costs at thresholds."""
    z, q = population(curve, rate)
    p = expit(z)
    return np.array([np.mean(np.abs(q - t) / (1 - t) * ((p >= t) != (q >= t))) for t in at])


@lru_cache
def decision_loss(curve: str, rate: float) -> float:
    """The calibration decision loss of the population."""
    at = np.arange(1, 200) / 200
    return float((costs(curve, rate, tuple(at)) * np.minimum(1.0, (1 - at) / at)).max())


@lru_cache
def running_risk(curve: str, rate: float) -> tuple[Floats, Floats]:
    """Confidences of the population, falling, and the error rates of predictions of at least so much."""
    z, q = population(curve, rate)
    p = expit(z)
    confidence, wrong = np.maximum(p, 1 - p), np.where(p >= 0.5, 1 - q, q)
    order = np.argsort(-confidence, kind="stable")
    return confidence[order], np.cumsum(wrong[order]) / np.arange(1, NODES + 1)


@lru_cache
def area(curve: str, rate: float) -> float:
    """Area under the risk-coverage curve of the population."""
    return float(running_risk(curve, rate)[1].mean())


def excess_area(curve: str, rate: float) -> float:
    """What it exceeds that of the ideal order by."""
    wrong = float(running_risk(curve, rate)[1][-1])
    return area(curve, rate) - (wrong + (1 - wrong) * float(np.log1p(-wrong)))


def risk_at(curve: str, rate: float, confidence: Floats) -> Floats:
    """The error rate of predictions of at least these confidences."""
    falling, risk = running_risk(curve, rate)
    return risk[np.maximum(np.searchsorted(-falling, -confidence, side="right") - 1, 0)]


@lru_cache
def class_population(curve: str) -> tuple[Floats, Floats]:
    """Predicted logits of three classes, and the true probabilities, of which each class has its share on average."""
    z = np.random.default_rng(3).normal(size=(CLASS_NODES, 3))
    z = z + _shift(z)
    true = CLASS_CURVES[curve](z)
    return z, softmax(true + _shift(true))


def _shift(z: Floats) -> Floats:
    """What gives logits the wanted shares, by repeated scaling."""
    shift = np.zeros(3)
    for _ in range(200):
        step = np.log(SHARES) - np.log(softmax(z + shift).mean(axis=0))
        shift += step
        if np.abs(step).max() < 1e-10:
            break
    return shift


def class_sample(rng: np.random.Generator, n: int, curve: str) -> cal.Multiclass:
    """Rows of three classes."""
    z, q = class_population(curve)
    rows = rng.integers(0, CLASS_NODES, n)
    y = (rng.random((n, 1)) > q[rows].cumsum(axis=1)[:, :2]).sum(axis=1)
    return cal.Multiclass(y, softmax(z[rows]), classes=(0, 1, 2))


@lru_cache
def class_truth(curve: str) -> dict[str, Any]:
    """Intercepts (with slopes of 1) and slopes of the population, against the third class."""
    z, q = class_population(curve)
    ratio = np.tile(z[:, :2] - z[:, 2:], (3, 1))
    lines = MultinomialLines(ratio, np.repeat([1, 2, 0], CLASS_NODES), q.T.reshape(-1))
    start, all_free = np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4, dtype=bool)
    return {"intercept": lines.fit(start, np.arange(4) < 2)[0][:2], "slope": lines.fit(start, all_free)[0][2:]}
