"""A figure as SVG: ticks, the plotting area, labels where they cover least, and the figure as its readers get it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from calibrant.plot.scales import Scale
from calibrant.reporting.contents import Band
from calibrant.reporting.drawing.markup import Child, Markup, joined, number, tag
from calibrant.reporting.text import Table
from calibrant.results.estimate import Value

Formatter = Callable[[float], str]


def percent_tick(value: float) -> str:
    """A probability at a tick: 0.3 %, with a no-break space."""
    return f"{100 * value:g} %"


def plain_tick(value: float) -> str:
    """A number at a tick, with separators of thousands."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{round(value, 9):g}"
    return text.replace("-", "\u2212")


Anchor = Literal["start", "middle", "end"]

#: Width from which a figure has room for labels of curves and corners, and that of a figure on a phone.
#: Test: tests/reporting/layout/test_page.py::test_figures_are_drawn_as_before.
ROOMY, NARROW = 400, 352
#: Mean width of a letter of 12 px, for labels that must not touch.
#: Test: tests/reporting/layout/test_page.py::test_figures_are_drawn_as_before.
_LETTER = 6.3


def text_width(text: str) -> float:
    """About how wide a text of 12 px is."""
    return _LETTER * len(text)


#: Space around the plotting area: left, above, right, below.
Margins = tuple[float, float, float, float]


class Canvas:
    """A plotting area with margins; `x` and `y` turn values into places, everything drawn is kept in order."""

    def __init__(self, width: float, height: float, margins: Margins, across: Scale, up: Scale) -> None:
        self.width, self.height = width, height
        self.left, self.top, right, below = margins
        self.plot_width, self.plot_height = width - self.left - right, height - self.top - below
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
    def inside(self) -> Box:
        """Where labels may stand."""
        return Box(self.left + 4, self.top + 4, self.right - 4, self.bottom - 4)

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
        where = None if anchor == "start" else anchor
        self.add(tag("text", words, x=x, y=y, class_=style or None, text_anchor=where))

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
        self.add(tag("rect", x=self.left, y=self.top, class_="frame", width=self.plot_width, height=self.plot_height))

    def x_ticks(self, shown: Formatter = percent_tick, title: str = "", *, most: int = 7, grid: bool = True) -> None:
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

    def marker(self, across: float, value: Value, words: str, *, radius: float = 5, flagged: bool = False) -> list[Box]:
        """Draw a dot with its interval and a card of `words`, at the edge if it lies beyond; what they cover."""
        x, y = self.x(across), min(max(self.y(value.value), self.top), self.bottom)
        parts, boxes = (
            [dot(x, y, radius, "dotb" if flagged else "dot")],
            [Box(x - radius, y - radius, x + radius, y + radius)],
        )
        if value.low is not None and value.high is not None:
            top, end = self.y(value.high), self.y(value.low)
            parts.insert(0, stroke(x, top, x, end, "whb" if flagged else "wh"))
            boxes.append(Box(x - 2, top, x + 2, end))
        self.clipped(hint(words, *parts))
        return boxes

    def name(
        self, words: str, line: Sequence[tuple[float, float]], blocked: list[Box], style: str, inside: Box | None = None
    ) -> None:
        """Write the name of a line near it, where it covers least; the name is then among what is `blocked`."""
        wide = words if style == "halo" else f"{words}  "  # bold letters are wider
        place = least_covered(wide, line, blocked, inside or self.inside)
        if place is not None:
            self.text(*place, words, style)
            blocked.append(Box.of_text(*place, wide))

    def svg(self, title: str, style: str = "") -> Markup:
        """The whole figure; `title` names it for those who do not see it."""
        inside = joined(self._drawn)
        # The page shows the same figure more than once, so names must differ by what is drawn and for which width.
        name = f"f{zlib.crc32(f'{title}{style}{inside}'.encode()):08x}"
        area = tag("rect", x=self.left, y=self.top, width=self.plot_width, height=self.plot_height)
        body = Markup(inside.replace("url(#CLIP)", f"url(#{name}c)"))
        clip = tag("clipPath", area, id=f"{name}c") if "url(#" in body else None
        words = {"role": "img", "aria_labelledby": f"{name}t"}
        return self._element(tag("title", title, id=f"{name}t"), clip, body, class_=f"fig {style}".strip(), **words)

    def decoration(self, style: str = "") -> Markup:
        """The figure without a name, for places whose text says the same."""
        return self._element(*self._drawn, class_=style or None, aria_hidden="true")

    def _element(self, *parts: Child, class_: str | None, **words: str) -> Markup:
        size = f"0 0 {number(self.width)} {number(self.height)}"
        return tag("svg", *parts, class_=class_, width=self.width, height=self.height, viewBox=size, **words)


def stroke(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A line element."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def dot(x: float, y: float, radius: float, style: str) -> Markup:
    """A circle element."""
    return tag("circle", cx=x, cy=y, r=radius, class_=style)


def hint(words: str, *parts: Markup) -> Markup:
    """Elements with a card of a few lines that is shown over them."""
    return tag("g", *parts, data_tip=words)


def _d(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points)


#: Height of a line of text above and below its baseline, and how far from its curve a label may stand.
#: Test: tests/reporting/layout/test_page.py::test_figures_are_drawn_as_before.
_RISE, _FALL = 11.0, 4.0
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
    """Start and baseline for a label near a curve, where it covers the fewest boxes; None where it never fits."""
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


@dataclass(frozen=True)
class Figure:
    """A figure for a desk and for a phone, a title on what is seen, and its equivalent in words and numbers."""

    svg_wide: Markup
    svg_narrow: Markup
    title: str
    text: str
    table: Table | None = None

    @classmethod
    def of(
        cls, draw: Callable[[float], Canvas], wide: float, name: str, title: str, text: str, table: Table | None = None
    ) -> Figure:
        """What `draw` draws at a width for a desk and at one for a phone; `name` is for those who do not see it."""
        return cls(draw(wide).svg(name, "wide"), draw(NARROW).svg(name, "narrow"), title, text, table)
