"""The best temperature: Newton's method on one number, with value, slope and curvature from one pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.kernels import CHUNK, Floats
from calibrant.recalibrate.base import Codes
from calibrant.recalibrate.scores import Cells, expit

#: The inverse temperature is sought between these.
LOWEST, HIGHEST = 1e-7, 1e7


def inverse_temperature(logits: Floats, codes: Codes, weight: Floats | None) -> float:
    """The b that minimises the log loss of softmax(b * logits)."""
    chosen = logits[np.arange(len(logits)), codes]
    centred = logits - logits.max(axis=1, keepdims=True)
    target = _dot(weight, chosen - logits.max(axis=1))

    def slope(b: float) -> tuple[float, float]:
        return _softmax_slope(centred, weight, b, target)

    return _root(slope)


def inverse_temperature_of_cells(cells: Cells) -> float:
    """The b that minimises the log loss of sigmoid(b * log odds)."""
    x, weight, target = cells.log_odds, cells.weight, float(cells.positive @ cells.log_odds)

    def slope(b: float) -> tuple[float, float]:
        p = expit(b * x)
        wx = weight * x
        return float(wx @ p) - target, float((wx * x) @ (p * (1 - p)))

    return _root(slope)


def _softmax_slope(centred: Floats, weight: Floats | None, b: float, target: float) -> tuple[float, float]:
    """First and second derivative of the total log loss by b: sums of the means and variances of the logits."""
    first = second = 0.0
    rows = max(CHUNK // centred.shape[1], 16)
    for start in range(0, len(centred), rows):
        part = centred[start : start + rows]
        p = np.exp(b * part)
        norm = p.sum(axis=1)
        p *= part
        mean = p.sum(axis=1) / norm
        square = np.einsum("ij,ij->i", p, part) / norm
        w = None if weight is None else weight[start : start + rows]
        first += _dot(w, mean)
        second += _dot(w, square - mean * mean)
    return first - target, second


def _root(slope: Callable[[float], tuple[float, float]]) -> float:
    """Where the rising function `slope` crosses zero: Newton's method on log b, kept inside a shrinking bracket."""
    low, high, u = np.log(LOWEST), np.log(HIGHEST), 0.0
    for _ in range(100):
        b = float(np.exp(u))
        value, curvature = slope(b)
        if value > 0:
            high = u
        else:
            low = u
        change = _newton_step(value, curvature, b)
        if abs(change) < 1e-13 or high - low < 1e-13:
            break
        u = u + change if low < u + change < high else (low + high) / 2
    return float(np.exp(u))


def _newton_step(value: float, curvature: float, b: float) -> float:
    """Change of log b. The slope is nearly linear in b above the root and nearly an exponential far below it."""
    return -value / (b * curvature) if b * curvature > 0 else np.inf


def _dot(weight: Floats | None, values: Floats) -> float:
    return float(values.sum() if weight is None else weight @ values)
