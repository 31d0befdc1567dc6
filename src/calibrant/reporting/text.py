"""A report in words: plain text for terminals, Markdown for wikis."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.reporting.contents import Contents
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, no_break, rate
from calibrant.reporting.tables import tables
from calibrant.results.printable import printable

if TYPE_CHECKING:
    from calibrant.reporting.model import Report

_MARKS = {"problem": "!!", "caution": "!", "note": "-"}
#: Columns of a terminal.
_WIDTH = 100

_STATES = {
    "not calibrated": "Not calibrated",
    "small": "Significant but small",
    "not significant": "No significant miscalibration",
    "too few": "Too few to judge",
    "cannot be judged": "Cannot be judged",
}


def facts(contents: Contents) -> str:
    """The line of facts; what is not known is left out."""
    known = contents.facts
    said = [f"{count(known.rows)} {plural(known.row, known.rows)}"]
    confidence, unlabeled = contents.kind in ("top label", "classes"), contents.kind == "unlabeled"
    if known.classes is not None:
        said.append(f"{count(known.classes)} classes")
    if known.events is not None:
        what = plural("labelled positive" if unlabeled else known.event, known.events)
        share = f" ({rate(known.base_rate)})" if known.base_rate is not None and not unlabeled else ""
        said.append(f"{count(known.events)} {what}{share}")
    elif known.base_rate is not None:
        said.append(f"accuracy {rate(known.base_rate)}" if confidence else f"base rate {rate(known.base_rate)}")
    if unlabeled and known.base_rate is not None:
        said.append(f"assumed share of positives {rate(known.base_rate)}")
    if known.mean_prediction is not None:
        said.append(f"mean {'confidence' if confidence else 'prediction'} {rate(known.mean_prediction)}")
    if known.effective_rows is not None:
        said.append(f"effective number {count(known.effective_rows)}")
    if known.clusters is not None:
        said.append(f"{count(known.clusters)} groups of dependent rows")
    said += [text for text in (known.period, known.model, known.source) if text]
    return printable(" · ".join(said))


def answers(contents: Contents) -> list[tuple[str, str]]:
    """The three short answers that there are."""
    found = contents.verdict
    given = [("How sure", found.how_sure), ("What it means", found.what_it_means), ("What to do", found.what_to_do)]
    return [(name, printable(text)) for name, text in given if text]


def plain(report: Report) -> str:
    """For a terminal."""
    title, contents = printable(report.title), report.contents
    found = contents.verdict
    lines = [title, "=" * len(title), facts(contents), ""]
    lines += [f"{_MARKS[found.severity]} {_STATES[found.state]}", *_wrapped(printable(str(found)), "   "), ""]
    for name, text in answers(contents):
        lines += _wrapped(f"{name + ':':<15}{text}", "", hang=15)
    lines += [""] if answers(contents) else []
    if report.findings:
        lines.append("Findings")
        for finding in report.findings:
            lines += _wrapped(f"{_MARKS[finding.severity]:>2} {finding.code}  {printable(finding.text)}", "  ", hang=11)
        lines.append("")
    for heading, columns, rows, note in tables(report):
        lines += [heading, *_aligned([columns, *rows]), *([f"  {note}"] if note else []), ""]
    if contents.omitted:
        lines.append("Not in this report")
        for left in contents.omitted:
            lines += _wrapped(f"{printable(left.section)}: {printable(left.reason)}", "  ")
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def markdown(report: Report) -> str:
    """For a wiki or a pull request."""
    contents = report.contents
    found = contents.verdict
    lines = [f"# {_cell(report.title)}", "", _cell(facts(contents)), ""]
    lines += [
        f"**{_STATES[found.state]}. {_cell(found.sentence)}**{f' {_cell(found.second)}' if found.second else ''}",
        "",
    ]
    lines += [f"- **{name}.** {_cell(text)}" for name, text in answers(contents)]
    if report.findings:
        lines += ["", "## Findings", "", *(f"- **{f.code}** ({f.severity}) {_cell(f.text)}" for f in report.findings)]
    for heading, columns, rows, note in tables(report):
        lines += ["", f"## {_cell(heading)}", "", _row(columns), _row(["---"] * len(columns)), *map(_row, rows)]
        lines += ["", _cell(note)] if note else []
    if contents.omitted:
        lines += ["", "## Not in this report", ""]
        lines += [f"- {_cell(left.section)}: {_cell(left.reason)}" for left in contents.omitted]
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(text: str, indent: str, *, hang: int = 0) -> list[str]:
    """Lines; a sign of percent stays with its number."""
    lines = textwrap.wrap(
        no_break(text), _WIDTH, initial_indent=indent, subsequent_indent=indent + " " * hang, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\u00a0", " ") for line in lines]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [lines[0], "  " + "-" * (len(lines[0]) - 2), *lines[1:]]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """Text that cannot break out of a Markdown table or begin a tag."""
    return printable(text.replace("\n", " ")).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
