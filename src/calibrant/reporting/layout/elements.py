"""Pieces that blocks of the page are made of: figures with their text, keys of diagrams, tables with drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from calibrant.reporting.contents import Bin, Contents, GroupRow, Recalibration, Severity, Threshold
from calibrant.reporting.drawing.canvas import Figure, dot, stroke
from calibrant.reporting.drawing.descriptions import observed_share, range_name, score_range
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.table_cells import FLAGGED, HELPS, QUIET, Forest, share_bar
from calibrant.reporting.names import had_the_event, plural, remaining_error
from calibrant.reporting.rounding import count, mapped, score
from calibrant.reporting.text import Table, covered, gain_heading, group_texts, map_texts

_RICH = re.compile(r"(`[^`]+`|\*\*[^*]+\*\*)")
_SHAPES = {
    "problem": tag("path", d="M7 1 13.4 12.6H.6Z"),
    "caution": tag("path", d="M7 .6 13.4 7 7 13.4.6 7Z"),
    "note": tag("circle", cx=7, cy=7, r=5),
}


@dataclass(frozen=True)
class Block:
    """One section of the page: its anchor, its name in the list of sections, what it shows, and that in a notebook."""

    anchor: str
    name: str
    title: str
    lead: str
    body: Markup
    in_notebook: Markup | None = None

    @classmethod
    def of(cls, anchor: str, name: str, figure: Figure, lead: str, *after: Child, in_notebook: bool = True) -> Block:
        """The section of a figure, with its text and what follows it."""
        body = joined([tag("figure", drawn(figure), as_text(figure)), *after])
        return cls(anchor, name, figure.title, lead, body, tag("figure", drawn(figure)) if in_notebook else None)

    def html(self) -> Markup:
        """The section with its heading."""
        heading = f"{self.anchor}-h"
        title, lead = tag("h2", self.title, id=heading), tag("p", self.lead, class_="lead") if self.lead else None
        return tag("section", title, lead, self.body, id=self.anchor, aria_labelledby=heading)


def rich(text: str) -> Markup:
    """A text with `code` and **bold** words."""
    parts: list[Child] = []
    for part in _RICH.split(text):
        if part.startswith("`") and len(part) > 2:
            parts.append(tag("code", part[1:-1]))
        elif part.startswith("**") and len(part) > 4:
            parts.append(tag("b", part[2:-2]))
        else:
            parts.append(part)
    return joined(parts)


def icon(severity: Severity) -> Markup:
    """A shape for a severity: triangle, diamond or dot, so that colour is not needed to tell them."""
    return tag("svg", _SHAPES[severity], class_=f"ic {severity}", viewBox="0 0 14 14", aria_hidden="true")


def drawn(figure: Figure) -> Markup:
    """A figure in both widths; the style sheet shows one."""
    return joined([figure.svg_wide, figure.svg_narrow])


def as_text(figure: Figure) -> Markup:
    """The fold below a figure: a paragraph and its table."""
    if figure.table is None:
        return text_fold("Figure as text", tag("p", figure.text))
    table = data_table(figure.table.filled(), f"Data: {figure.title}")
    return text_fold("Figure as text and table", tag("p", figure.text), table)


def text_fold(label: str, *parts: Child) -> Markup:
    """A small fold below a figure."""
    return tag("details", tag("summary", label), *parts, class_="alt")


def data_table(table: Table, label: str, styles: Sequence[str] | None = None) -> Markup:
    """A table in a box that scrolls and can be reached by keyboard; without `styles`, numbers after a first column."""
    styles = styles or ["", *("n" for _ in table.columns[1:])]
    inner = plain_table(table.columns, table.rows, styles)
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=label)


def plain_table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    styles: Sequence[str],
    kind: str = "",
    *,
    caption: str = "",
    row_styles: Iterable[str] | None = None,
) -> Markup:
    """A table with a class per column, and per row if given; cells are text or markup."""
    names = [
        tag("th", cell, scope="col", class_=style or None) if cell else tag("td", class_=style or None)
        for cell, style in zip(head, styles, strict=True)
    ]
    cells = [[tag("td", cell, class_=style or None) for cell, style in zip(row, styles, strict=True)] for row in rows]
    each = [None] * len(cells) if row_styles is None else list(row_styles)
    body = [tag("tr", *row, class_=style) for row, style in zip(cells, each, strict=True)]
    above = tag("caption", caption) if caption else None
    return tag("table", above, tag("thead", tag("tr", *names)), tag("tbody", *body), class_=kind or None)


def fold(title: str, *parts: Child) -> Markup:
    """A line that opens what few readers need."""
    return tag("details", tag("summary", title), tag("div", *parts), class_="fold")


def code_box(title: str, text: str) -> Markup:
    """Code to copy."""
    copy = tag("button", "Copy", type="button", class_="copy", aria_label=f"Copy: {title}")
    return tag("div", tag("h3", title), copy, tag("pre", text, tabindex="0"), class_="code")


def callout(strong: str, text: str) -> Markup:
    """A remark beside a table or figure."""
    return tag("p", tag("b", strong), f" {text}", class_="callout gap")


def pill(words: str, kind: str = "") -> Markup:
    """A word in a rounded box."""
    return tag("span", words, class_=f"pill {kind}".strip())


def quiet(text: str, style: str = "q") -> Markup:
    """Words that step back, such as an interval after its value."""
    return tag("span", text, class_=style)


def with_interval(found: tuple[str, str], *, hide: bool = False) -> Markup:
    """A value with its interval after it; `hide` leaves the interval out on a phone."""
    value, ends = found
    return joined([value, quiet(f" ({ends})", "q hide" if hide else "q") if ends else None])


def rejected(contents: Contents) -> bool | None:
    """Whether the test of what the main figure shows rejects; None where it could not be judged.

    Only where it rejects may a title name a direction, and only where it does not may one speak of agreement.
    """
    verdict = contents.verdict
    if verdict.state in ("too few", "cannot be judged"):
        return None
    if verdict.rule == "M2":  # the whole vector is off, the confidence that the diagram shows is not
        return False
    return verdict.state in ("not calibrated", "small")


_DIAGONAL = tag("path", d="M1 13 33 1", class_="ref")
_STEPS = tag("path", d="M1 12H11V8H22V3H33", class_="curve")


def _sample(*parts: Markup, height: float = 14) -> Markup:
    return tag("svg", *parts, width=34, height=height, aria_hidden="true")


def _band(style: str) -> Markup:
    return _sample(tag("rect", width=34, height=14, class_=style))


def _dot() -> Markup:
    return _sample(stroke(17, 0, 17, 18, "wh"), dot(17, 9, 5.5, "dot"), height=18)


def _key(*lines: tuple[Markup, str, str]) -> Markup:
    return tag("ul", *(tag("li", s, tag("span", tag("b", strong), text)) for s, strong, text in lines), class_="key")


_BANDS = (
    (_band("confband"), "Confidence band.", " The true curve lies inside everywhere with 95 % confidence."),
    (_band("nullband"), "Consistency band.", " Where a calibrated model’s curve would lie, 95 % at each score."),
)


def probability_key(row: str, event: str) -> Markup:
    """The diagram of probabilities, in the user's words for one row and one event."""
    perfect = f"scored 10 %, 10 {had_the_event(event)}."
    return _diagram_key(row, perfect, "frequency", ", the best rising curve (CORP, isotonic). No bins to choose.")


