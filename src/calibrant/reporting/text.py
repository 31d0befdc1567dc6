"""A report in words: its tables as text, plain text for terminals, Markdown for wikis."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from calibrant.reporting.contents import (
    BinCounts,
    Classes,
    Contents,
    GroupRow,
    Groups,
    Number,
    OverTime,
    Recalibration,
    Reliability,
    Shares,
    Spread,
)
from calibrant.reporting.names import name_of_estimate, name_of_map, name_of_test, plural, remaining_error, simulations
from calibrant.reporting.rounding import (
    Rounded,
    bound,
    count,
    fixed,
    loss,
    no_break,
    p_number,
    percent,
    points,
    rate,
    ratio,
    rounded,
    score,
    value_column,
)
from calibrant.results.estimate import Estimate, Value, printable

if TYPE_CHECKING:
    from calibrant.reporting.model import Report


#: Groups that a printed table shows; all that are flagged, and the largest others.
SHOWN = 20


class Table(NamedTuple):
    """A heading, the names of the columns, rows of text, and a line below."""

    heading: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


def tables(report: Report) -> list[Table]:
    """Every table of the report, in reading order; all text is printable."""
    found = [numbers_table(report.contents.numbers)] if report.contents.numbers else []
    events = plural(report.contents.facts.event, kind="event").capitalize()
    makers: dict[type, Callable[..., Table | None]] = {
        Reliability: lambda section: reliability_table(section, events),
        OverTime: time_table,
        Groups: groups_table,
        Recalibration: recalibration_table,
        Classes: classes_table,
        Spread: spread_table,
        Shares: shares_table,
        BinCounts: lambda section: None,
    }
    made = [makers[type(section)](section) for section in report.contents.sections]
    found += [table for table in made if table is not None and table.rows]
    found += [table for table in (estimates_table(report), tests_table(report)) if table.rows]
    return [_printable(table) for table in found]


def numbers_table(numbers: Sequence[Number]) -> Table:
    """The large numbers."""
    rows = []
    for one in numbers:
        value, unit, ends = number_texts(one)
        rows.append((one.name, f"{value} {unit}".strip(), ends))
    return Table("In numbers", ("Number", "Value", "95 % interval"), rows)


def number_texts(number: Number) -> tuple[str, str, str]:
    """Value, unit and interval; of an error that may be 0, the upper end alone."""
    held = number.value
    if number.unit == "points":
        if held.low is not None and held.high is not None and held.low <= 0 <= held.value and number.below == "":
            return f"at most {bound(held.high)}", "points", ""
        found = points(held)
        return found.value, "points", found.ends
    if number.unit == "percent":
        found = percent(held)
        return found.value, "%", f"{found.ends} %" if found.ends else ""
    found = ratio(held) if number.unit == "ratio" else rounded(held, apart=number.ideal)
    return found.value, "", found.ends


def reliability_table(section: Reliability, events: str) -> Table:
    """Where the error sits."""
    observed = value_column([one.observed for one in section.ranges], scale=100)
    rows = [
        (
            score(one.low) if one.low == one.high else f"{score(one.low).removesuffix(' %')} to {score(one.high)}",
            count(one.n),
            count(one.events),
            score(one.predicted),
            f"{value} %",
            f"{ends} %" if ends else "",
            "" if one.share is None else f"{fixed(100 * one.share, 0)} %",
        )
        for one, (value, ends) in zip(section.ranges, observed, strict=True)
    ]
    columns = ("Predicted", "Rows", events, "Mean", "Observed", "95 % interval", "Share of the error")
    return Table("Predicted and observed", columns, rows)


def time_table(section: OverTime) -> Table:
    """Observed and expected by period."""
    found = value_column([one.ratio for one in section.periods], least=2, apart=1.0)
    rows = [
        (one.name, count(one.n), count(one.observed), count(one.expected), *own, p_number(one.p_value),
         "flagged" if one.flagged else "")
        for one, own in zip(section.periods, found, strict=True)
    ]  # fmt: skip
    columns = (_title(section.column), "Rows", "Observed", "Expected", "O:E", "95 % interval", "Adjusted p", "")
    return Table("Over time", columns, rows)


def groups_table(section: Groups) -> Table:
    """All flagged groups, and the largest others."""
    rows = list(section.rows)
    flagged = [row for row in rows if row.flagged]
    others = sorted((row for row in rows if not row.flagged), key=lambda row: -row.n)
    shown = {id(row) for row in [*flagged, *others[: max(0, SHOWN - len(flagged))]]}
    hidden = len(rows) - len(shown)
    note = section.omitted
    if hidden:
        note = f"{count(hidden)} more {plural('group', hidden)}, not flagged. {note}".strip()
    kept = [row for row in rows if id(row) in shown]
    made = _group_rows(kept, first=_title(section.column))
    return Table(_title(plural(section.column, kind="group")) if section.column else "Groups", *made, note)


def classes_table(section: Classes) -> Table:
    """Every class against the rest, worst first."""
    rows = section.rows[: section.shown]
    note = f"{count(len(rows))} of {count(len(section.rows))} classes: flagged ones first, by the size of their error."
    note = "" if len(rows) == len(section.rows) else note
    return Table("Classes", *_group_rows(rows, first="Class", draws=section.draws), note)


def _group_rows(
    rows: Sequence[GroupRow], *, first: str, draws: int | None = None
) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    spread = all(row.expected is None for row in rows)
    ratios = value_column([row.ratio for row in rows], least=2, apart=1.0)
    errors = value_column([row.error for row in rows], scale=100, at_most=True)
    made = []
    for row, ratio_text, error in zip(rows, ratios, errors, strict=True):
        totals = () if spread else (_or_none(row.observed), _or_none(row.expected))
        made.append(
            (
                row.name,
                count(row.n),
                *totals,
                *ratio_text,
                _with_ends(error),
                row.direction,
                p_number(row.p_value, draws),
            )
        )
    names = ("Ratio", "95 % interval", "ENCE, %") if spread else (
        "Observed", "Expected", "O:E", "95 % interval", "Error, points",
    )  # fmt: skip
    return (first, "Rows", *names, "Direction", "Adjusted p"), made


def recalibration_table(section: Recalibration) -> Table:
    """The maps, best first."""
    remaining = value_column([one.remaining for one in section.maps], scale=100, at_most=True)
    gains = value_column([one.gain for one in section.maps], scale=100, least=1, apart=0.0)
    rows = [
        (name_of_map(one.name), _with_ends(left), _with_ends(gain), one.effect)
        for one, left, gain in zip(section.maps, remaining, gains, strict=True)
    ]  # fmt: skip
    name = section.loss[:1].upper() + section.loss[1:]
    left = ", ".join(remaining_error(section.loss))
    columns = ("Map", f"Remaining {left}", f"{name} lower by, %", "Effect")
    return Table(f"Recalibration, cross-validated ({section.loss} before: {loss(section.loss_before)})", columns, rows)


def spread_table(section: Spread) -> Table:
    """Coverage of central intervals."""
    found = value_column([one.observed for one in section.coverage], scale=100)
    rows = [
        (f"{100 * one.nominal:g} %", f"{value} %", f"{ends} %" if ends else "")
        for one, (value, ends) in zip(section.coverage, found, strict=True)
    ]
    return Table("Coverage of central intervals", ("Nominal", "Observed", "95 % interval"), rows)


def shares_table(section: Shares) -> Table:
    """The error for other shares of positives."""
    found = value_column(section.errors, scale=100)
    rows = [
        (score(prior), *own) for prior, own in zip(section.priors, found, strict=True)
    ]  # fmt: skip
    return Table("How much hangs on the share of positives", ("Share", "Error, points", "95 % interval"), rows)


def estimates_table(report: Report) -> Table:
    """Every estimate; errors of probabilities in points."""
    rows = []
    for measure in report.measures:
        name = name_of_estimate(measure.estimate)
        value, ends = estimate_texts(measure.estimate)
        rows.append((name.text, value, ends, name.line))
    return Table("Estimates", ("Estimate", "Value", "95 % interval", "What it is"), rows)


def estimate_texts(estimate: Estimate) -> tuple[str, str]:
    """Value and interval of an estimate, in points where it is an error of probabilities."""
    target = "" if estimate.target is None else estimate.target.quantity
    held = Value(float(estimate))
    found = estimate.interval
    if found is not None and found.side == "two-sided":
        held = Value(float(estimate), float(found.low), float(found.high))
    unit = "%" if target in _IN_PERCENT else "points"
    if target in _IN_PERCENT or target in _IN_POINTS or estimate.name.startswith(_ERRORS):
        text = points(held)
        ends = f"{text.ends}{' %' if unit == '%' else ''}"
        return f"{text.value} {unit}", f"{ends}{_kind_of_range(estimate)}" if text.ends else ""
    text = rounded(held, least=2) if held.low is not None else Rounded(_four(held.value), "", "")
    return text.value, f"{text.ends}{_kind_of_range(estimate)}" if text.ends else ""


#: Targets that are errors of probabilities, told in points, and those that are shares, told in percent.
_IN_POINTS = {"true error", "smooth error", "cumulative error", "classwise mean", "coverage error"}
_IN_PERCENT = {"coverage", "relative spread error"}
#: Errors of probabilities by name, where a method computes them without the target.
_ERRORS = ("Calibration error", "Overconfidence", "Underconfidence")


def _kind_of_range(estimate: Estimate) -> str:
    """What stands in place of a confidence interval."""
    found = estimate.interval
    return " (range of a calibrated forecaster)" if found is not None and found.method.startswith("range of") else ""


def tests_table(report: Report) -> Table:
    """Every test; that of the verdict first."""
    rows = []
    for test in report.tests:
        name = name_of_test(test)
        rows.append((name.text, p_number(test.p_value, simulations(test)), name.line))
    return Table("Tests", ("Test", "p-value", "What it asks"), rows)


def _with_ends(found: tuple[str, str]) -> str:
    value, ends = found
    return f"{value} ({ends})" if ends else value


def _or_none(value: float | None) -> str:
    return "" if value is None else count(value)


def _four(value: float) -> str:
    return loss(value)


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]


def _printable(table: Table) -> Table:
    rows = [tuple(printable(cell) for cell in row) for row in table.rows]
    some = [k for k in range(len(table.columns)) if any(row[k] for row in rows)]
    return Table(
        printable(table.heading),
        tuple(printable(table.columns[k]) for k in some),
        [tuple(row[k] for k in some) for row in rows],
        printable(table.note),
    )


_MARKS = {"problem": "!!", "caution": "!", "note": "-"}
#: Columns of a terminal.
_WIDTH = 100
#: What means something in Markdown: anywhere, in an address, and at the start of a line.
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>&|~#$@^]|:(?=//)|(?i:(?<=www)\.)|^[-+=](?=\s|-|=|$)|^\d+(?=[.)](?:\s|$))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

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
        what = plural("labelled positive" if unlabeled else known.event, known.events, kind="event")
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
    lines = [f"# {in_markdown(report.title)}", "", in_markdown(facts(contents)), ""]
    second = f" {in_markdown(found.second)}" if found.second else ""
    lines += [f"**{_STATES[found.state]}. {in_markdown(found.sentence)}**{second}", ""]
    lines += [f"- **{name}.** {in_markdown(text)}" for name, text in answers(contents)]
    if report.findings:
        lines += [
            "",
            "## Findings",
            "",
            *(f"- **{f.code}** ({f.severity}) {in_markdown(f.text)}" for f in report.findings),
        ]
    for heading, columns, rows, note in tables(report):
        lines += ["", f"## {in_markdown(heading)}", "", _row(columns), "| --- " * len(columns) + "|", *map(_row, rows)]
        lines += ["", in_markdown(note)] if note else []
    if contents.omitted:
        lines += ["", "## Not in this report", ""]
        lines += [f"- {in_markdown(left.section)}: {in_markdown(left.reason)}" for left in contents.omitted]
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
    return f"| {' | '.join(in_markdown(cell) for cell in cells)} |"


def in_markdown(text: str) -> str:
    r"""Text that stays text in Markdown: it begins no tag, link, image, code, emphasis, heading, list or table cell.

    Addresses are escaped too, or many sites would make links of them. An end of a line is written out.

    Examples
    --------
    >>> print(in_markdown("![x](https://a.example) | <b> snake_case"))
    !\[x\](https\://a.example) \| &lt;b&gt; snake\_case
    >>> print(in_markdown("# a"), in_markdown("1. b"), in_markdown("p < 0.05, -1 %"))
    \# a 1\. b p &lt; 0.05, -1 %
    """

    def escaped(found: re.Match[str]) -> str:
        own = found[0]
        return f"{own}\\" if own.isdigit() else _ENTITIES.get(own, f"\\{own}")

    return _MARKDOWN.sub(escaped, printable(text))
