"""The figures that a notebook shows: one for each section that says something of its own."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Classes, Contents, Groups, OverTime, Reliability, Shares, Spread
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.drawing.over_time import over_time_figure
from calibrant.reporting.drawing.reliability import CONFIDENCE, PROBABILITIES, reliability_figure
from calibrant.reporting.drawing.shares import shares_figure
from calibrant.reporting.drawing.spread import coverage_figure, spread_figure
from calibrant.reporting.drawing.strip import strip_table, strip_title
from calibrant.reporting.drawing.titles import groups_title
from calibrant.reporting.layout.elements import drawn, rejected
from calibrant.reporting.layout.group_table import group_table

#: Groups that a notebook shows, those with the most evidence first.
_GROUPS = 20


def main_figures(contents: Contents) -> Iterator[tuple[str, Markup]]:
    """A title and a figure or table for each section, in reading order."""
    significant = rejected(contents)
    spread = contents.kind == "regression"
    for section in contents.sections:
        match section:
            case Reliability():
                wording = CONFIDENCE if contents.kind in ("top label", "classes") else PROBABILITIES
                axis = section.axis
                figure = reliability_figure(section, contents.facts, axis, significant=significant, wording=wording)
                yield figure.title, tag("figure", drawn(figure))
            case OverTime():
                figure = over_time_figure(section, contents.facts, spread=spread)
                yield figure.title, tag("figure", drawn(figure))
            case Groups():
                chosen = {id(row) for row in sorted(section.rows, key=lambda row: row.p_value)[:_GROUPS]}
                rows = [row for row in section.rows if id(row) in chosen]
                title = groups_title(section, contents.facts.event, spread=spread)
                yield title, tag("div", group_table(rows, section.column, spread=spread), class_="scroll")
            case Classes() if section.ranges:
                yield strip_title(section), strip_table(section, contents.facts.row)
            case Spread():
                figures = [spread_figure(section, significant=significant)] if section.bins else []
                figures += [coverage_figure(section)] if section.coverage else []
                if figures:
                    yield figures[0].title, tag("div", *(tag("figure", drawn(f)) for f in figures), class_="pair")
            case Shares():
                figure = shares_figure(section)
                yield figure.title, tag("figure", drawn(figure))
            case _:
                continue
