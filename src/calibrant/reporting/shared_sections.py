"""Sections that reports of several kinds of predictions have: groups and time; and the order of all sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from calibrant.reporting.assembling import Assembly, Options
from calibrant.reporting.contents import (
    BinCounts,
    Classes,
    Facts,
    Groups,
    OverTime,
    Recalibration,
    Reliability,
    Section,
    Shares,
    Spread,
)
from calibrant.reporting.names import name_of_map
from calibrant.reporting.part import Part
from calibrant.reporting.sections.groups import group_section
from calibrant.reporting.sections.how_to_apply import binary_code, commands
from calibrant.reporting.sections.over_time import over_time
from calibrant.reporting.sections.periods import periods
from calibrant.reporting.sections.recalibration import recalibrated
from calibrant.reporting.sections.since_change import since
from calibrant.reporting.verdicts.evidence import Shared
from calibrant.reporting.verdicts.several_tests import Evidence, judged_together
from calibrant.reporting.verdicts.severity import changed
from calibrant.table.bintable import merge

#: As a reader meets them.
READING_ORDER = (Reliability, Spread, Shares, Classes, OverTime, Groups, Recalibration, BinCounts)


def in_reading_order(made: Assembly) -> tuple[Section, ...]:
    """The sections made, ordered for reading."""
    return tuple(sorted(made.sections, key=lambda section: READING_ORDER.index(type(section))))


def group_sections(made: Assembly, data: Any, options: Options, *, after: Any = None) -> tuple[Groups, ...]:
    """One section per column; columns that cannot be grouped say why."""
    found = []
    for column, by in options.by:
        name = f"Groups by {column}" if column else "Groups"
        section = made.add(name, partial(group_section, data, by, column=column or "group", after=after))
        if section is not None:
            found.append(section)
    return tuple(found)


def method_notes(known: Shared, *own: str) -> tuple[str, ...]:
    """Notes on the method: those of one kind of report, and how its tests were adjusted for each other."""
    if len(known.adjusted) < 2:
        return own
    together = (
        f"The {len(known.adjusted)} tests of this report are adjusted for each other (Holm), so that a calibrated "
        "model is called miscalibrated in at most 5 % of reports. P-values of groups hold that adjustment; those of "
        "all rows and of a change over time are shown without it."
    )
    return (*own, together)


def shared_facts(known: Shared, options: Options, **own: Any) -> Facts:
    """The line of facts that every kind of report has, with those of its own; what is not known is left out."""
    return Facts(
        rows=known.n,
        row=known.words.row,
        event=known.words.event,
        effective_rows=known.effective_n,
        clusters=known.clusters,
        period=period(known.over_time),
        model=options.model,
        source=options.source,
        **own,
    )


def period(time: OverTime | None) -> str | None:
    """The first and last period."""
    if time is None or not time.periods:
        return None
    first, last = time.periods[0].name, time.periods[-1].name
    return first if first == last else f"{first} to {last}"


def with_readers_names(made: Recalibration | None) -> Recalibration | None:
    """The section with the names of maps that readers know, not those of classes."""
    if made is None:
        return None
    maps = tuple(replace(one, name=name_of_map(one.name)) for one in made.maps)
    return replace(made, maps=maps)


def judged(known: Evidence, made: Assembly) -> Evidence:
    """The evidence, and the sections, after the tests of the report were adjusted for each other."""
    found = judged_together(known)
    kept = [*known.groups, known.over_time]
    new = [*found.groups, found.over_time]
    for old, section in zip(kept, new, strict=True):
        if old is not None and section is not None:
            made.sections = [section if one is old else one for one in made.sections]
    return found


def time_section(made: Assembly, data: Any, options: Options) -> OverTime | None:
    """Observed and expected events in order of time, if the user gave the time of each row."""
    if options.time is None:
        return None
    column, values = options.time
    return made.add("Over time", lambda: over_time(data, values, column=column or "time"))


def with_recent_map(made: Recalibration, data: Any, options: Options, time: OverTime | None) -> Recalibration:
    """The section with the best map fitted and judged on the rows since the change over time, if there was one.

    It is the one that readers are told to use, so that the command and the code fit it to those rows.
    """
    change = changed(time)
    if change is None or time is None or options.time is None:
        return made
    column, values = options.time
    if isinstance(values, Mapping):
        some: Any = merge(list(values.values())[change.first :])
    else:
        some = data.take(periods(values, name="time", length=len(data)).index >= change.first)
    best = recalibrated(Part(some, options.seed))[0].maps[0]
    start = since(column, values, change.first)
    return replace(
        made,
        recent=replace(best, name=name_of_map(best.name)),
        command=commands(best.name, "--prob p", since=start),
        code=binary_code(best.name, since=start),
    )
