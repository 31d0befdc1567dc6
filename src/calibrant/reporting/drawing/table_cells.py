"""Drawings in cells of tables: intervals on an axis that all rows share, bars, gauges, and gaps by class and score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from calibrant.plot.scales import Scale, covering
from calibrant.reporting.contents import Classes
from calibrant.reporting.drawing.canvas import Canvas, dot, plain_tick, text_width
from calibrant.reporting.drawing.descriptions import score_range
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import MINUS, count, fixed, numbers_of, score
from calibrant.reporting.verdicts.evidence import ALPHA
from calibrant.results.estimate import Value

#: Margins of a drawing in a cell. Derived: the cell has its own.
_NONE = (0.0, 0.0, 0.0, 0.0)
_UNIT = Scale(0.0, 1.0)
#: Ratios beyond these are drawn at the edge.
#: Test: tests/reporting/drawing/test_table_cells.py::test_ratios_far_from_one_are_drawn_at_the_edge.
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
        scale = covering([min(max(v, _LEAST), _MOST) for v in numbers_of(values)], "log", include=[1.0])
        return cls(scale, 1.0, scale.ticks(most))

    @classmethod
    def of_differences(cls, values: Sequence[Value], *, most: int = 4) -> Forest:
        """A linear axis around 0."""
        scale = covering(numbers_of(values), "linear", include=[0.0])
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
            left, right = (canvas.x(self.scale.within(end)) for end in (value.low, value.high))
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
    scale = _gauge_scale(numbers_of([number_]), ideal, log=log)
    canvas = Canvas(width, 46, (4, 4, 4, 20), scale, _UNIT)
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


#: Cells with fewer rows show a dash.
#: Test: tests/reporting/drawing/test_table_cells.py::test_cells_of_fewer_than_twenty_rows_show_a_dash.
FEWEST = 20
#: Shades of either colour, as many as the style sheet has.
#: Test: tests/reporting/drawing/test_table_cells.py::test_cells_show_the_gap_in_points.
SHADES = 8

Cell = tuple[float, float, float, float]


def strip_table(section: Classes, row: str) -> Markup:
    """One row per shown class, and the columns of `strip_columns`."""
    shown = section.cells[: section.shown]
    kept = strip_columns(section)
    largest = max((abs(_gap(cell)) for cells in shown for cell in cells if cell[0] >= FEWEST), default=1.0)
    limit = bold_limit(section)
    head = [tag("th", score_range(*section.ranges[k]), class_="c", scope="col") for k in kept]
    body = []
    for group, cells in zip(section.rows, shown, strict=False):
        parts = [tag("th", group.name, class_="r", scope="row")]
        for k in kept:
            where = f"{group.name}, predicted {score_range(*section.ranges[k])}"
            parts.append(_cell(cells[k], where, row, largest or 1.0, limit))
        body.append(tag("tr", *parts))
    above = tag("thead", tag("tr", tag("td", tag("span", "Class", class_="vh")), *head))
    table = tag("table", above, tag("tbody", *body), class_="heat")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Gaps by class")


def strip_columns(section: Classes) -> list[int]:
    """The ranges of probability in which a shown class has enough rows and a gap that its number shows."""
    shown = section.cells[: section.shown]
    numbers = range(len(section.ranges))
    return [k for k in numbers if any(c[k][0] >= FEWEST and _signed(100 * _gap(c[k])) != "0.0" for c in shown)]


def bold_limit(section: Classes) -> float:
    """Standardised gaps beyond this are bold: by Bonferroni's adjustment for the number of cells with enough rows."""
    tested = sum(cell[0] >= FEWEST for cells in section.cells for cell in cells)
    return NormalDist().inv_cdf(1 - ALPHA / (2 * max(tested, 1)))


def beyond_chance(cell: Cell, limit: float) -> bool:
    """Whether the gap of a cell is larger than chance explains."""
    rows, observed, expected, variance = cell
    return rows >= FEWEST and abs(observed - expected) > limit * math.sqrt(max(variance, 1e-12))


def strip_title(section: Classes, label: str = "class") -> str:
    """Whether high probabilities are too high (or too low), or which cell is off most."""
    limit = bold_limit(section)
    shown = [
        (group.name, bounds, cell)
        for group, cells in zip(section.rows, section.cells, strict=False)
        for bounds, cell in zip(section.ranges, cells, strict=True)
        if beyond_chance(cell, limit)
    ]
    if not shown:
        return f"No {label} differs from its predictions beyond chance at any range of probability"
    high = [_gap(cell) for _, bounds, cell in shown if bounds[0] >= 0.5]
    low = [_gap(cell) for _, bounds, cell in shown if bounds[1] <= 0.2]
    for side, above, below in ((-1, "high", "low"), (1, "low", "high")):
        if high and low and all(side * g > 0 for g in high) and sum(side * g < 0 for g in low) > 0.8 * len(low):
            return f"High probabilities are too {above}, low ones too {below}"
    name, ends, (rows, observed, expected, _) = max(shown, key=lambda found: abs(_gap(found[2])))
    seen = f"{score(expected / rows)} predicted, {score(observed / rows)} observed"
    return f"{name} is off most {score_range(*ends, of='from ')}: {seen}"


def _cell(cell: Cell, where: str, row: str, largest: float, limit: float) -> Markup:
    rows, observed, expected, _ = cell
    if rows < FEWEST:
        return tag("td", "–", class_="cell few")
    gap, bold = _gap(cell), beyond_chance(cell, limit)
    shade = min(SHADES, math.ceil(SHADES * abs(gap) / largest)) if bold else min(1, math.ceil(abs(gap) / largest))
    style = f"cell {'pos' if gap < 0 else 'neg'}{shade}{' sure' if bold else ''}"
    means = f"mean predicted {score(expected / rows)}, observed {score(observed / rows)}"
    words = f"{where}\n{count(rows)} {plural(row, rows)}\n{means}"
    return tag("td", _signed(100 * gap), class_=style, data_tip=words)


def _gap(cell: Cell) -> float:
    return (cell[1] - cell[2]) / cell[0] if cell[0] else 0.0


def _signed(gap: float) -> str:
    if abs(gap) < 0.05:
        return "0.0"
    text = fixed(abs(gap), 1 if abs(gap) < 10 else 0)
    return f"{'+' if gap > 0 else MINUS}{text}"
