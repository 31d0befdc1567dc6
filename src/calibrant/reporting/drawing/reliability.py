"""The reliability diagram: observed against predicted, square, on an axis of log odds or a linear one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from calibrant.reporting.contents import Axis, Band, Bin, Curve, Facts, Reliability
from calibrant.reporting.drawing.canvas import Canvas, Margins, dot, hint, stroke
from calibrant.reporting.drawing.descriptions import bin_table, reliability_text
from calibrant.reporting.drawing.figure import Figure, both
from calibrant.reporting.drawing.labels import Box, least_covered
from calibrant.reporting.drawing.markup import Markup, number, tag
from calibrant.reporting.drawing.scales import Scale, percent_tick
from calibrant.reporting.drawing.titles import reliability_title
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, rate, rates, score

WIDE = 548
#: Space above the diagram for the histogram, and its height.
_ABOVE, _BARS = 78.0, 46.0
#: An axis of log odds extends beyond the outermost bins by this factor of the odds.
_BEYOND = 1.9
#: Where a linear axis may end when no bin lies higher.
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Wording:
    """What the axes, the curve and the two free corners are called."""

    across: str
    curve: str
    above: tuple[str, str]
    below: tuple[str, str]


PROBABILITIES = Wording(
    "Predicted probability",
    "observed (CORP)",
    ("Too low", "more events than predicted"),
    ("Too high", "fewer events than predicted"),
)
CONFIDENCE = Wording(
    "Confidence in the predicted class",
    "observed accuracy",
    ("Under-confident", "right more often than predicted"),
    ("Over-confident", "right less often than predicted"),
)


def reliability_figure(
    section: Reliability, facts: Facts, axis: Axis, *, significant: bool, wording: Wording = PROBABILITIES
) -> Figure:
    """The diagram of a section on one of its axes."""
    scale = probability_scale(section.bins[axis], axis)
    name = f"Reliability diagram: observed frequency against {wording.across.lower()}, {axis} axes."
    draw = partial(_diagram, section, facts, axis, scale, wording, name)
    return Figure(
        *both(draw, WIDE),
        title=reliability_title(section, significant=significant, confidence=wording is CONFIDENCE),
        text=reliability_text(section, confidence=wording is CONFIDENCE),
        table=bin_table(section.bins[axis]),
    )


def before_after_figure(before: Curve, after: Curve, bins: Sequence[Bin], axis: Axis, name: str) -> Figure:
    """The curves before and after recalibration, with the confidence band of the second."""
    scale = probability_scale(bins, axis)
    draw = partial(_before_after, before, after, scale, f"Reliability before and after {name}.")
    corners = curve_points(after)
    inside = [c for c in corners if scale.holds(c[0])]
    largest = max(inside or corners, key=lambda corner: abs(corner[1] - corner[0]))
    text = (
        f"Two rising curves of observed against predicted frequency. After recalibration the curve is farthest from "
        f"the diagonal at {score(largest[0])} predicted, with {rate(largest[1])} observed."
    )
    return Figure(*both(draw, 384), title=f"Before and after {name}", text=text)


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


def _square(width: float, above: float, scale: Scale) -> Canvas:
    left, right, bottom = (56.0 if width > 400 else 48.0), 8.0, 46.0
    side = width - left - right
    return Canvas(width, above + side + bottom, Margins(left, above, right, bottom), scale, scale)


def _axes(canvas: Canvas, across: str) -> None:
    most = 8 if canvas.roomy else 5
    canvas.x_ticks(percent_tick, across, most=most)
    canvas.y_ticks(percent_tick, most=most)
    canvas.frame()


def _diagram(
    section: Reliability, facts: Facts, axis: Axis, scale: Scale, wording: Wording, name: str, width: float, style: str
) -> Markup:
    canvas = _square(width, _ABOVE, scale)
    _axes(canvas, wording.across)
    _histogram(canvas, section.histogram[axis], facts)
    canvas.corners(wording.above, wording.below)
    if section.curve.confidence is not None:
        _band(canvas, section.curve.confidence, "confband")
    if section.consistency is not None:
        _band(canvas, section.consistency, "nullband")
    _diagonal(canvas)
    if section.threshold is not None:
        _threshold(canvas, section.threshold.at)
    corners = curve_points(section.curve)
    canvas.path([(canvas.x(a), canvas.y(b)) for a, b in corners], "curve")
    boxes = _dots(canvas, section.bins[axis], facts)
    if canvas.roomy:
        _labels(canvas, corners, boxes, wording, None if section.threshold is None else section.threshold.at)
    return canvas.svg(name, style)


def _before_after(before: Curve, after: Curve, scale: Scale, name: str, width: float, style: str) -> Markup:
    canvas = _square(width, 24.0, scale)
    canvas.text(0, 12, "Observed frequency", "t")
    _axes(canvas, "Predicted probability")
    if after.confidence is not None:
        _band(canvas, after.confidence, "afterband")
    _diagonal(canvas)
    blocked: list[Box] = [_around(canvas, p, p) for p in _along(scale)]
    lines = [[(canvas.x(a), canvas.y(b)) for a, b in curve_points(curve)] for curve in (before, after)]
    for line, kind in zip(lines, ("curve", "curve2"), strict=True):
        canvas.path(line, kind)
        blocked += [Box(x - 3, y - 3, x + 3, y + 3) for x, y in line]
    for line, words, kind in zip(lines, ("before", "after"), ("m halo", "a halo"), strict=True):
        place = least_covered(words, line, blocked, _inside(canvas))
        if place is not None:
            canvas.text(*place, words, kind)
            blocked.append(Box.of_text(*place, words))
    return canvas.svg(name, style)


def _histogram(canvas: Canvas, bars: Sequence[tuple[float, float, float]], facts: Facts) -> None:
    shown = [bar for bar in bars if bar[2] > 0 and bar[1] > canvas.across.low and bar[0] < canvas.across.high]
    most = max((rows for _, _, rows in shown), default=1.0)
    base = canvas.top - 12
    for low, high, rows in shown:
        left, right = canvas.x(canvas.across.within(low)), canvas.x(canvas.across.within(high))
        height = max(1.0, _BARS * rows / most)
        bar = tag("rect", x=left + 0.5, y=base - height, width=max(right - left - 1, 0.6), height=height, class_="bar")
        canvas.add(hint(f"{score(low)} to {score(high)}\n{count(rows)} {plural(facts.row, rows)}", bar))
    canvas.line(canvas.left, base, canvas.right, base, "axis soft")
    words = "How often each probability was predicted" if canvas.roomy else "How often predicted"
    canvas.text(canvas.left, canvas.top - 64, words)


def _band(canvas: Canvas, band: Band, style: str) -> None:
    canvas.area(band.score, band.low, band.high, style)


def _diagonal(canvas: Canvas) -> None:
    canvas.line(canvas.left, canvas.bottom, canvas.right, canvas.top, "ref")


def _threshold(canvas: Canvas, at: float) -> None:
    if not canvas.across.holds(at):
        return
    x, words = canvas.x(at), f"threshold {score(at)}"
    canvas.line(x, canvas.top, x, canvas.bottom, "thr")
    if x > canvas.left + 0.35 * canvas.plot_width:
        canvas.text(x - 6, canvas.bottom - 9, words, "t halo", "end")
    else:
        canvas.text(x + 6, canvas.top + 0.3 * canvas.plot_height, words, "t halo")


def _dots(canvas: Canvas, bins: Sequence[Bin], facts: Facts) -> list[Box]:
    shown = [b for b in bins if canvas.across.holds(b.predicted)]
    most = max((b.n for b in shown), default=1.0)
    boxes = []
    for b in shown:
        x, y = canvas.x(b.predicted), canvas.y(b.observed.value)
        radius = 2.5 + (9 if canvas.roomy else 6) * math.sqrt(b.n / most)
        parts = [dot(x, y, radius, "dot")]
        if b.observed.low is not None and b.observed.high is not None:
            top, end = canvas.y(b.observed.high), canvas.y(b.observed.low)
            parts.insert(0, stroke(x, top, x, end, "wh"))
            boxes.append(Box(x - 2, top, x + 2, end))
        canvas.clipped(hint(bin_hint(b, facts), *parts))
        boxes.append(Box(x - radius, y - radius, x + radius, y + radius))
    return boxes


def bin_hint(b: Bin, facts: Facts) -> str:
    """Three lines: range and mean, observed with interval, rows and events."""
    found = rates(b.observed)
    ends = f" ({found.ends} %)" if found.ends else ""
    return (
        f"Predicted {score(b.low)} to {score(b.high)}: mean {rate(b.predicted)}\n"
        f"Observed {found.value} %{ends}\n"
        f"{count(b.n)} {plural(facts.row, b.n)}, {count(b.events)} {plural(facts.event, b.events)}"
    )


def _labels(
    canvas: Canvas, corners: Sequence[tuple[float, float]], boxes: list[Box], wording: Wording, threshold: float | None
) -> None:
    """The names of the curve and of the diagonal, where they cover least."""
    line = [(canvas.x(a), canvas.y(b)) for a, b in corners]
    places = (0.72, 0.8, 0.62, 0.3, 0.5)
    on_curve = [min(line, key=lambda p: abs(p[0] - canvas.left - f * canvas.plot_width)) for f in places]
    gaps = [canvas.bottom - f * canvas.plot_height - p[1] for f, p in zip(places, on_curve, strict=True)]
    lines = [] if threshold is None else [canvas.x(threshold)]
    free = [all(abs(canvas.left + f * canvas.plot_width - x) > 60 for x in lines) for f in places]
    best = max(range(len(places)), key=lambda k: 2 * free[k] + (abs(gaps[k]) > 24))  # the first of the best
    side = 16 if gaps[best] > 0 else -7  # below the diagonal where the curve is above it
    x, y = canvas.left + places[best] * canvas.plot_width, canvas.bottom - places[best] * canvas.plot_height
    shift = f"translate({number(x + 0.7 * side)},{number(y + 0.7 * side)}) rotate(-45)"
    canvas.add(tag("text", "perfect calibration", class_="halo", text_anchor="middle", transform=shift))
    blocked = [
        *boxes,
        *(Box(x - 3, y - 3, x + 3, y + 3) for x, y in line),
        *(_around(canvas, p, p) for p in _along(canvas.across)),
        Box(canvas.left, canvas.top, canvas.left + 190, canvas.top + 46),
        Box(canvas.right - 190, canvas.bottom - 46, canvas.right, canvas.bottom),
        Box(x - 50, y - 50, x + 50, y + 50),
    ]
    right_half = [p for p in line if p[0] > canvas.left + 0.35 * canvas.plot_width] or line
    place = least_covered(wording.curve, right_half, blocked, _inside(canvas))
    if place is not None:
        canvas.text(*place, wording.curve, "m halo")


def _along(scale: Scale) -> list[float]:
    """Values at equal distances along an axis."""
    if scale.kind == "linear":
        return [scale.low + (scale.high - scale.low) * k / 60 for k in range(61)]
    first, last = math.log(scale.low / (1 - scale.low)), math.log(scale.high / (1 - scale.high))
    return [1 / (1 + math.exp(-(first + (last - first) * k / 60))) for k in range(61)]


def _around(canvas: Canvas, across: float, up: float) -> Box:
    x, y = canvas.x(across), canvas.y(up)
    return Box(x - 4, y - 4, x + 4, y + 4)


def _inside(canvas: Canvas) -> Box:
    return Box(canvas.left + 4, canvas.top + 4, canvas.right - 4, canvas.bottom - 4)
