"""One block of the page per section of a report, in the order of its contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from calibrant.reporting.contents import (
    BinCounts,
    Classes,
    Contents,
    Groups,
    OverTime,
    Recalibration,
    Reliability,
    Shares,
    Spread,
)
from calibrant.reporting.drawing.markup import tag
from calibrant.reporting.layout.elements import Block, rich
from calibrant.reporting.layout.group_blocks import classes_block, groups_block, over_time_block
from calibrant.reporting.layout.probability_blocks import bin_counts_block, recalibration_block, reliability_block
from calibrant.reporting.layout.task_blocks import shares_block, spread_block

_MAKERS: dict[type, Callable[[Any, Contents], Iterator[Block]]] = {
    Reliability: reliability_block,
    OverTime: over_time_block,
    Groups: groups_block,
    Recalibration: recalibration_block,
    BinCounts: bin_counts_block,
    Classes: classes_block,
    Spread: spread_block,
    Shares: shares_block,
}


def blocks(contents: Contents) -> list[Block]:
    """The sections as blocks; anchors are unique."""
    seen: Counter[str] = Counter()
    found = []
    for section in contents.sections:
        for block in _MAKERS[type(section)](section, contents):
            seen[block.anchor] += 1
            again = seen[block.anchor]
            found.append(block if again == 1 else replace(block, anchor=f"{block.anchor}-{again}"))
    return found


def omitted_block(contents: Contents) -> Block | None:
    """What could not be shown, and why."""
    if not contents.omitted:
        return None
    lines = [tag("li", tag("b", f"{left.section}: "), rich(left.reason)) for left in contents.omitted]
    return Block("omitted", "Left out", "What is left out", "", tag("ul", *lines, class_="omitted"))
