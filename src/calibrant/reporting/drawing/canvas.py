"""A figure with two axes, written as SVG at its true size; colours and strokes are classes of the style sheet."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from calibrant.reporting.contents import Band
from calibrant.reporting.drawing.markup import Child, Markup, joined, number, tag
from calibrant.reporting.drawing.scales import Formatter, Scale

Anchor = Literal["start", "middle", "end"]

#: Figures wider than this have room for labels of curves and corners.
ROOMY = 400
#: Width of a figure on a narrow screen.
NARROW = 352
#: Mean width of a letter of 12 px, for labels that must not touch.
_LETTER = 6.3


def text_width(text: str) -> float:
    """About how wide a text of 12 px is."""
    return _LETTER * len(text)


@dataclass(frozen=True)
class Margins:
    """Space around the plotting area."""

    left: float
    top: float
    right: float
    bottom: float


class Canvas:
    """A plotting area with margins; `x` and `y` turn values into places, everything drawn is kept in order.

    Examples
    --------
    >>> canvas = Canvas(120, 100, Margins(20, 10, 0, 10), Scale(0.0, 1.0), Scale(0.0, 10.0))
    >>> canvas.x(0.5), canvas.y(10.0)
    (70.0, 10.0)
    >>> canvas.line(canvas.x(0), canvas.y(0), canvas.x(1), canvas.y(0), "axis")
    >>> canvas.svg("A line.")[:52]
    '<svg class="fig" width="120" height="100" viewBox="0'
    """

    def __init__(self, width: float, height: float, margins: Margins, across: Scale, up: Scale) -> None:
        self.width, self.height = width, height
        self.left, self.top = margins.left, margins.top
        self.plot_width = width - margins.left - margins.right
        self.plot_height = height - margins.top - margins.bottom
        self.across, self.up = across, up
        self._drawn: list[Markup] = []

    @property
    def right(self) -> float:
        """Where the plotting area ends."""
        return self.left + self.plot_width

    @property
    def bottom(self) -> float:
        """Where the plotting area ends."""
        return self.top + self.plot_height

    @property
    def roomy(self) -> bool:
        """Whether there is room for labels inside."""
        return self.width > ROOMY

    def x(self, value: float) -> float:
        """The place of a value on the horizontal axis; values far outside are moved near the edge."""
        return self.left + self.plot_width * min(max(self.across.at(value), -0.5), 1.5)

    def y(self, value: float) -> float:
        """The place of a value on the vertical axis; values far outside are moved near the edge."""
        return self.top + self.plot_height * (1 - min(max(self.up.at(value), -0.5), 1.5))

    def add(self, *parts: Markup) -> None:
        """Draw elements as they are."""
        self._drawn.extend(parts)

    def clipped(self, *parts: Markup) -> None:
        """Draw elements of which only what lies inside the plotting area is seen."""
        self.add(tag("g", *parts, clip_path="url(#CLIP)"))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line between two places."""
        self.add(stroke(x1, y1, x2, y2, style))

    def text(self, x: float, y: float, words: str, style: str = "", anchor: Anchor = "start") -> None:
        """Words at a place."""
        self.add(label(x, y, words, style, anchor))

    def path(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """A line through places, inside the plotting area."""
        self.clipped(tag("path", d=_d(points), class_=style))

    def curve(self, across: Sequence[float], up: Sequence[float], style: str) -> None:
        """A line through values."""
        self.path([(self.x(a), self.y(b)) for a, b in zip(across, up, strict=True)], style)

    def area(self, across: Sequence[float], low: Sequence[float], high: Sequence[float], style: str) -> None:
        """What lies between two curves."""
        there = [(self.x(a), self.y(b)) for a, b in zip(across, high, strict=True)]
        back = [(self.x(a), self.y(b)) for a, b in zip(across, low, strict=True)]
        self.clipped(tag("path", d=f"{_d([*there, *reversed(back)])}Z", class_=style))

    def band(self, band: Band, style: str) -> None:
        """A band of limits at each score."""
        self.area(band.score, band.low, band.high, style)

    def frame(self) -> None:
        """The border of the plotting area."""
        size = {"width": self.plot_width, "height": self.plot_height}
        self.add(tag("rect", x=self.left, y=self.top, class_="frame", **size))

    def x_ticks(self, shown: Formatter, title: str = "", *, most: int = 7, grid: bool = True) -> None:
        """Ticks and the title of the horizontal axis; labels that would touch are left out."""
        last = -1e9
        for value in self.across.ticks(most):
            x, words = self.x(value), shown(value)
            if grid:
                self.line(x, self.top, x, self.bottom, "grid")
            if x - text_width(words) / 2 > last + 6:
                self.text(x, self.bottom + 17, words, anchor="middle")
                last = x + text_width(words) / 2
        if title:
            self.text(self.left + self.plot_width / 2, self.bottom + 37, title, "t", "middle")

    def y_ticks(self, shown: Formatter, *, most: int = 7) -> None:
        """Ticks of the vertical axis."""
        for value in self.up.ticks(most):
            y = self.y(value)
            self.line(self.left, y, self.right, y, "grid")
            self.text(self.left - 8, y + 4, shown(value), anchor="end")

    def corners(self, above: tuple[str, str], below: tuple[str, str]) -> None:
        """What lies above and below the diagonal, in its free corners; only where there is room."""
        if not self.roomy:
            return
        self.text(self.left + 12, self.top + 22, above[0], "s halo")
        self.text(self.left + 12, self.top + 38, above[1], "halo")
        self.text(self.right - 12, self.bottom - 28, below[0], "s halo", "end")
        self.text(self.right - 12, self.bottom - 12, below[1], "halo", "end")

    def svg(self, title: str, style: str = "") -> Markup:
        """The whole figure; `title` names it for those who do not see it."""
        inside = joined(self._drawn)
        area = {"width": self.plot_width, "height": self.plot_height}
        # The page shows the same figure more than once, so names must differ by what is drawn and for which width.
        name = f"f{zlib.crc32(f'{title}{style}{inside}'.encode()):08x}"
        clip = tag("clipPath", tag("rect", x=self.left, y=self.top, **area), id=f"{name}c")
        body = Markup(inside.replace("url(#CLIP)", f"url(#{name}c)"))
        parts: tuple[Child, ...] = (tag("title", title, id=f"{name}t"), clip if "url(#" in body else None, body)
        return tag(
            "svg",
            *parts,
            class_=f"fig {style}".strip(),
            width=self.width,
            height=self.height,
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            role="img",
            aria_labelledby=f"{name}t",
        )

    def decoration(self, style: str = "") -> Markup:
        """The figure without a name, for places whose text says the same."""
        size = f"0 0 {number(self.width)} {number(self.height)}"
        return tag(
            "svg",
            *self._drawn,
            class_=style or None,
            width=self.width,
            height=self.height,
            viewBox=size,
            aria_hidden="true",
        )


def stroke(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A line element."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def label(x: float, y: float, words: str, style: str = "", anchor: Anchor = "start") -> Markup:
    """A text element."""
    where = None if anchor == "start" else anchor
    return tag("text", words, x=x, y=y, class_=style or None, text_anchor=where)


def dot(x: float, y: float, radius: float, style: str) -> Markup:
    """A circle element."""
    return tag("circle", cx=x, cy=y, r=radius, class_=style)


def hint(words: str, *parts: Markup) -> Markup:
    """Elements with a card of a few lines that is shown over them."""
    return tag("g", *parts, data_tip=words)


def _d(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points)
