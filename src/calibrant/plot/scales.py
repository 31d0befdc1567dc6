"""Axes of figures, for matplotlib and for the SVG of reports alike: where values lie, limits, and round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Kind = Literal["linear", "log", "log odds"]

#: Ticks of a log-odds axis: these probabilities, three times them, and their mirror images.
#: Derived: the decades between which users tell probabilities apart.
DECADES = (1e-5, 1e-4, 1e-3, 0.01, 0.1)
#: Values on an axis of log odds or logarithms are at least this far from its infinite ends.
#: Derived: the log odds, 21, lie beyond any axis, and 1 - 1e-9 is not 1 in double precision.
EDGE = 1e-9
#: The least ratio of the ends of a logarithmic axis whose ticks are powers and their multiples, not equal steps.
#: Test: tests/plot/test_scales.py::test_a_narrow_logarithmic_axis_has_equal_steps.
WIDE_RATIO = 1.6
#: Where a linear axis of probabilities may end.
#: Derived: the steps 1, 2, 5 of round numbers.
LINEAR_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
#: An axis of log odds extends beyond its values by the first factor of the odds, and its ends differ by the second.
#: Test: tests/plot/test_scales.py::test_an_axis_of_log_odds_has_a_margin_and_a_least_width.
ODDS_MARGIN, ODDS_WIDTH = 1.9, 16.0


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`, on a linear, logarithmic or log-odds axis."""

    low: float
    high: float
    kind: Kind = "linear"

    def at(self, value: float) -> float:
        """0 at `low`, 1 at `high`; beyond them where `value` is."""
        first, last = self._moved(self.low), self._moved(self.high)
        return (self._moved(value) - first) / (last - first)

    def holds(self, value: float) -> bool:
        """Whether `value` lies on the axis."""
        return self.low <= value <= self.high

    def within(self, value: float) -> float:
        """The nearest value on the axis."""
        return min(max(value, self.low), self.high)

    def _moved(self, value: float) -> float:
        if self.kind == "linear":
            return value
        if self.kind == "log":
            return math.log(max(value, EDGE))
        inside = min(max(value, EDGE), 1 - EDGE)
        return math.log(inside) - math.log1p(-inside)

    def ticks(self, most: int = 7) -> tuple[float, ...]:
        """At most `most` round values, as far apart as labels need."""
        if self.kind == "linear" or (self.kind == "log" and self.high / self.low < WIDE_RATIO):
            return _equal_steps(self.low, self.high, most)
        kept: tuple[float, ...] = ()
        for values in _odds_ticks() if self.kind == "log odds" else _log_ticks(self.low, self.high):
            kept = tuple(round(v, 12) for v in values if self.holds(v))
            apart = all(self.at(b) - self.at(a) > 0.5 / most for a, b in pairwise(kept))
            if len(kept) <= most and apart:
                return kept
        return kept[:: math.ceil(len(kept) / most)] if kept else (self.low, self.high)


def _equal_steps(low: float, high: float, most: int) -> tuple[float, ...]:
    if not high > low:
        return (low,)
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    found: tuple[float, ...] = ()
    for step in (size * k for k in (1, 2, 2.5, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found = tuple(float(f"{k * step:.12g}") for k in range(first, last + 1))
        if len(found) <= most:
            break
    return found


def _odds_ticks() -> list[list[float]]:
    """Ticks of an axis of log odds, from many to few."""
    decades = [*DECADES, *(1 - p for p in reversed(DECADES))]
    thirds = [p for d in DECADES for p in (d, 3 * d)]
    every = [*thirds, *(1 - p for p in reversed(thirds))]
    fine = sorted({*every, 0.2, 0.4, 0.5, 0.6, 0.8})
    return [fine, sorted([*every, 0.5]), every, sorted([*decades, 0.5]), decades, decades[::2], decades[::3]]


def _log_ticks(low: float, high: float) -> list[list[float]]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps: list[tuple[float, ...]] = [(1, 1.25, 1.5, 2, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 8), (1, 2, 5), (1, 3), (1,)]
    return [[m * 10.0**e for e in exponents for m in step] for step in steps]


def covering(values: Sequence[float], kind: Kind, *, pad: float = 0.06, include: Sequence[float] = ()) -> Scale:
    """An axis that holds all finite values and `include`, with a margin as a share of its length."""
    some = [v for v in (*values, *include) if math.isfinite(v) and (kind == "linear" or v > 0)]
    low, high = (min(some), max(some)) if some else (0.5, 2.0)
    if kind == "log":
        low, high = min(low, high / 1.5), max(high, low * 1.5)
        factor = (high / low) ** pad
        return Scale(low / factor, high * factor, "log")
    margin = pad * ((high - low) or abs(high) or 1.0)
    return Scale(low - margin, high + margin, kind)


def probability_scale(values: Sequence[float], *, log_odds: bool) -> Scale:
    """An axis of probabilities that holds `values`: from 0 to a round end, or on log odds around them."""
    if not log_odds:
        highest = max(values, default=1.0)
        return Scale(0.0, next(end for end in LINEAR_ENDS if highest <= end or end == 1.0))
    odds = [p / (1 - p) for p in values if 0 < p < 1] or [0.1, 10.0]
    low, high = min(odds) / ODDS_MARGIN, max(odds) * ODDS_MARGIN
    low, high = min(low, high / ODDS_WIDTH), max(high, low * ODDS_WIDTH)
    low, high = max(low, 1e-6), min(high, 1e6)
    return Scale(low / (1 + low), high / (1 + high), "log odds")


def evenly(scale: Scale, parts: int) -> list[float]:
    """The ends of equally long parts of a linear or log-odds axis."""
    first, last = scale._moved(scale.low), scale._moved(scale.high)
    places = [first + (last - first) * k / parts for k in range(parts + 1)]
    return places if scale.kind == "linear" else [1 / (1 + math.exp(-place)) for place in places]
