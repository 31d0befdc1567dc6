"""A figure for readers: two widths, a title that says what is seen, and the same as text and table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrant.reporting.drawing.canvas import NARROW
from calibrant.reporting.drawing.markup import Markup


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column names the row, the others are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """What is drawn in two widths, what it shows, and its equivalent in words and numbers.

    Attributes
    ----------
    svg_wide, svg_narrow : Markup
        For a desk and for a phone; a style sheet shows one of them.
    title : str
        One sentence on what is seen.
    text : str
        A paragraph for those who do not see the figure.
    table : Table or None
        The numbers behind it.
    """

    svg_wide: Markup
    svg_narrow: Markup
    title: str
    text: str
    table: Table | None = None


def both(draw: Callable[[float, str], Markup], wide: float) -> tuple[Markup, Markup]:
    """The same drawing at a width for a desk and at one for a phone; `draw` takes width and class."""
    return draw(wide, "wide"), draw(NARROW, "narrow")
