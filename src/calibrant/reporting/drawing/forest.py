"""Small drawings for cells of tables: a value with its interval on an axis that all rows share, and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.reporting.contents import Value
from calibrant.reporting.drawing.canvas import Canvas, Margins, dot, text_width
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.drawing.scales import Scale, covering, plain_tick

_NONE = Margins(0, 0, 0, 0)
_UNIT = Scale(0.0, 1.0)
#: Ratios beyond these are drawn at the edge.
_LEAST, _MOST = 0.05, 20.0


@dataclass(frozen=True)
class Forest:
    """An axis for a column of values; its ticks and its line of reference run through all rows."""

    scale: Scale
    ideal: float
    ticks: tuple[float, ...]

    @classmethod
    def of_ratios(cls, values: Sequence[Value], *, most: int = 5) -> Forest:
        """A logarithmic axis around 1."""
        ends = [v for value in values for v in (value.value, value.low, value.high) if v is not None]
        scale = covering([min(max(v, _LEAST), _MOST) for v in ends], "log", include=[1.0])
        return cls(scale, 1.0, scale.ticks(most))

    @classmethod
    def of_differences(cls, values: Sequence[Value], *, most: int = 4) -> Forest:
        """A linear axis around 0."""
        ends = [v for value in values for v in (value.value, value.low, value.high) if v is not None]
        scale = covering(ends, "linear", include=[0.0])
        return cls(scale, 0.0, scale.ticks(most))

    def head(self, width: float, left: str = "", right: str = "") -> Markup:
        """The axis: what lies on either side, and the ticks."""
        canvas = Canvas(width, 34, _NONE, self.scale, _UNIT)
        canvas.text(0, 12, left)
        canvas.text(width, 12, right, "", "end")
        taken: list[tuple[float, float]] = []
        for value in sorted(self.ticks, key=lambda tick: tick != self.ideal):  # the ideal first: it is never left out
            words = plain_tick(value)
            half = text_width(words) / 2
            x = min(max(canvas.x(value), half), width - half)
            if all(x + half + 4 <= left or x - half - 4 >= right for left, right in taken):
                canvas.text(x, 29, words, "", "middle")
                taken.append((x - half, x + half))
        return canvas.decoration()

    def cell(self, value: Value, style: Style, *, width: float, height: float = 33, size: float = 0.25) -> Markup:
        """One row; `size` between 0 and 1 is drawn as the area of the marker."""
        canvas = Canvas(width, height, _NONE, self.scale, _UNIT)
        for tick in self.ticks:
            canvas.line(canvas.x(tick), 0, canvas.x(tick), height, "grid")
        canvas.line(canvas.x(self.ideal), 0, canvas.x(self.ideal), height, "ref")
        y = height / 2
        if value.low is not None and value.high is not None:
            ends = (canvas.x(self.scale.within(end)) for end in (value.low, value.high))
            left, right = ends
            canvas.line(left, y, right, y, style.line)
        radius = 3 + 4 * math.sqrt(min(max(size, 0.0), 1.0))
        x = min(max(canvas.x(self.scale.within(value.value)), radius), width - radius)
        canvas.add(dot(x, y, radius, style.marker))
        return canvas.decoration()


@dataclass(frozen=True)
class Style:
    """Classes of the line and the marker of a row."""

    line: str
    marker: str


FLAGGED = Style("whb", "dotb")
QUIET = Style("whn", "doth")
HELPS = Style("wh", "dotf")


def share_bar(share: float, width: float = 70) -> Markup:
    """A bar as long as the share."""
    inner = tag("rect", width=width * min(max(share, 0.0), 1.0), height=10, class_="barm")
    return tag("svg", inner, width=width, height=10, aria_hidden="true")


def gauge(number_: Value, ideal: float, *, below: str, above: str, log: bool = False, width: float = 300) -> Markup:
    """A number with its interval and its ideal on a line, with what lies on either side in words."""
    ends = [v for v in (number_.value, number_.low, number_.high) if v is not None]
    scale = _gauge_scale(ends, ideal, log=log)
    canvas = Canvas(width, 46, Margins(4, 4, 4, 20), scale, _UNIT)
    y = 15.0
    canvas.line(4, y, width - 4, y, "axis soft")
    canvas.line(canvas.x(ideal), 4, canvas.x(ideal), 26, "ref")
    if number_.low is not None and number_.high is not None:
        low, high = (canvas.x(scale.within(end)) for end in (number_.low, number_.high))
        canvas.line(low, y, high, y, "range")
    canvas.add(dot(canvas.x(scale.within(number_.value)), y, 5.5, "dotf"))
    _under(canvas, ideal, below, above)
    return canvas.decoration("gauge")


def _gauge_scale(ends: Sequence[float], ideal: float, *, log: bool) -> Scale:
    """Around the ideal with equal room on both sides, or from it where it is a lower limit of 0."""
    if log:
        most = max(max(v / ideal, ideal / v) for v in ends if v > 0) if any(v > 0 for v in ends) else 2.0
        reach = min(max(1.35 * most, 1.5), 30.0)
        return Scale(ideal / reach, ideal * reach, "log")
    if ideal == 0 and min(ends) >= 0:
        return Scale(0.0, 1.5 * max(*ends, 1e-9))
    reach = 1.5 * max(max(abs(v - ideal) for v in ends), 1e-9)
    return Scale(ideal - reach, ideal + reach)


def _under(canvas: Canvas, ideal: float, below: str, above: str) -> None:
    x, y, right = canvas.x(ideal), 40.0, canvas.width - 4
    words = plain_tick(ideal)
    if x < 30:
        canvas.text(4, y, words, "t")
    else:
        canvas.text(x, y, words, "t", "middle")
        canvas.text(4, y, below)
    canvas.text(right, y, above, "", "end")
