"""The report as one self-contained page, and as a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.layout import top
from calibrant.reporting.layout.blocks import blocks, omitted_block
from calibrant.reporting.layout.elements import Block, plain_table
from calibrant.reporting.layout.sheet import footer, fragment_style, sheet
from calibrant.reporting.model import Report
from calibrant.reporting.tables import estimates_table, tests_table


def page(report: Report) -> str:
    """The whole HTML text."""
    contents = report.contents
    made = [
        block for block in (top.findings(report.findings), *blocks(contents), *_details(report)) if block is not None
    ]
    left = omitted_block(contents)
    made += [] if left is None else [left]
    return sheet(
        f"{report.title}: calibration report",
        top.header(contents, report.title),
        top.facts(contents),
        tag("main", *_first_screen(report), top.contents_list(made), *(block.html() for block in made), id="main"),
        footer(),
    )


def fragment(report: Report) -> str:
    """The verdict and the figures for a notebook, without scripts."""
    return str(
        tag(
            "div",
            fragment_style(),
            *_first_screen(report),
            *(b.html() for b in blocks(report.contents)),
            class_="calibrant",
        )
    )


def _first_screen(report: Report) -> Iterator[Child]:
    contents = report.contents
    yield top.verdict(contents.verdict, contents.facts.event)
    yield top.numbers(contents.numbers)


def _details(report: Report) -> Iterator[Block]:
    tables = [table for table in (estimates_table(report), tests_table(report)) if table.rows]
    if tables:
        body = joined([plain_table(t.columns, t.rows, ("",) * len(t.columns)) for t in tables])
        yield Block("details", "Details", "Details", "", Markup(body))
