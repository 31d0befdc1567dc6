"""Maps in the order in which a reader should consider them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibrant.reporting.contents import Value

Effect = Literal["best", "helps", "may not help", "makes it worse"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cross-validated map: its class, number of parameters, gain, what it predicted for held-out rows, and fits."""

    name: str
    parameters: float
    gain: Value
    predicted: Any
    fitted: Any = None


def ranked(
    candidates: Sequence[Candidate], error_of_difference: Callable[[Candidate, Candidate], float]
) -> list[tuple[Candidate, Effect]]:
    """The best map first, then by falling gain, each with its effect.

    A map helps where the interval of its gain lies above 0. The best is the one with the largest gain among them, or
    one with fewer parameters whose gain is smaller by no more than one standard error of the paired difference.
    """
    by_gain = sorted(candidates, key=lambda one: -one.gain.value)
    best = _best([one for one in by_gain if _lies_above_zero(one.gain)], error_of_difference)
    order = by_gain if best is None else [best, *(one for one in by_gain if one is not best)]
    return [(one, "best" if one is best else _effect(one.gain)) for one in order]


def _best(
    helpful: Sequence[Candidate], error_of_difference: Callable[[Candidate, Candidate], float]
) -> Candidate | None:
    if not helpful:
        return None
    first = helpful[0]
    close = [
        one for one in helpful if one is first or first.gain.value - one.gain.value <= error_of_difference(first, one)
    ]
    return min(close, key=lambda one: (one.parameters, -one.gain.value))


def _lies_above_zero(gain: Value) -> bool:
    return gain.low is not None and gain.low > 0


def _effect(gain: Value) -> Effect:
    if _lies_above_zero(gain):
        return "helps"
    return "makes it worse" if gain.high is not None and gain.high < 0 else "may not help"
