"""Blocks on parts of the rows: periods, groups and classes."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Classes, Contents, Groups, OverTime
from calibrant.reporting.drawing.descriptions import classes_text, groups_text
from calibrant.reporting.drawing.markup import Child, joined, tag
from calibrant.reporting.drawing.over_time import over_time_figure
from calibrant.reporting.drawing.strip import FEWEST, strip_table, strip_title
from calibrant.reporting.drawing.titles import classes_title, groups_title
from calibrant.reporting.layout.elements import Block, as_text, callout, drawn, text_fold
from calibrant.reporting.layout.group_table import group_table
from calibrant.reporting.names import listed, plural

#: A table of groups shows all that are flagged, and others up to this many; the rest is folded.
SHOWN_GROUPS = 20


def over_time_block(section: OverTime, contents: Contents) -> Iterator[Block]:
    """The periods in order, with the change."""
    spread = contents.kind == "regression"
    figure = over_time_figure(section, contents.facts, spread=spread)
    events = plural(contents.facts.event)
    what = "Root mean squared standardised error" if spread else f"Observed divided by expected {events}"
    periods = len(section.periods)
    lead = (
        f"{what} by {section.column.replace('_', ' ')}, with 95 % intervals. Filled red: significant, allowing for "
        f"{periods} periods and the other tests. Grey: where a calibrated model would fall in 95 of 100 periods."
    )
    left = callout("Left out.", section.omitted) if section.omitted else None
    body = joined([tag("figure", drawn(figure), as_text(figure)), left])
    yield Block("time", "Over time", figure.title, lead, body)


def groups_block(section: Groups, contents: Contents) -> Iterator[Block]:
    """A table with a line per group; beyond a number of them, those not flagged are folded."""
    spread = contents.kind == "regression"
    noun = section.column.replace("_", " ")
    flagged = sum(row.flagged for row in section.rows)
    largest = sorted((row for row in section.rows if not row.flagged), key=lambda row: -row.n)
    kept = {id(row) for row in largest[: max(0, SHOWN_GROUPS - flagged)]}
    shown = [row for row in section.rows if row.flagged or id(row) in kept]
    others = [row for row in section.rows if not row.flagged and id(row) not in kept]
    parts: list[Child] = [group_table(shown, section.column, spread=spread)]
    if others:
        table = group_table(others, section.column, spread=spread)
        parts.append(text_fold(f"{len(others)} more {plural(noun, len(others))}, not flagged", table))
    parts.append(text_fold("Figure as text", tag("p", groups_text(section, spread=spread))))
    remaining = [row.name for row in section.rows if row.flagged_after]
    known = any(row.flagged_after is not None for row in section.rows)
    after: list[Child] = []
    if flagged and known:
        who = (
            f"{listed(remaining)} {'remains' if len(remaining) == 1 else 'remain'}"
            if remaining
            else f"no {noun} remains"
        )
        after.append(callout("One map for all.", f"After the best map for all rows, {who} flagged."))
    if section.omitted:
        after.append(callout("Left out.", section.omitted))
    what = "Error-to-spread ratio" if spread else f"Observed divided by expected {plural(contents.facts.event)}"
    tested = sum(row.judged for row in section.rows)
    lead = (
        f"{what} by {noun}; marker area shows rows. Red: miscalibrated, allowing for {tested} "
        f"{plural(noun, tested)} and the other tests ({flagged} of {len(section.rows)})."
    )
    title = groups_title(section, contents.facts.event, spread=spread)
    yield Block("groups", plural(noun).capitalize(), title, lead, joined([tag("figure", *parts), *after]))


def classes_block(section: Classes, contents: Contents) -> Iterator[Block]:
    """Totals by class, then the strip of gaps by class and range of probability."""
    total = len(section.rows)
    lead = "Observed divided by predicted frequency of each class; red: miscalibrated after adjustment for all classes."
    shown = section.rows[: section.shown]
    if section.shown < total:
        lead += f" {section.shown} of {total} classes, largest deviations first."
    figure = tag("figure", group_table(shown, "class"), text_fold("Figure as text", tag("p", classes_text(section))))
    yield Block("classes", "Classes", classes_title(section), lead, figure)
    if not section.ranges:
        return
    cells = sum(cell[0] >= FEWEST for row in section.cells for cell in row)
    about = (
        "Observed minus predicted, in percentage points, by class and predicted probability. Brown: too high. Blue: "
        f"too low. Bold: beyond chance, adjusted for {cells} cells. Dash: fewer than {FEWEST} "
        f"{plural(contents.facts.row)}."
    )
    words = "Every number of the figure is printed in the table above; rows are classes, columns ranges of probability."
    strip = tag("figure", strip_table(section, contents.facts.row), text_fold("Figure as text", tag("p", words)))
    yield Block("strip", "By probability", strip_title(section), about, strip)
