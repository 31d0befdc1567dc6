"""The curves before and after recalibration, on one square diagram."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from calibrant.reporting.contents import Axis, Bin, Curve
from calibrant.reporting.drawing.canvas import dot
from calibrant.reporting.drawing.figure import Figure, both
from calibrant.reporting.drawing.labels import Box, least_covered
from calibrant.reporting.drawing.markup import Markup
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
)
from calibrant.reporting.rounding import rate, score


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


def _before_after(before: Curve, after: Curve, scale: Scale, name: str, width: float, style: str) -> Markup:
    canvas = square(width, scale, above=24.0)
    canvas.text(0, 12, "Observed frequency", "t")
    probability_axes(canvas, "Predicted probability")
    if after.confidence is not None:
        canvas.band(after.confidence, "afterband")
    diagonal(canvas)
    blocked: list[Box] = [around(canvas, p, p) for p in along(scale)]
    lines = [[(canvas.x(a), canvas.y(b)) for a, b in curve_points(curve)] for curve in (before, after)]
    for line, kind in zip(lines, ("curve", "curve2"), strict=True):
        canvas.path(line, kind)
        if len(line) == 1:
            canvas.add(dot(*line[0], 4.5, "dotf" if kind == "curve" else "dota"))
        blocked += [Box(x - 3, y - 3, x + 3, y + 3) for x, y in line]
    for line, words, kind in zip(lines, ("before", "after"), ("m halo", "a halo"), strict=True):
        place = least_covered(words, line, blocked, inside(canvas))
        if place is not None:
            canvas.text(*place, words, kind)
            blocked.append(Box.of_text(*place, words))
    return canvas.svg(name, style)
