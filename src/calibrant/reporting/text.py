"""A report in words: plain text for terminals, Markdown for wikis, an HTML fragment for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from calibrant.results.estimate import Estimate
from calibrant.results.printable import printable

if TYPE_CHECKING:
    from calibrant.reporting.model import Report

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
_MARKS = {"problem": "!!", "caution": "!", "note": "-"}


def tables(report: Report) -> list[Table]:
    """Every table of the report: its heading, its columns, its rows, as text."""
    found: list[Table] = [
        (
            "Estimates",
            ("what", "value", report.interval_label, "bias at this n", "how"),
            [
                (m.estimate.name, number(m.estimate), interval(m.estimate), number(m.bias), m.estimate.method)
                for m in report.measures
            ],
        )
    ]
    rows: list[tuple[str, ...]]
    if report.tests:
        rows = [(t.method, number(t.statistic), p_value(t.p_value)) for t in report.tests]
        found.append(("Is it calibrated?", ("test", "statistic", "p-value"), rows))
    if report.repairs:
        rows = [(r.name, number(r.error), number(r.loss), f"{r.gain:+.4f}") for r in report.repairs]
        found.append(("What would repair it, cross-fitted", ("map", "error left", "loss", "saved"), rows))
    if report.groups:
        rows = [
            (g.name, f"{g.n:,}", number(g.estimate), interval(g.estimate), p_value(g.p_value)) for g in report.groups
        ]
        found.append(("Groups, worst first", ("group", "rows", "error", report.interval_label, "p-value"), rows))
    return [_without_empty_columns(_printable(table)) for table in found]


def _printable(table: Table) -> Table:
    """Names of groups are the user's: no control character of theirs reaches a terminal or a page."""
    heading, columns, rows = table
    return heading, columns, [tuple(printable(cell) for cell in row) for row in rows]


def _without_empty_columns(table: Table) -> Table:
    heading, columns, rows = table
    some = [k for k in range(len(columns)) if any(row[k] for row in rows)]
    return heading, tuple(columns[k] for k in some), [tuple(row[k] for k in some) for row in rows]


def plain(report: Report) -> str:
    """For a terminal."""
    title = printable(report.title)
    lines = [title, "=" * len(title), f"{report.task}, {report.n:,} rows", "", printable(report.verdict), ""]
    for heading, columns, rows in tables(report):
        lines += [heading, *_aligned([columns, *rows]), ""]
    lines += [f"{_MARKS[f.severity]:>2} {f.code}  {printable(f.text)}" for f in report.findings]
    return "\n".join(lines).rstrip() + "\n"


def markdown(report: Report) -> str:
    """For a wiki or a pull request."""
    lines = [
        f"# {_cell(report.title)}",
        "",
        f"{report.task}, {report.n:,} rows",
        "",
        f"**{_cell(report.verdict)}**",
        "",
    ]
    for heading, columns, rows in tables(report):
        lines += [f"## {heading}", "", _row(columns), _row(["---"] * len(columns)), *map(_row, rows), ""]
    if report.findings:
        lines += ["## Findings", "", *(f"- **{f.code}** ({f.severity}) {_cell(f.text)}" for f in report.findings)]
    return "\n".join(lines).rstrip() + "\n"


def fragment(report: Report) -> str:
    """For a notebook: no scripts, all text escaped."""
    title, verdict = escape(printable(report.title)), escape(printable(report.verdict))
    parts = [f"<h3>{title}</h3><p><b>{verdict}</b></p>"]
    for heading, columns, rows in tables(report):
        head = "".join(f"<th>{escape(column)}</th>" for column in columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
        parts.append(f"<h4>{escape(heading)}</h4><table><tr>{head}</tr>{body}</table>")
    findings = "".join(f"<li><b>{escape(f.code)}</b> {escape(printable(f.text))}</li>" for f in report.findings)
    return "".join(parts) + (f"<ul>{findings}</ul>" if findings else "")


def number(value: float | None) -> str:
    """Four digits after the point, or four significant ones for large numbers; nothing for None."""
    if value is None or value != value:
        return ""
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.4g}"


def interval(estimate: Estimate) -> str:
    """Low to high, or nothing."""
    found = estimate.interval
    return "" if found is None else f"{number(found.low)} to {number(found.high)}"


def p_value(value: float) -> str:
    """Three digits, but never a rounded zero."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_in_words(value: float) -> str:
    """As it stands in a sentence: p = 0.012, or p < 0.001."""
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def points(value: float) -> str:
    """A probability as percentage points: 3.1."""
    return f"{100 * value:.1f}" if abs(value) >= 0.0005 or value == 0 else f"{100 * value:.2g}"


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
