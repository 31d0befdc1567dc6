"""What square diagrams of probabilities share: their axes, the diagonal, and where labels may stand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.reporting.contents import Axis, Bin, Curve
from calibrant.reporting.drawing.canvas import ROOMY, Canvas, Margins, text_width
from calibrant.reporting.drawing.labels import Box
from calibrant.reporting.drawing.markup import number, tag
from calibrant.reporting.drawing.scales import Scale, percent_tick

#: An axis of log odds extends beyond the outermost bins by this factor of the odds.
_BEYOND = 1.9
#: Where a linear axis may end when no bin lies higher.
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def square(width: float, scale: Scale, *, above: float = 14.0) -> Canvas:
    """A canvas whose plotting area is a square, with the same axis in both directions."""
    left, right, bottom = (56.0 if width > ROOMY else 48.0), 8.0, 46.0
    side = width - left - right
    return Canvas(width, above + side + bottom, Margins(left, above, right, bottom), scale, scale)


def probability_axes(canvas: Canvas, across: str) -> None:
    """Ticks in percent on both axes, and the frame."""
    most = 8 if canvas.roomy else 5
    canvas.x_ticks(percent_tick, across, most=most)
    canvas.y_ticks(percent_tick, most=most)
    canvas.frame()


def diagonal(canvas: Canvas) -> None:
    """The line of perfect calibration."""
    canvas.line(canvas.left, canvas.bottom, canvas.right, canvas.top, "ref")


def probability_scale(bins: Sequence[Bin], axis: Axis) -> Scale:
    """An axis for predicted and observed probabilities alike, so that the diagram is square."""
    means = [p for b in bins for p in (b.predicted, b.observed.value)]
    if axis == "linear":
        highest = max((max(b.predicted, b.observed.high or b.observed.value) for b in bins), default=1.0)
        return Scale(0.0, next(end for end in _ENDS if highest <= end or end == 1.0))
    odds = [p / (1 - p) for p in means if 0 < p < 1] or [0.1, 10.0]
    low, high = min(odds) / _BEYOND, max(odds) * _BEYOND
    low, high = min(low, high / 16), max(high, low * 16)
    low, high = max(low, 1e-6), min(high, 1e6)
    return Scale(low / (1 + low), high / (1 + high), "log odds")


def curve_points(curve: Curve) -> list[tuple[float, float]]:
    """The corners of the isotonic curve: each block is level, neighbours are joined by a straight line."""
    corners: list[tuple[float, float]] = []
    for low, high, rate_ in zip(curve.low, curve.high, curve.rate, strict=True):
        corners.append((low, rate_))
        if high > low:
            corners.append((high, rate_))
    return corners


def write_along_the_diagonal(canvas: Canvas, words: str, blocked: Sequence[Box]) -> list[Box]:
    """Write words along the diagonal where they cover least; what they cover."""
    reach = text_width(words) / 2 * math.sqrt(0.5)
    best: tuple[int, float, float, list[Box]] | None = None
    for share in (0.72, 0.8, 0.62, 0.5, 0.88, 0.38, 0.28, 0.2):
        for side in (-5, 11):  # above the line, or below it
            x, y = canvas.left + share * canvas.plot_width + side, canvas.bottom - share * canvas.plot_height + side
            steps = [reach * k / 5 for k in range(-5, 6)]
            own = [Box(x + step - 7, y - step - 9, x + step + 5, y - step + 4) for step in steps]
            cost = sum(one.meets(other) for one in own for other in blocked)
            if inside(canvas).holds(own[0]) and inside(canvas).holds(own[-1]) and (best is None or cost < best[0]):
                best = (cost, x, y, own)
    if best is None:
        return []
    shift = f"translate({number(best[1])},{number(best[2])}) rotate(-45)"
    canvas.add(tag("text", words, class_="halo", text_anchor="middle", transform=shift))
    return best[3]


def along(scale: Scale) -> list[float]:
    """Values at equal distances along an axis."""
    if scale.kind == "linear":
        return [scale.low + (scale.high - scale.low) * k / 60 for k in range(61)]
    first, last = math.log(scale.low / (1 - scale.low)), math.log(scale.high / (1 - scale.high))
    return [1 / (1 + math.exp(-(first + (last - first) * k / 60))) for k in range(61)]


def around(canvas: Canvas, across: float, up: float) -> Box:
    """A small box around a point."""
    x, y = canvas.x(across), canvas.y(up)
    return Box(x - 4, y - 4, x + 4, y + 4)


def inside(canvas: Canvas) -> Box:
    """Where labels may stand."""
    return Box(canvas.left + 4, canvas.top + 4, canvas.right - 4, canvas.bottom - 4)
