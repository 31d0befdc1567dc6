"""Sigmoid, softmax and logarithms that stay finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

#: Logarithms of probabilities are floored here (that of the smallest normal float32), so that 0 has a logit.
LOG_FLOOR = float(np.log(np.finfo(np.float32).tiny))


def log_odds(p: NDArray[Any]) -> Floats:
    """Logarithm of p / (1 - p); those of 0 and 1 are -87.3 and 87.3."""
    p = p.astype(np.float64, copy=False)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LOG_FLOOR) - np.maximum(np.log1p(-p), LOG_FLOOR)


def floored_log(p: Floats) -> Floats:
    """Logarithm of p, of 0 too: -87.3."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LOG_FLOOR)


def expit(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softmax(logits: Floats) -> Floats:
    """Class probabilities of unnormalised log probabilities; a new array."""
    p = logits - logits.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p
