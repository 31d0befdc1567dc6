"""The distribution function of the probability integral transform (PIT), exactly and without bins.

One sort serves every level at once. A row whose transform is known only to lie in an interval (draws, quantiles,
counts) enters as a ramp over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from calibrant.data.forecasts import Forecast
from calibrant.estimators.regression_common import null_reference
from calibrant.numerics.arrays import Floats
from calibrant.numerics.weights import effective_n

#: Mean, standard deviation, 2.5 % and 97.5 % points of norms of the Brownian bridge, the law of sqrt(n) (F_n - F).
#: L1: mean sqrt(pi / 32), variance 7/60 - pi/32 (Shepp 1982); L2: root of the Cramér-von Mises law; Linf: Kolmogorov.
#: The rest by simulation (240,000 paths), good to three digits.
BRIDGE = {
    1.0: (0.31333, 0.13598, 0.1392, 0.6603),
    2.0: (0.37824, 0.15414, 0.1742, 0.7620),
    np.inf: (0.86873, 0.26033, 0.4806, 1.4802),
}


@dataclass(frozen=True, eq=False)
class PitCurve:
    """A distribution function on [0, 1]: linear from (at[i], after[i]) to (at[i + 1], before[i + 1]), with jumps."""

    at: Floats
    before: Floats
    after: Floats
    size: float
    nodes: Floats | None

    def __call__(self, levels: Floats) -> Floats:
        """The share of transforms up to each level."""
        place = np.searchsorted(self.at, levels, side="right") - 1
        last = np.minimum(place + 1, len(self.at) - 1)
        width = self.at[last] - self.at[place]
        part = np.divide(levels - self.at[place], width, out=np.zeros(len(levels)), where=width > 0)
        return self.after[place] + part * (self.before[last] - self.after[place])

    def shares(self, edges: Floats) -> Floats:
        """The share of transforms in each bin (low, high]; the first also holds its low edge."""
        running = self(edges)
        shares = np.diff(running)
        shares[0] += running[0]
        return shares

    def distance(self, norm: float) -> float:
        """The L_norm distance to the diagonal, exactly: gaps are linear between neighbouring places."""
        if np.isinf(norm):
            return float(max(np.abs(self.before - self.at).max(), np.abs(self.after - self.at).max()))
        width = np.diff(self.at)
        start, end = self.after[:-1] - self.at[:-1], self.before[1:] - self.at[1:]
        change = end - start
        flat = np.abs(change) < 1e-13
        areas = (_integral(end, norm) - _integral(start, norm)) / np.where(flat, 1.0, change)
        areas = np.where(flat, np.abs(start) ** norm, areas)
        return float((width @ areas) ** (1 / norm))

    def null(self, norm: float, levels: Floats | None = None) -> dict[str, Any]:
        """`distance` (or the norm of the gaps at `levels`) of a perfect forecaster."""
        mean, sd, low, high = BRIDGE[norm] if norm in BRIDGE else _simulated_bridge(norm)
        ratio = 1.0 if np.isinf(norm) else _roughness(norm, levels, self.nodes) / _roughness(norm, None, None)
        scale = ratio / np.sqrt(self.size)
        return null_reference(mean * scale, sd * scale, "Brownian bridge", low=low * scale, high=high * scale)


def pit_curve(data: Forecast) -> PitCurve:
    """The distribution function of F(y): the identity for a forecaster calibrated in the sense of Kuleshov."""
    low, high = data.pit()
    return _curve(low, high, data.flat_weight)


def central_curve(data: Forecast) -> PitCurve:
    """The share of outcomes in the central interval of each level: the distribution function of |2 F(y) - 1|."""
    low, high = data.pit()
    weight = data.flat_weight
    if low is high:
        folded = np.abs(2 * low - 1)
        return _curve(folded, folded, weight)
    size = effective_n(weight, len(low))
    weight = np.ones(len(low)) if weight is None else weight
    astride = (low < 0.5) & (high > 0.5)
    below = np.where(astride, (0.5 - low) / np.where(astride, high - low, 1.0), 0.0)
    left, right = np.abs(2 * low - 1), np.abs(2 * high - 1)
    first = np.where(astride, 0.0, np.minimum(left, right))
    second = np.where(astride, right, np.maximum(left, right))
    curve = _curve(
        np.concatenate([first, np.zeros(int(astride.sum()))]),
        np.concatenate([second, left[astride]]),
        np.concatenate([weight * (1 - below), (weight * below)[astride]]),
    )
    return PitCurve(curve.at, curve.before, curve.after, size, curve.nodes)


def _curve(low: Floats, high: Floats, weight: Floats | None) -> PitCurve:
    size = effective_n(weight, len(low))
    if low is high:
        if weight is None:
            at, after = np.sort(low), np.arange(1, len(low) + 1) / len(low)
        else:
            order = np.argsort(low)
            at, after = low[order], np.cumsum(weight[order]) / weight.sum()
        before = np.concatenate([[0.0], after[:-1]])
        return PitCurve(*_to_the_ends(at, before, after), size, None)
    return _ramps(low, high, np.ones(len(low)) if weight is None else weight, size)


def _ramps(low: Floats, high: Floats, weight: Floats, size: float) -> PitCurve:
    """Sum of ramps and jumps: slopes change where intervals begin and end."""
    weight = weight / weight.sum()
    at, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    begin, end = place[: len(low)], place[len(low) :]
    ramp = high > low
    steep = weight[ramp] / (high - low)[ramp]
    slope = np.cumsum(
        np.bincount(begin[ramp], steep, len(at)) - np.bincount(end[ramp], steep, len(at)),
    )
    rise = np.concatenate([[0.0], slope[:-1] * np.diff(at)])
    jump: Floats = np.bincount(end[~ramp], weight[~ramp], len(at)).astype(np.float64)
    after: Floats = np.cumsum(rise + jump)
    nodes = np.unique(np.concatenate([[0.0], at, [1.0]])) if ramp.all() else None
    return PitCurve(*_to_the_ends(at, after - jump, after), size, nodes)


def _to_the_ends(at: Floats, before: Floats, after: Floats) -> tuple[Floats, Floats, Floats]:
    return (
        np.concatenate([[0.0], at, [1.0]]),
        np.concatenate([[0.0], before, [1.0]]),
        np.concatenate([[0.0], after, [1.0]]),
    )


def _integral(gap: Floats, norm: float) -> Floats:
    """Antiderivative of |gap|^norm."""
    return np.sign(gap) * np.abs(gap) ** (norm + 1) / (norm + 1)


def _roughness(norm: float, levels: Floats | None, nodes: Floats | None) -> float:
    """Mean over p of the bridge's sd(p)^norm, rooted: at levels, along straight lines between nodes, or all over."""
    if levels is not None:
        return float(np.mean((levels * (1 - levels)) ** (norm / 2)) ** (1 / norm))
    if nodes is None:
        from scipy.special import beta

        return float(beta(norm / 2 + 1, norm / 2 + 1) ** (1 / norm))
    start, end = nodes[:-1, None], nodes[1:, None]
    part = np.linspace(0.1, 0.9, 5)
    variance = (
        (1 - part) ** 2 * start * (1 - start) + part**2 * end * (1 - end) + 2 * part * (1 - part) * start * (1 - end)
    )
    return float((np.diff(nodes) @ (variance ** (norm / 2)).mean(axis=1)) ** (1 / norm))


@lru_cache(maxsize=16)
def _simulated_bridge(norm: float) -> tuple[float, float, float, float]:
    """Mean, standard deviation and 95 % range of another norm of the Brownian bridge, by 4000 paths."""
    steps = np.random.default_rng(0).normal(size=(4000, 256)) / 16
    path = np.cumsum(steps, axis=1)
    path -= path[:, -1:] * np.arange(1, 257) / 256
    size = np.mean(np.abs(path) ** norm, axis=1) ** (1 / norm)
    low, high = np.quantile(size, [0.025, 0.975])
    return float(size.mean()), float(size.std()), float(low), float(high)
