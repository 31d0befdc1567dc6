"""Where to divide the scores of a diagram: edges with few digits, evenly spaced on log odds or on probabilities."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.special import expit, log_odds
from calibrant.table.bintable import BinTable

#: Scores farther out than this share of the rows do not stretch the log-odds axis.
_TAIL = 0.001
#: Bins that a diagram shows, about.
BINS = 12
#: Steps that people count in.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def log_odds_edges(cells: BinTable, bins: int = BINS) -> Floats | None:
    """Edges evenly spaced on log odds, rounded to two digits; None where fewer than two scores have finite log odds."""
    limits = inner_log_odds(cells)
    if limits is None:
        return None
    inner = expit(np.linspace(*limits, bins + 1)[1:-1])
    low, high = float(cells.low[0]), float(cells.high[-1])
    rounded = np.unique(two_digits(inner))
    return np.concatenate([[_outward(low, down=True)], rounded[(rounded > low) & (rounded < high)], [_outward(high)]])


def linear_edges(cells: BinTable, bins: int = BINS) -> Floats:
    """Edges at multiples of 1, 2, 2.5 or 5 times a power of ten, from below the lowest score to above the highest."""
    low, high = float(cells.low[0]), float(cells.high[-1])
    if not low < high:
        return np.array([low, high])
    wanted = (high - low) / bins
    unit = 10.0 ** np.floor(np.log10(wanted))
    step = next(unit * factor for factor in _STEPS if unit * factor >= wanted * (1 - 1e-9))
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return np.clip(np.round(np.arange(first, last + 1) * step, 12), 0.0, 1.0)


def inner_log_odds(cells: BinTable) -> tuple[float, float] | None:
    """Log odds between which nearly all uncertain scores lie; None where there are not two of them."""
    p = cells.predicted_mean
    inside = (p > 0) & (p < 1)
    z, running = log_odds(p[inside]), np.cumsum(cells.weight[inside])
    if len(z) < 2 or z[0] == z[-1]:
        return None
    total = float(running[-1])
    low, high = (z[min(int(np.searchsorted(running, total * share)), len(z) - 1)] for share in (_TAIL, 1 - _TAIL))
    return (float(low), float(high)) if low < high else (float(z[0]), float(z[-1]))


def two_digits(p: Floats) -> Floats:
    """Probabilities rounded to two significant digits, near 1 those of the complement.

    >>> two_digits(np.array([0.01234, 0.5, 0.98766]))
    array([0.012, 0.5  , 0.988])
    """
    near = np.minimum(p, 1 - p)
    decimals = 1 - np.floor(np.log10(np.maximum(near, 1e-300)))
    scale = 10.0**decimals
    rounded = np.round(near * scale) / scale
    return np.where(p <= 0.5, rounded, np.round(1 - rounded, 15))


def _outward(score: float, *, down: bool = False) -> float:
    """The score itself if it has two digits, else the next such number below or above it."""
    if score in (0.0, 1.0):
        return score
    rounded = float(two_digits(np.array([score]))[0])
    if rounded == score or (rounded < score) == down:
        return rounded
    near = min(score, 1 - score)
    unit = 10.0 ** (np.floor(np.log10(near)) - 1)
    return float(np.clip(round(rounded + (-unit if down else unit), 15), 0.0, 1.0))
