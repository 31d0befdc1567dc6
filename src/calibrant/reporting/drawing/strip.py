"""The class strip: observed minus predicted by class and range of probability, as a table with coloured cells."""

from __future__ import annotations

import math
from statistics import NormalDist

from calibrant.reporting.contents import Classes
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.drawing.ranges import score_range
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import MINUS, count, fixed, rate

#: Cells with fewer rows show a dash.
FEWEST = 20
#: Shades of either colour.
SHADES = 8
#: Probability that any cell of a calibrated model is bold, at most.
_LEVEL = 0.05

Cell = tuple[float, float, float, float]


def strip_table(section: Classes, row: str) -> Markup:
    """One row per shown class, one column per range of predicted probability in which any class has enough rows."""
    shown = section.cells[: section.shown]
    kept = [k for k in range(len(section.ranges)) if any(cells[k][0] >= FEWEST for cells in shown)]
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
    table = tag(
        "table",
        tag("thead", tag("tr", tag("td", tag("span", "Class", class_="vh")), *head)),
        tag("tbody", *body),
        class_="heat",
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Gaps by class")


def bold_limit(section: Classes) -> float:
    """Standardised gaps beyond this are bold: adjusted for the number of cells with enough rows."""
    tested = sum(cell[0] >= FEWEST for cells in section.cells for cell in cells)
    return NormalDist().inv_cdf(1 - _LEVEL / (2 * max(tested, 1)))


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
    high = [cell for _, bounds, cell in shown if bounds[0] >= 0.5]
    low = [cell for _, bounds, cell in shown if bounds[1] <= 0.2]
    if high and low and all(_gap(c) < 0 for c in high) and sum(_gap(c) > 0 for c in low) > 0.8 * len(low):
        return "High probabilities are too high, low ones too low"
    if high and low and all(_gap(c) > 0 for c in high) and sum(_gap(c) < 0 for c in low) > 0.8 * len(low):
        return "High probabilities are too low, low ones too high"
    name, (first, last), worst = max(shown, key=lambda found: abs(_gap(found[2])))
    rows, observed, expected, _ = worst
    return (
        f"{name} is off most {score_range(first, last, of='from ')}: {rate(expected / rows)} predicted, "
        f"{rate(observed / rows)} observed"
    )


def _cell(cell: Cell, where: str, row: str, largest: float, limit: float) -> Markup:
    rows, observed, expected, _ = cell
    if rows < FEWEST:
        return tag("td", "–", class_="cell few")
    gap, bold = _gap(cell), beyond_chance(cell, limit)
    shade = min(SHADES, math.ceil(SHADES * abs(gap) / largest)) if bold else min(1, math.ceil(abs(gap) / largest))
    style = f"cell {'pos' if gap < 0 else 'neg'}{shade}{' sure' if bold else ''}"
    words = (
        f"{where}\n{count(rows)} {plural(row, rows)}\nmean predicted {rate(expected / rows)}, observed "
        f"{rate(observed / rows)}"
    )
    return tag("td", _signed(100 * gap), class_=style, data_tip=words)


def _gap(cell: Cell) -> float:
    return (cell[1] - cell[2]) / cell[0] if cell[0] else 0.0


def _signed(gap: float) -> str:
    if abs(gap) < 0.05:
        return "0.0"
    text = fixed(abs(gap), 1 if abs(gap) < 10 else 0)
    return f"{'+' if gap > 0 else MINUS}{text}"
