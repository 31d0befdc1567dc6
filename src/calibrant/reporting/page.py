"""The report as one self-contained page, and as a fragment for a notebook: the same words, numbers and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.layout import top
from calibrant.reporting.layout.blocks import blocks, omitted_block
from calibrant.reporting.layout.details import details_block
from calibrant.reporting.layout.elements import Block
from calibrant.reporting.layout.main_figures import main_figures
from calibrant.reporting.layout.sheet import footer, fragment_style, sheet

if TYPE_CHECKING:
    from calibrant.reporting.model import Report


def page(report: Report) -> str:
    """The whole HTML text: it loads nothing, sends nothing, and works with scripts off."""
    contents = report.contents
    made: list[Block | None] = [
        top.findings(report.findings),
        *blocks(contents),
        omitted_block(contents),
        details_block(report),
    ]
    shown = [block for block in made if block is not None]
    main = tag(
        "main",
        top.verdict(contents.verdict, contents.facts.event),
        top.numbers(contents.numbers),
        top.contents_list(shown),
        *(block.html() for block in shown),
        id="main",
    )
    return sheet(f"{report.title}: calibration report", top.header(contents, report.title), main, footer())


def fragment(report: Report) -> str:
    """Verdict, numbers, findings and main figures; no script, and a style that reaches nothing outside."""
    contents = report.contents
    parts: list[Child] = [
        fragment_style(),
        tag("p", report.title, class_="title"),
        top.verdict(contents.verdict, contents.facts.event),
        top.numbers(contents.numbers),
        _findings(report),
        *(_shown(title, body) for title, body in main_figures(contents)),
    ]
    return str(tag("div", *parts, class_="calibrant notebook"))


def _findings(report: Report) -> Markup | None:
    if not report.findings:
        return None
    lines = [tag("li", tag("b", finding.code), f" {finding.text}") for finding in report.findings]
    return tag("ul", *lines, class_="found")


def _shown(title: str, body: Markup) -> Markup:
    return joined([tag("h3", title, class_="seen"), body])
