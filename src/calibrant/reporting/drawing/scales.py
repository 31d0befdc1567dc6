"""Axes: from values to places between 0 and 1, and which values get a tick."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Kind = Literal["linear", "log", "log odds"]

#: Probabilities at which an axis of log odds may have ticks, and their mirror images.
_PROBABILITIES = (1e-5, 3e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
#: A logarithmic axis whose ends differ by less than this factor has ticks at equal steps.
_NARROW = 1.6
#: Places of an axis of log odds are found for probabilities at least this far from 0 and 1.
_EDGE = 1e-9


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`, on a linear, logarithmic or log-odds axis.

    Examples
    --------
    >>> Scale(0.0, 1.0).at(0.25), round(Scale(0.1, 10.0, "log").at(1.0), 3)
    (0.25, 0.5)
    >>> round(Scale(0.01, 0.99, "log odds").at(0.5), 3)
    0.5
    """

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
            return math.log(max(value, _EDGE))
        inside = min(max(value, _EDGE), 1 - _EDGE)
        return math.log(inside) - math.log1p(-inside)

    def ticks(self, most: int = 7) -> tuple[float, ...]:
        """At most `most` round values, as far apart as labels need.

        Examples
        --------
        >>> Scale(0.0, 1.0).ticks(6)
        (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        >>> Scale(0.4, 2.6, "log").ticks(4)
        (0.5, 1.0, 2.0)
        >>> Scale(0.0005, 0.8, "log odds").ticks(8)
        (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7)
        """
        if self.kind == "linear":
            return _round_steps(self.low, self.high, most)
        if self.kind == "log odds":
            upper = tuple(1 - p for p in reversed(_PROBABILITIES))
            every = (*_PROBABILITIES, *upper)
            decades = [p for p in every if _is_decade(p)]
            middle = (*_PROBABILITIES, 0.5, *upper)
            fine = sorted({*every, 0.2, 0.4, 0.5, 0.6, 0.8})
            with_middle = sorted([*decades, 0.5])
            candidates: Sequence[Sequence[float]] = [
                fine,
                middle,
                every,
                with_middle,
                decades,
                decades[::2],
                decades[::3],
            ]
        elif self.high / self.low < _NARROW:
            return _round_steps(self.low, self.high, most)
        else:
            candidates = _log_candidates(self.low, self.high)
        kept: tuple[float, ...] = ()
        for values in candidates:
            kept = tuple(round(v, 12) for v in values if self.holds(v))
            if len(kept) <= most and self._apart(kept, most):
                return kept
        return kept[:: math.ceil(len(kept) / most)] if kept else (self.low, self.high)

    def _apart(self, values: Sequence[float], most: int) -> bool:
        places = [self.at(v) for v in values]
        return all(b - a > 0.5 / most for a, b in pairwise(places))


def _is_decade(p: float) -> bool:
    small = min(p, 1 - p)
    return abs(math.log10(small) - round(math.log10(small))) < 1e-6


def _round_steps(low: float, high: float, most: int) -> tuple[float, ...]:
    size = 10 ** math.floor(math.log10((high - low) / most))
    found: tuple[float, ...] = ()
    for step in (size * k for k in (1, 2, 2.5, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        found = tuple(round(k * step, 12) for k in range(first, last + 1))
        if len(found) <= most:
            break
    return found


def _log_candidates(low: float, high: float) -> list[list[float]]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps: list[tuple[float, ...]] = [(1, 1.25, 1.5, 2, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 8), (1, 2, 5), (1, 3), (1,)]
    return [[m * 10.0**e for e in exponents for m in step] for step in steps]


def covering(values: Sequence[float], kind: Kind, *, pad: float = 0.06, include: Sequence[float] = ()) -> Scale:
    """An axis that holds all finite values and `include`, with a margin as a share of its length.

    >>> found = covering([0.5, 2.0], "log", include=[1.0])
    >>> found.low < 0.5 < 2.0 < found.high
    True
    """
    some = [v for v in (*values, *include) if math.isfinite(v) and (kind == "linear" or v > 0)]
    low, high = (min(some), max(some)) if some else (0.5, 2.0)
    if kind == "log":
        low, high = min(low, high / 1.5), max(high, low * 1.5)
        factor = (high / low) ** pad
        return Scale(low / factor, high * factor, "log")
    margin = pad * ((high - low) or abs(high) or 1.0)
    return Scale(low - margin, high + margin, kind)


Formatter = Callable[[float], str]


def percent_tick(value: float) -> str:
    r"""A probability at a tick: 0.3 %, with a no-break space.

    >>> percent_tick(0.003)
    '0.3 %'
    """
    return f"{round(100 * value, 6):g} %"


def plain_tick(value: float) -> str:
    """A number at a tick, with separators of thousands.

    >>> plain_tick(1000.0), plain_tick(1.25), plain_tick(-0.5)
    ('1,000', '1.25', '−0.5')
    """
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{round(value, 9):g}"
    return text.replace("-", "\u2212")
