"""The synthetic worlds of the paper, and its published numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

#: n = round(geomspace(200, 10000, 15)); the sizes at which numbers of the paper are known.
SIZES = [round(float(n)) for n in np.geomspace(200, 10_000, 15)]
#: The most rows of a case of Table 1.
TABLE_1_ROWS = 1000


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def both(f: np.ndarray) -> np.ndarray:
    over = sigmoid(0.4 * logit(f))
    return np.where(over <= 0.5, over, sigmoid(4 * logit(f)))


#: Map and true error in L1 (of the single number), squared, and KL.
BINARY: dict[str, tuple[Callable[[np.ndarray], np.ndarray], tuple[float, float, float]]] = {
    "calibrated": (lambda f: f, (0, 0, 0)),
    "over, .4x + .3": (lambda f: sigmoid(0.4 * logit(f) + 0.3), (0.137157, 0.024507, 0.12444)),
    "shifted by .02": (lambda f: np.clip(f + 0.02, 0, 1), (0.018797, 0.000371, 0.0054)),
    "under, 4x + 1": (lambda f: sigmoid(4 * logit(f) + 1), (0.131246, 0.027886, 0.1145)),
    "over, .4x": (lambda f: sigmoid(0.4 * logit(f)), (0.128660, 0.019893, 0.1113)),
    "under, 4x": (lambda f: sigmoid(4 * logit(f)), (0.127572, 0.025402, 0.1090)),
    "both": (both, (0.128116, 0.022648, 0.1101)),
    "wavy": (
        lambda f: np.clip(f + 0.2 / np.pi * np.sin(10 * np.pi * f) + 0.1 / np.pi * np.sin(40 / 3 * np.pi * f), 0, 1),
        (0.040069, 0.002235, 0.0175),
    ),
}
MULTICLASS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda f: f,
    "over": lambda f: softmax(0.3 * np.log(f)),
    "under": lambda f: softmax(2 * np.log(f)),
    "harmonic": lambda f: softmax(np.log(f) + 0.5 * np.sin(5 * np.log(f))),
}
NORMS = {"L1": 1, "L2": 2, "Linf": math.inf, "squared": "squared", "KL": "kl"}

#: Figure 1 (L1): isotonic cross-fitted, its SEM, isotonic in sample, 15-bin ECE; mean of ten runs.
FIGURE_1 = {
    ("calibrated", 200): (-0.0070, 0.0082, 0.0903, 0.0600),
    ("calibrated", 612): (-0.0006, 0.0075, 0.0660, 0.0402),
    ("calibrated", 5719): (-0.0002, 0.0023, 0.0320, 0.0133),
    ("calibrated", 10000): (-0.0003, 0.0012, 0.0272, 0.0094),
    ("over, .4x + .3", 200): (0.1106, 0.0096, 0.1541, 0.1515),
    ("over, .4x + .3", 612): (0.1228, 0.0063, 0.1437, 0.1384),
    ("over, .4x + .3", 5719): (0.1376, 0.0021, 0.1400, 0.1394),
    ("over, .4x + .3", 10000): (0.1365, 0.0017, 0.1382, 0.1378),
    ("shifted by .02", 200): (0.0012, 0.0060, 0.0924, 0.0635),
    ("shifted by .02", 612): (0.0084, 0.0079, 0.0728, 0.0448),
    ("shifted by .02", 5719): (0.0085, 0.0015, 0.0345, 0.0205),
    ("shifted by .02", 10000): (0.0133, 0.0014, 0.0312, 0.0205),
}
#: Figure 3 (L2): isotonic cross-fitted, its SEM, isotonic in sample, 15 k-means bins.
FIGURE_3 = {
    (3, "calibrated", 200): (0.0156, 0.0144, 0.2006, 0.1429),
    (3, "calibrated", 1069): (0.0070, 0.0066, 0.1272, 0.0617),
    (3, "under", 200): (0.1376, 0.0121, 0.2285, 0.1902),
    (3, "under", 1069): (0.1495, 0.0073, 0.1830, 0.1563),
    (3, "over", 200): (0.2385, 0.0209, 0.3159, 0.3194),
    (3, "over", 1069): (0.2784, 0.0031, 0.2952, 0.2858),
    (10, "calibrated", 200): (0.0027, 0.0141, 0.3186, 0.2204),
    (10, "calibrated", 1069): (0.0042, 0.0069, 0.1923, 0.0978),
    (10, "under", 200): (0.2016, 0.0124, 0.3834, 0.2890),
    (10, "under", 1069): (0.2137, 0.0040, 0.2889, 0.2212),
    (10, "over", 200): (0.1925, 0.0110, 0.3399, 0.3205),
    (10, "over", 1069): (0.2378, 0.0034, 0.2759, 0.2376),
}
#: Table 2 (n = 5000): overconfidence, underconfidence and total in L1, each with its SEM.
TABLE_2 = {
    "over, .4x": ((0.1281, 0.0023), (-0.0007, 0.0005), (0.1274, 0.0027)),
    "under, 4x": ((-0.0003, 0.0003), (0.1256, 0.0008), (0.1254, 0.0009)),
    "both": ((0.0620, 0.0016), (0.0629, 0.0009), (0.1249, 0.0020)),
}


def draw_binary(rng: np.random.Generator, name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    f = rng.beta(0.5, 0.5, n).clip(1e-300, 1 - 1e-16)
    return f, (rng.random(n) < BINARY[name][0](f)).astype(int)


def draw_multiclass(rng: np.random.Generator, name: str, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    f = rng.dirichlet(0.5 * np.ones(k), n).clip(1e-300)
    f /= f.sum(axis=1, keepdims=True)
    h = MULTICLASS[name](f)
    return f, (rng.random(n)[:, None] > np.cumsum(h, axis=1)).sum(axis=1).clip(0, k - 1)


def multiclass_truth(name: str, k: int, norm: float) -> float:
    rng = np.random.default_rng(0)
    f = rng.dirichlet(0.5 * np.ones(k), 400_000).clip(1e-300)
    f /= f.sum(axis=1, keepdims=True)
    return float(np.linalg.norm(f - MULTICLASS[name](f), ord=norm, axis=1).mean())


def two_digits(rng: np.random.Generator, n: int) -> Drawn:
    f = np.round(rng.beta(0.8, 0.8, n), 2).clip(0.01, 0.99)
    return f, sigmoid(0.7 * logit(f)), None


def rare(rng: np.random.Generator, n: int) -> Drawn:
    f = sigmoid(rng.normal(-4, 1, n))
    return f, f, None


def halved(rng: np.random.Generator, n: int) -> Drawn:
    f = sigmoid(rng.normal(-3, 1, n))
    return f, f / 2, rng.lognormal(0, 0.7, n)


def ten_votes(rng: np.random.Generator, n: int) -> Drawn:
    f = rng.multinomial(10, rng.dirichlet(0.5 * np.ones(5), n)) / 10
    return f, f, None


def rare_classes(rng: np.random.Generator, n: int) -> Drawn:
    f = rng.dirichlet([2, 2, 1, 0.3, 0.1, 0.05], n).clip(1e-9)
    f /= f.sum(axis=1, keepdims=True)
    return f, softmax(0.6 * np.log(f)), None


def half_wrong(rng: np.random.Generator, n: int) -> Drawn:
    f = rng.dirichlet(0.8 * np.ones(4), n).clip(1e-9)
    f /= f.sum(axis=1, keepdims=True)
    wrong = f[:, :1] > f[:, 1:2]
    return f, np.where(wrong, softmax(1.6 * np.log(f)), f), rng.lognormal(0, 0.7, n)


#: Predicted and true probabilities, and weights.
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray | None]
#: Worlds that the paper does not have, with ties, rare events and classes, and weights: number of classes, and draws.
OTHERS: dict[str, tuple[int, Callable[[np.random.Generator, int], Drawn]]] = {
    "two digits, .7x": (2, two_digits),
    "3 % events, calibrated": (2, rare),
    "7 % predicted, half occur, weights": (2, halved),
    "shares of ten votes, calibrated": (5, ten_votes),
    "rare classes, .6x": (6, rare_classes),
    "wrong in half of the simplex, weights": (4, half_wrong),
}


def draw_other(rng: np.random.Generator, name: str, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Predicted probabilities, outcomes and weights."""
    f, h, weight = OTHERS[name][1](rng, n)
    if f.ndim == 1:
        return f, (rng.random(n) < h).astype(int), weight
    return f, (rng.random(n)[:, None] > np.cumsum(h, axis=1)).sum(axis=1).clip(0, f.shape[1] - 1), weight


@cache
def other_truth(name: str, norm: str) -> float:
    """The true error, from a million draws."""
    f, h, weight = OTHERS[name][1](np.random.default_rng(0), 10**6)
    if norm == "KL":
        return float(np.average(h * np.log(h / f) + (1 - h) * np.log((1 - h) / (1 - f)), weights=weight))
    gap = (f - h).reshape(len(f), -1)
    own = (gap**2).sum(axis=1) if norm == "squared" else np.linalg.norm(gap, ord=int(norm[1:]), axis=1)
    return float(np.average(own, weights=weight))