def confidence_key(row: str) -> Markup:
    """The diagram of confidence in the predicted class."""
    perfect = "with a confidence of 80 %, 80 are right."
    return _diagram_key(row, perfect, "accuracy", ", the best rising curve (CORP, isotonic).")


def _diagram_key(row: str, perfect: str, what: str, curve: str) -> Markup:
    return _key(
        (_sample(_DIAGONAL), "Perfect calibration.", f" Of 100 {plural(row)} {perfect}"),
        (_sample(_STEPS), f"Observed {what}", curve),
        *_BANDS,
        (_dot(), f"Binned {what}", f" with 95 % interval; the area shows the number of {plural(row)}."),
    )


def implied_key(prior: str) -> Markup:
    """The diagram of shares of positives that the labelled ones imply."""
    words = f" at an assumed total of {prior}, with 95 % sampling interval."
    return _key((_dot(), "Implied share of positives", words), (_sample(_DIAGONAL), "Perfect calibration.", ""))


def map_table(section: Recalibration) -> Markup:
    """The maps, best first: what error remains, and by how much the loss falls."""
    gains = [mapped(m.gain, lambda gain: 100 * gain) for m in section.maps]
    forest = Forest.of_differences(gains)
    what, unit = remaining_error(section.loss)
    head: tuple[Child, ...] = (
        "Map",
        joined([f"Remaining {what},", tag("br"), unit]),
        joined([tag("span", "Improvement", class_="vh"), forest.head(104)]),
        gain_heading(section),
        tag("span", "Effect", class_="vh"),
    )
    rows = []
    for m, gain, (remaining, lower) in zip(section.maps, gains, map_texts(section), strict=True):
        style = HELPS if m.effect in ("best", "helps") else QUIET
        drawn_gain = forest.cell(gain, style, width=104, height=28)
        effect = pill(m.effect, {"best": "ok", "helps": "ok", "makes it worse": "bad"}.get(m.effect, ""))
        rows.append((m.name, with_interval(remaining), drawn_gain, with_interval(lower), effect))
    return plain_table(head, rows, ("name", "n nw", "g hide", "n nw", "hide"), "forest")


