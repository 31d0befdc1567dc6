"""Where a label covers least of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.reporting.drawing.canvas import text_width

#: Height of a line of text above and below its baseline.
_RISE, _FALL = 11.0, 4.0
#: How far from its curve a label may stand.
_STEPS = (14.0, 24.0, 36.0, 50.0)


@dataclass(frozen=True)
class Box:
    """A rectangle, by its edges."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of_text(cls, x: float, y: float, words: str) -> Box:
        """What a text that starts at `x` with its baseline at `y` covers."""
        return cls(x, y - _RISE, x + text_width(words), y + _FALL)

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Whether `other` lies inside."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


def least_covered(
    words: str, line: Sequence[tuple[float, float]], blocked: Sequence[Box], inside: Box
) -> tuple[float, float] | None:
    """Start and baseline for a label near a curve, where it covers the fewest boxes; None where it never fits.

    Examples
    --------
    >>> least_covered("curve", [(50, 50)], [Box(40, 45, 60, 55)], Box(0, 0, 100, 100)) is not None
    True
    """
    width = text_width(words)
    found: tuple[float, float] | None = None
    fewest = float("inf")
    for step in _STEPS:
        for x, y in line[:: max(1, len(line) // 40)]:
            for start, base in (
                (x + 6, y + step),
                (x - 6 - width, y - step + _RISE),
                (x + step, y + 4),
                (x - step - width, y + 4),
            ):
                box = Box.of_text(start, base, words)
                if not inside.holds(box):
                    continue
                cost = sum(box.meets(other) for other in blocked)
                if cost == 0:
                    return start, base
                if cost < fewest:
                    found, fewest = (start, base), cost
    return found
