"""Groups or classes as a table with a column of intervals drawn on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from calibrant.reporting.contents import GroupRow
from calibrant.reporting.drawing.forest import FLAGGED, QUIET, Forest
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.layout.elements import pill, quiet, with_interval
from calibrant.reporting.rounding import count, p_number, value_column

#: Widths of the column of intervals at a desk and on a phone.
_WIDE, _NARROW = 250, 128
#: Names up to this length stay on one line.
_SHORT = 24


class _Column(NamedTuple):
    head: Child
    style: str
    cells: Sequence[Child]


def group_table(rows: Sequence[GroupRow], column: str, *, spread: bool = False) -> Markup:
    """One line per group or class; the ratio is drawn with its interval, flagged ones in red.

    Columns that a phone has no room for are hidden there.
    """
    columns = [_Column(column.replace("_", " ").capitalize(), "name", [row.name for row in rows])]
    # Classes share all rows: what tells them apart is how often each occurred.
    shared = len({row.n for row in rows}) == 1 < len(rows) and rows[0].observed is not None
    if not shared:
        columns.append(_Column("Rows", "n hide", [count(row.n) for row in rows]))
    if any(row.observed is not None for row in rows):
        columns.append(_Column("Observed", "n hide", [_known(row.observed) for row in rows]))
        columns.append(_Column("Expected", "n hide", [_known(row.expected) for row in rows]))
    columns.append(_drawn(rows, [(row.observed or 0.0) if shared else row.n for row in rows], spread=spread))
    ratios = value_column([row.ratio for row in rows], least=2, apart=1.0)
    head = joined(["Ratio" if spread else "O:E", quiet(" (95 % interval)", "hide")])
    columns.append(_Column(head, "n nw", [with_interval(found, hide=True) for found in ratios]))
    if not spread:
        errors = value_column([row.error for row in rows], scale=100, at_most=True)
        words = "Error, points (95 % interval)"
        columns.append(_Column(words, "n nw hide", [with_interval(found) for found in errors]))
    columns.append(_Column("Direction", "dir", [_direction(row) for row in rows]))
    columns.append(_Column("Adjusted p", "n hide", [p_number(row.p_value) if row.judged else "–" for row in rows]))
    names = [tag("th", c.head, scope="col", class_=c.style) for c in columns]
    body = [_line(row, [(c.style, c.cells[k]) for c in columns]) for k, row in enumerate(rows)]
    return tag("table", tag("thead", tag("tr", *names)), tag("tbody", *body), class_="forest")


def _drawn(rows: Sequence[GroupRow], sizes: Sequence[float], *, spread: bool) -> _Column:
    forest = Forest.of_ratios([row.ratio for row in rows])
    ends = ("← too wide", "too narrow →") if spread else ("← predictions too high", "too low →")
    short = ("← wide", "narrow →") if spread else ("← high", "low →")
    name = tag("span", "Error-to-spread ratio" if spread else "Observed to expected", class_="vh")
    head = joined([name, _both(forest.head(_WIDE, *ends), forest.head(_NARROW, *short))])
    largest = max(sizes) or 1.0
    cells = []
    for row, size in zip(rows, sizes, strict=True):
        style = FLAGGED if row.flagged else QUIET
        two = [forest.cell(row.ratio, style, width=width, size=size / largest) for width in (_WIDE, _NARROW)]
        cells.append(_both(*two))
    return _Column(head, "g", cells)


def _both(wide: Markup, narrow: Markup) -> Markup:
    return joined([tag("span", wide, class_="wide"), tag("span", narrow, class_="narrow")])


def _direction(row: GroupRow) -> Markup:
    if row.flagged:
        return pill(row.direction, "bad")
    return pill("not flagged" if row.judged else "too few to judge")


def _line(row: GroupRow, cells: Sequence[tuple[str, Child]]) -> Markup:
    short = " short" if len(row.name) <= _SHORT else ""
    inside = [tag("td", cell, class_=f"{style}{short}" if style == "name" else style) for style, cell in cells]
    return tag("tr", *inside, class_="hit" if row.flagged else "quiet")


def _known(number: float | None) -> str:
    return "" if number is None else count(number)