def range_table(ranges: Sequence[Bin]) -> Markup:
    """Where the error sits: the share of it that each range of scores carries."""
    rows = []
    for b in ranges:
        share = "" if b.share is None else joined([share_bar(b.share), f" {100 * b.share:.0f} %"])
        rows.append((range_name(b, ranges), count(b.n), score(b.predicted), observed_share(b)[0], share))
    head = ("Predicted", "Rows", "Mean", "Observed", "Share of the error")
    return plain_table(head, rows, ("nw", "n", "n nw", "n nw", "nw"))


def threshold_table(threshold: Threshold) -> Markup:
    """Rows around and above the decision threshold."""
    rows: list[Sequence[Child]] = []
    if threshold.around is not None:
        where = score_range(threshold.around.low, threshold.around.high)
        rows.append((f"Scored {where}", *_predicted_and_observed(threshold.around)))
    if threshold.above is not None:
        rows.append((f"Scored {score(threshold.at)} and above", *_predicted_and_observed(threshold.above)))
    head = (tag("span", "Rows", class_="vh"), "Predicted", "Observed (95 % interval)")
    return plain_table(head, rows, ("", "n nw", "n nw"))


def _predicted_and_observed(b: Bin) -> tuple[Child, Child]:
    value, ends = observed_share(b)
    return score(b.predicted), joined([value, quiet(f" ({ends})") if ends else None])


#: Widths of the column of intervals at a desk and on a phone.
#: Test: tests/reporting/layout/test_page.py::test_figures_are_drawn_as_before.
_WIDE, _NARROW = 250, 128
#: Names up to this length stay on one line.
#: Test: tests/reporting/layout/test_elements.py::test_names_are_escaped_and_long_ones_may_break.
_SHORT = 24


class _Column(NamedTuple):
    head: Child
    style: str
    cells: Sequence[Child]


def group_table(rows: Sequence[GroupRow], column: str, *, spread: bool = False, draws: int | None = None) -> Markup:
    """One line per group or class, flagged ones in red; p-values rank among `draws` simulated samples."""
    found = group_texts(rows, draws)
    # Classes share all rows: what tells them apart is how often each occurred.
    shared = len({row.n for row in rows}) == 1 < len(rows) and rows[0].observed is not None
    names = [tag("span", row.name, class_="short") if len(row.name) <= _SHORT else row.name for row in rows]
    columns = [_Column(column.replace("_", " ").capitalize(), "name", names)]
    if not shared:
        columns.append(_Column("Rows", "n hide", [one.n for one in found]))
    if any(row.observed is not None for row in rows):
        columns.append(_Column("Observed", "n hide", [one.observed for one in found]))
        columns.append(_Column("Expected", "n hide", [one.expected for one in found]))
    columns.append(_drawn(rows, [(row.observed or 0.0) if shared else row.n for row in rows], spread=spread))
    held = covered(rows)
    head = joined(["Coverage" if held else "Ratio" if spread else "O:E", quiet(" (95 % interval)", "hide")])
    columns.append(_Column(head, "n nw", [with_interval(one.ratio, hide=True) for one in found]))
    if not spread:
        words = "Error, points (95 % interval)"
        columns.append(_Column(words, "n nw hide", [with_interval(one.error) for one in found]))
    pills = [pill(one.direction, "bad" if row.flagged else "") for one, row in zip(found, rows, strict=True)]
    columns.append(_Column("Direction", "dir", pills))
    columns.append(_Column("Adjusted p", "n hide", [one.p_value for one in found]))
    heads, styles, cells = zip(*columns, strict=True)
    marks = ["hit" if row.flagged else "quiet" for row in rows]
    return plain_table(heads, zip(*cells, strict=True), styles, "forest", row_styles=marks)


def _drawn(rows: Sequence[GroupRow], sizes: Sequence[float], *, spread: bool) -> _Column:
    held = covered(rows)
    drawn_rows = [mapped(row.ratio, lambda end, row=row: end / row.ideal) for row in rows]  # type: ignore[misc]
    forest = Forest.of_ratios(drawn_rows)
    ends = ("← too wide", "too narrow →") if spread else ("← predictions too high", "too low →")
    short = ("← wide", "narrow →") if spread else ("← high", "low →")
    if held:
        ends, short = ("← too narrow", "too wide →"), ("← narrow", "wide →")
    what = f"Coverage over {held}" if held else "Error-to-spread ratio" if spread else "Observed to expected"
    name = tag("span", what, class_="vh")
    head = joined([name, both_widths(forest.head(_WIDE, *ends), forest.head(_NARROW, *short))])
    largest = max(sizes) or 1.0
    cells = []
    for row, ratio, size in zip(rows, drawn_rows, sizes, strict=True):
        style = FLAGGED if row.flagged else QUIET
        cells.append(both_widths(*(forest.cell(ratio, style, width=w, size=size / largest) for w in (_WIDE, _NARROW))))
    return _Column(head, "g", cells)


def both_widths(wide: Markup, narrow: Markup) -> Markup:
    """What a desk and what a phone shows."""
    return joined([tag("span", wide, class_="wide"), tag("span", narrow, class_="narrow")])
