"""Pieces that every part of the page is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calibrant.reporting.contents import Contents, Severity
from calibrant.reporting.drawing.figure import Figure, Table
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag

_RICH = re.compile(r"(`[^`]+`|\*\*[^*]+\*\*)")
_SHAPES = {
    "problem": tag("path", d="M7 1 13.4 12.6H.6Z"),
    "caution": tag("path", d="M7 .6 13.4 7 7 13.4.6 7Z"),
    "note": tag("circle", cx=7, cy=7, r=5),
}


@dataclass(frozen=True)
class Block:
    """One section of the page: its anchor, its name in the list of sections, and what it shows."""

    anchor: str
    name: str
    title: str
    lead: str
    body: Markup

    def html(self) -> Markup:
        """The section with its heading."""
        heading = f"{self.anchor}-h"
        return tag(
            "section",
            tag("h2", self.title, id=heading),
            tag("p", self.lead, class_="lead") if self.lead else None,
            self.body,
            id=self.anchor,
            aria_labelledby=heading,
        )


def rich(text: str) -> Markup:
    """A text with `code` and **bold** words.

    Examples
    --------
    >>> rich("Use `by_group`. **What to do.** <Nothing>")
    'Use <code>by_group</code>. <b>What to do.</b> &lt;Nothing&gt;'
    """
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
    label = "Figure as text and table" if figure.table is not None else "Figure as text"
    return text_fold(
        label, tag("p", figure.text), None if figure.table is None else data_table(figure.table, figure.title)
    )


def text_fold(label: str, *parts: Child) -> Markup:
    """A small fold below a figure."""
    return tag("details", tag("summary", label), *parts, class_="alt")


def data_table(table: Table, title: str) -> Markup:
    """The numbers of a figure, in a box that scrolls and can be reached by keyboard."""
    styles = ["", *("n" for _ in table.head[1:])]
    inner = plain_table(table.head, table.rows, styles)
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=f"Data: {title}")


def plain_table(
    head: Sequence[Child], rows: Iterable[Sequence[Child]], styles: Sequence[str], kind: str = ""
) -> Markup:
    """A table with a class per column; cells are text or markup."""
    names = [
        tag("th", cell, scope="col", class_=style or None) if cell else tag("td", class_=style or None)
        for cell, style in zip(head, styles, strict=True)
    ]
    body = [
        tag("tr", *(tag("td", cell, class_=style or None) for cell, style in zip(row, styles, strict=True)))
        for row in rows
    ]
    return tag("table", tag("thead", tag("tr", *names)), tag("tbody", *body), class_=kind or None)


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
