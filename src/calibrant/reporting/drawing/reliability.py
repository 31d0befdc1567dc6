"""The reliability diagram: observed against predicted, square, on an axis of log odds or a linear one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from calibrant.reporting.contents import Axis, Bin, Facts, Reliability
from calibrant.reporting.drawing.canvas import Canvas, dot, hint, stroke
from calibrant.reporting.drawing.descriptions import bin_table, reliability_text
from calibrant.reporting.drawing.figure import Figure, both
from calibrant.reporting.drawing.labels import Box, least_covered
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.drawing.scales import Scale
from calibrant.reporting.drawing.square import (
    along,
    around,
    curve_points,
    diagonal,
    inside,
    probability_axes,
    probability_scale,
    square,
    write_along_the_diagonal,
)
from calibrant.reporting.drawing.titles import reliability_title
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, rate, rates, score

WIDE = 548
#: Space above the diagram for the histogram, and its height.
_ABOVE, _BARS = 78.0, 46.0


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
    section: Reliability, facts: Facts, axis: Axis, *, significant: bool | None, wording: Wording = PROBABILITIES
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


def _diagram(
    section: Reliability, facts: Facts, axis: Axis, scale: Scale, wording: Wording, name: str, width: float, style: str
) -> Markup:
    canvas = square(width, scale, above=_ABOVE)
    probability_axes(canvas, wording.across)
    _histogram(canvas, section.histogram[axis], facts)
    if section.curve.confidence is not None:
        canvas.band(section.curve.confidence, "confband")
    if section.consistency is not None:
        canvas.band(section.consistency, "nullband")
    diagonal(canvas)
    if section.threshold is not None:
        _threshold(canvas, section.threshold.at)
    canvas.corners(wording.above, wording.below)
    corners = curve_points(section.curve)
    canvas.path([(canvas.x(a), canvas.y(b)) for a, b in corners], "curve")
    boxes = _dots(canvas, section.bins[axis], facts)
    if section.threshold is not None and canvas.across.holds(section.threshold.at):
        x = canvas.x(section.threshold.at)
        boxes.append(Box(x - 2, canvas.top, x + 2, canvas.bottom))
    if canvas.roomy:
        _labels(canvas, corners, boxes, wording)
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


def _threshold(canvas: Canvas, at: float) -> None:
    if not canvas.across.holds(at):
        return
    x, words = canvas.x(at), f"threshold {score(at)}"
    canvas.line(x, canvas.top, x, canvas.bottom, "thr")
    share = (x - canvas.left) / canvas.plot_width
    if 0.35 < share < 0.6 or (share >= 0.6 and not canvas.roomy):
        canvas.text(x - 6, canvas.bottom - 9, words, "t halo", "end")
    elif share >= 0.6:  # the lower corner has its own words
        canvas.text(x - 6, canvas.top + 16, words, "t halo", "end")
    else:
        canvas.text(x + 6, canvas.top + 0.3 * canvas.plot_height, words, "t halo")


def _dots(canvas: Canvas, bins: Sequence[Bin], facts: Facts) -> list[Box]:
    shown = [b for b in bins if canvas.across.holds(b.predicted)]
    most = max((b.n for b in shown), default=1.0)
    boxes = []
    for b in shown:
        # Frequencies of 0 and 1 have no place on log odds: they stand on the edge.
        x, y = canvas.x(b.predicted), min(max(canvas.y(b.observed.value), canvas.top), canvas.bottom)
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


def _labels(canvas: Canvas, corners: Sequence[tuple[float, float]], boxes: list[Box], wording: Wording) -> None:
    """The names of the diagonal and of the curve, where they cover least."""
    line = [(canvas.x(a), canvas.y(b)) for a, b in corners]
    blocked = [
        *boxes,
        *(Box(x - 3, y - 3, x + 3, y + 3) for x, y in line),
        Box(canvas.left, canvas.top, canvas.left + 190, canvas.top + 46),
        Box(canvas.right - 190, canvas.bottom - 46, canvas.right, canvas.bottom),
    ]
    blocked += write_along_the_diagonal(canvas, "perfect calibration", blocked)
    blocked += [around(canvas, p, p) for p in along(canvas.across)]
    right_half = [p for p in line if p[0] > canvas.left + 0.35 * canvas.plot_width] or line
    place = least_covered(wording.curve, right_half, blocked, inside(canvas))
    if place is not None:
        canvas.text(*place, wording.curve, "m halo")
