"""The plain ECE against the number of bins, with what a calibrated model would show."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from calibrant.reporting.contents import BinCounts, Value
from calibrant.reporting.drawing.canvas import Canvas, Margins, dot, hint
from calibrant.reporting.drawing.descriptions import bin_counts_table, bin_counts_text
from calibrant.reporting.drawing.figure import Figure, both
from calibrant.reporting.drawing.labels import Box, least_covered
from calibrant.reporting.drawing.markup import Markup
from calibrant.reporting.drawing.scales import Scale, plain_tick
from calibrant.reporting.drawing.titles import bin_counts_title
from calibrant.reporting.rounding import fixed, points


def bin_counts_figure(section: BinCounts, error: Value | None) -> Figure:
    """Both binnings, the range of a calibrated model, and the calibration error that needs no bins."""
    draw = partial(_chart, section, error, "Plain ECE in percentage points against the number of bins.")
    return Figure(
        *both(draw, 1040),
        title=bin_counts_title(),
        text=bin_counts_text(section),
        table=bin_counts_table(section),
    )


def _chart(section: BinCounts, error: Value | None, name: str, width: float, style: str) -> Markup:
    roomy = width > 400
    margins = Margins(46, 24 if roomy else 12, 14, 44)
    first, last = section.counts[0], section.counts[-1]
    heights = [*section.equal_mass, *section.equal_width, *section.null_high]
    heights += [error.high or error.value] if error is not None else []
    top = 1.06 * max([h for h in heights if math.isfinite(h)] or [1.0])
    scale = Scale(float(first), float(max(last, first + 1)), "log")
    canvas = Canvas(width, 310 if roomy else 260, margins, scale, Scale(0.0, max(top, 1e-9)))
    canvas.y_ticks(lambda v: plain_tick(100 * v), most=6)
    canvas.x_ticks(plain_tick, "number of bins", most=9 if roomy else 5, grid=False)
    canvas.area(section.counts, section.null_low, section.null_high, "nullband")
    if error is not None:
        _error(canvas, error)
    canvas.curve(section.counts, section.equal_width, "curve3")
    canvas.curve(section.counts, section.equal_mass, "curve")
    _dots(canvas, section)
    if roomy:
        canvas.text(0, 10, "percentage points", "t")
        _labels(canvas, section, error)
    return canvas.svg(name, style)


def _error(canvas: Canvas, error: Value) -> None:
    if error.low is not None and error.high is not None:
        ends = [canvas.across.low, canvas.across.high]
        canvas.area(ends, [error.low] * 2, [error.high] * 2, "afterband")
    y = canvas.y(error.value)
    canvas.line(canvas.left, y, canvas.right, y, "curve2")


def _dots(canvas: Canvas, section: BinCounts) -> None:
    columns = zip(
        section.counts, section.equal_mass, section.equal_width, section.null_low, section.null_high, strict=True
    )
    for bins, mass, width, low, high in columns:
        x, y = canvas.x(bins), canvas.y(mass)
        words = (
            f"{bins:,} bins\nECE, equal mass {fixed(100 * mass, 2)}\nECE, equal width {fixed(100 * width, 2)}\n"
            f"calibrated model {fixed(100 * low, 2)} to {fixed(100 * high, 2)}"
        )
        canvas.add(hint(words, dot(x, y, 3.4, "dotf"), dot(x, y, 10, "touch")))


def _labels(canvas: Canvas, section: BinCounts, error: Value | None) -> None:
    inside = Box(canvas.left + 4, canvas.top, canvas.right, canvas.bottom - 4)
    blocked = []
    lines = {}
    series = (
        ("mass", section.equal_mass),
        ("width", section.equal_width),
        ("null", section.null_high),
        ("low", section.null_low),
    )
    for key, values in series:
        line = [(canvas.x(n), canvas.y(v)) for n, v in zip(section.counts, values, strict=True)]
        lines[key] = _dense(line)
        blocked += [Box(x - 4, y - 4, x + 4, y + 4) for x, y in lines[key]]
    if error is not None:
        y = canvas.y(error.value)
        found = points(error)
        words = f"calibration error {found.value}" + (f" ({found.ends})" if found.ends else "")
        canvas.text(canvas.left + 8, y - 7, words, "a halo")
        blocked += [Box.of_text(canvas.left + 8, y - 7, words), Box(canvas.left, y - 2, canvas.right, y + 2)]
    right_half = [p for p in lines["mass"] if p[0] > canvas.left + 0.3 * canvas.plot_width]
    for words, style, line in (
        ("plain ECE, equal mass", "m halo", right_half),
        ("grey: what a perfectly calibrated model would show", "halo", lines["low"][len(lines["low"]) // 2 :]),
    ):
        place = least_covered(words, line, blocked, inside)
        if place is not None:
            canvas.text(*place, words, style)
            blocked.append(Box.of_text(*place, words))


def _dense(line: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners and places between them, near enough to test whether a label covers the line."""
    found = []
    for (x1, y1), (x2, y2) in pairwise(line):
        found += [(x1 + (x2 - x1) * k / 8, y1 + (y2 - y1) * k / 8) for k in range(8)]
    return [*found, line[-1]]
