"""The block of an audit: segments as a forest of gaps, and what features are worth as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from calibrant.plot.scales import Scale
from calibrant.reporting.contents import Audited, Contents
from calibrant.reporting.drawing.canvas import Canvas, Figure, text_width
from calibrant.reporting.drawing.markup import Child, joined, tag
from calibrant.reporting.drawing.table_cells import FLAGGED, Forest
from calibrant.reporting.layout.elements import Block, both_widths, pill, plain_table, quiet, text_fold, with_interval
from calibrant.reporting.names import listed, shortened
from calibrant.reporting.rounding import fixed, mapped, p_number, percent, value_column
from calibrant.reporting.text import Table
from calibrant.results.estimate import Value

#: Widths of the column of gaps at a desk and on a phone, and height of a bar with the gap below it.
#: Test: tests/reporting/layout/test_audit.py::test_the_blocks_are_drawn_as_before.
_WIDE, _NARROW, _BAR = 250, 128, 26


def audit_block(section: Audited, _: Contents | None = None) -> Iterator[Block]:
    """Where predictions are off, and which features tell."""
    if section.segments:
        yield _segments(section)
    else:
        lead = f"{section.sentence} No segment was confirmed on rows that were not used to find it."
        yield Block("where", "Where, for whom", "No segment is confirmed to be off", lead, joined([]))
    if section.features:
        yield _features(section)


def _segments(section: Audited) -> Block:
    rows = section.segments
    gaps = [mapped(one.observed, lambda end, one=one: 100 * (end - one.predicted)) for one in rows]  # type: ignore[misc]
    forest = Forest.of_differences(gaps)
    heads = (forest.head(_WIDE, "← predictions too high", "too low →"), forest.head(_NARROW, "← high", "low →"))
    name = tag("span", "Observed minus predicted, points", class_="vh")
    largest = max(one.share for one in rows)
    drawn = [
        both_widths(*(forest.cell(gap, FLAGGED, width=width, size=one.share / largest) for width in (_WIDE, _NARROW)))
        for one, gap in zip(rows, gaps, strict=True)
    ]
    observed = value_column([one.observed for one in rows], scale=100, least=1)
    cells = [
        (
            one.name,
            f"{fixed(100 * one.share, 1)} %",
            fixed(100 * one.predicted, 1),
            with_interval(seen, hide=True),
            picture,
            pill(one.direction, "bad"),
            p_number(one.adjusted),
        )
        for one, seen, picture in zip(rows, observed, drawn, strict=True)
    ]
    head: tuple[Child, ...] = (
        "Segment", "Share of rows", joined(["Predicted,", tag("br"), "%"]),
        joined(["Observed,", tag("br"), "%", quiet(" (95 % interval)", "hide")]), joined([name, both_widths(*heads)]),
        "Predictions are", "Adjusted p",
    )  # fmt: skip
    styles = ("name", "n hide", "n", "n nw", "g", "dir hide", "n hide")
    table = plain_table(head, cells, styles, "forest", row_styles=["hit"] * len(rows))
    title = f"{len(rows)} {'segment is' if len(rows) == 1 else 'segments are'} confirmed to be off"
    lead = (
        f"{section.sentence} Segments were found on one half of the rows; every number is from the other half. The gap "
        "is observed minus predicted, in points; marker area shows the share of rows. Segments may overlap."
    )
    said = (
        f"{one.name}: predicted {fixed(100 * one.predicted, 1)} %, observed {value} %, "
        f"{fixed(100 * one.share, 1)} % of rows"
        for one, (value, _) in zip(rows, observed, strict=True)
    )
    body = joined([tag("figure", table, text_fold("Figure as text", tag("p", "; ".join(said) + ".")))])
    return Block("where", "Where, for whom", title, lead, body, tag("div", table, class_="scroll"))


def _features(section: Audited) -> Block:
    rows = [(name, percent(value).with_ends(" %")) for name, value in section.features]
    table = Table("Features", ("Feature", "Rise of the log loss"), rows)
    text = (
        "By how much the log loss of held-out rows rises when one feature is shuffled, in percent. Correlated features "
        "share the credit arbitrarily."
    )
    title = f"Features that matter most: {listed([name for name, _ in rows[:3]])}"
    draw = partial(_bars, section.features)
    return Block.of("features", "Features", Figure.of(draw, 760, "Importance of features.", title, text, table), text)


def _bars(features: Sequence[tuple[str, Value]], width: float) -> Canvas:
    names = [shortened(name, 28) for name, _ in features]
    left = min(max(map(text_width, names)) + 12, width / 2)
    largest = max(value.value for _, value in features)
    canvas = Canvas(width, _BAR * len(features) + 8, (left, 4, 60, 4), Scale(0.0, largest), Scale(0.0, 1.0))
    for k, (name, (_, value)) in enumerate(zip(names, features, strict=True)):
        top = 4 + _BAR * k
        canvas.text(left - 8, top + 16, name, "", "end")
        end = max(canvas.x(value.value), canvas.left + 1)
        canvas.add(tag("rect", x=canvas.left, y=top + 5, width=end - canvas.left, height=14, class_="barm"))
        canvas.text(end + 6, top + 16, f"{percent(value).value} %")
    return canvas
