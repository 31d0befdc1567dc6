"""A report in words: its tables as text, plain text for terminals, Markdown for wikis."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from calibrant.reporting import contents as kinds
from calibrant.reporting import rounding
from calibrant.reporting.contents import Bin, Contents, State
from calibrant.reporting.names import first_up, name_of_estimate, name_of_map, name_of_test, plural, remaining_error
from calibrant.reporting.rounding import bound, count, fixed, p_number, percent, points, rates, score, value_column
from calibrant.results.estimate import Estimate, Value, printable

if TYPE_CHECKING:
    from calibrant.reporting.model import Report


#: Groups that a table shows: all that are flagged, and the largest others up to this number.
#: Test: tests/reporting/test_text.py::test_groups_show_all_that_are_flagged_and_the_largest_others.
SHOWN = 20


class Table(NamedTuple):
    """A heading, the names of the columns, rows of text, and a line below."""

    heading: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""

    def filled(self) -> Table:
        """Without columns that are empty in every row."""
        some = [k for k in range(len(self.columns)) if any(row[k] for row in self.rows)]
        columns = tuple(self.columns[k] for k in some)
        return self._replace(columns=columns, rows=[tuple(row[k] for k in some) for row in self.rows])


def tables(report: Report) -> list[Table]:
    """Every table of the report, in reading order; all text is printable."""
    found = [numbers_table(report.contents.numbers)] if report.contents.numbers else []
    events = plural(report.contents.facts.event, kind="event").capitalize()
    spread = report.contents.kind == "regression"
    makers: dict[type, Callable[..., Table]] = {
        kinds.Reliability: partial(reliability_table, events=events),
        kinds.NetBenefit: net_benefit_table,
        kinds.OverTime: partial(time_table, spread=spread),
        kinds.Groups: groups_table,
        kinds.Audited: audit_table,
        kinds.Recalibration: recalibration_table,
        kinds.Classes: classes_table,
        kinds.Spread: coverage_table,
        kinds.Shares: shares_table,
        kinds.Labels: judge_table,
    }
    for section in report.contents.sections:
        found += [confidence_table(section)] if isinstance(section, kinds.Labels) and section.ranges else []
        found += [makers[type(section)](section)] if type(section) in makers else []
        if isinstance(section, kinds.Labels):
            found.append(Table("What to label next", ("Python",), [(line,) for line in section.code.splitlines()]))
    found += [estimates_table(report), tests_table(report)]
    return [_printable(table.filled()) for table in found if table.rows]


def audit_table(section: kinds.Audited) -> Table:
    """The segments that were confirmed; what features are worth is said below."""
    columns = (
        "Segment",
        "Share of rows",
        "Predicted, %",
        "Observed, %",
        "95 % interval",
        "Predictions are",
        "Adjusted p",
    )
    observed = value_column([one.observed for one in section.segments], scale=100, least=1)
    rows = [
        (
            one.name,
            f"{fixed(100 * one.share, 1)} %",
            fixed(100 * one.predicted, 1),
            *seen,
            one.direction,
            p_number(one.adjusted),
        )
        for one, seen in zip(section.segments, observed, strict=True)
    ]
    worth = ", ".join(f"{name} {percent(value).value} %" for name, value in section.features)
    note = f"{section.sentence} Log loss lost without a feature: {worth}." if worth else section.sentence
    return Table("Where, for whom", columns, rows or [("none confirmed", *[""] * 6)], note)


def numbers_table(numbers: Sequence[kinds.Number]) -> Table:
    """The large numbers."""
    rows = []
    for one in numbers:
        value, unit, ends = number_texts(one)
        rows.append((one.name, f"{value} {unit}".strip(), at_level(ends, one.level)))
    return Table("In numbers", ("Number", "Value", "95 % interval"), rows)


def at_level(ends: str, level: float) -> str:
    """An interval in a column of 95 % intervals: one of another confidence says so."""
    return ends if not ends or level == 0.95 else f"{ends} ({100 * level:.6g} %)"


def number_texts(number: kinds.Number) -> tuple[str, str, str]:
    """Value, unit and interval; of an error that may be 0, the upper end alone."""
    held = number.value
    if number.unit == "points":
        if held.low is not None and held.high is not None and held.low <= 0 <= held.value and number.below == "":
            return f"at most {bound(held.high)}", "points", ""
        found = points(held)
        return found.value, "point" if found.value == "1" else "points", found.ends
    if number.unit == "percent":
        found = rates(held, number.ideal)
        return found.value, "%", f"{found.ends} %" if found.ends else ""
    found = rounding.ratio(held) if number.unit == "ratio" else rounding.rounded(held, least=2, apart=number.ideal)
    return found.value, "", found.ends


def reliability_table(section: kinds.Reliability, events: str) -> Table:
    """Where the error sits."""
    rows = []
    for one, (value, ends) in zip(section.ranges, _observed(section.ranges), strict=True):
        where = range_text(one)
        share = "" if one.share is None else f"{fixed(100 * one.share, 0)} %"
        found = (f"{value} %", f"{ends} %" if ends else "", share)
        rows.append((where, count(one.n), count(one.events), score(one.predicted), *found))
    columns = ("Predicted", "Rows", events, "Mean", "Observed", "95 % interval", "Share of the error")
    return Table("Predicted and observed", columns, rows, section.note)


def time_table(section: kinds.OverTime, *, spread: bool = False) -> Table:
    """Observed and expected by period, or errors relative to the predicted spread."""
    ratios = value_column([one.ratio for one in section.periods], least=2, apart=1.0)
    rows = []
    for one, own in zip(section.periods, ratios, strict=True):
        totals = () if spread else (count(one.observed), count(one.expected))
        flag = "flagged" if one.flagged else ""
        rows.append((one.name, count(one.n), *totals, *own, p_number(one.p_value), flag))
    names = ("Ratio",) if spread else ("Observed", "Expected", "O:E")
    columns = (first_up(section.column), "Rows", *names, "95 % interval", "Adjusted p", "")
    return Table("Over time", columns, rows, section.note)


def shown_groups(section: kinds.Groups) -> tuple[list[kinds.GroupRow], list[kinds.GroupRow]]:
    """The groups that a table shows, all that are flagged and the largest others, and those that it leaves out."""
    flagged = sum(row.flagged for row in section.rows)
    largest = sorted((row for row in section.rows if not row.flagged), key=lambda row: -row.n)
    kept = {id(row) for row in largest[: max(0, SHOWN - flagged)]}
    shown = [row for row in section.rows if row.flagged or id(row) in kept]
    return shown, [row for row in section.rows if not row.flagged and id(row) not in kept]


def groups_table(section: kinds.Groups) -> Table:
    """All flagged groups, and the largest others."""
    shown, others = shown_groups(section)
    note = " ".join(part for part in (section.search, section.omitted, section.note) if part)
    if others:
        note = f"{count(len(others))} more {plural('group', len(others))}, not flagged. {note}".strip()
    heading = first_up(plural(section.column, kind="group")) if section.column else "Groups"
    return Table(heading, *_group_rows(shown, first=first_up(section.column)), note)


def classes_table(section: kinds.Classes) -> Table:
    """Every class against the rest, worst first."""
    rows = section.rows[: section.shown]
    note = f"{classes_shown(section)} {section.note}".strip()
    return Table("Classes", *_group_rows(rows, first="Class", draws=section.draws), note)


def classes_shown(section: kinds.Classes) -> str:
    """Which classes are shown, where not all are."""
    if section.shown >= len(section.rows):
        return ""
    some = f"{count(section.shown)} of {count(len(section.rows))}"
    return f"{some} classes: flagged ones first, by the size of their error."


class GroupText(NamedTuple):
    """The numbers of a group as text; ratio and error with their intervals."""

    n: str
    observed: str
    expected: str
    ratio: tuple[str, str]
    error: tuple[str, str]
    direction: str
    p_value: str


def group_texts(rows: Sequence[kinds.GroupRow], draws: int | None = None) -> list[GroupText]:
    """The numbers of each group; `draws` are the simulated samples that p-values are ranks among."""
    if not covered(rows):
        ratios = value_column([row.ratio for row in rows], least=2, apart=1.0)
    else:
        shares = value_column([row.ratio for row in rows], scale=100, apart=[row.ideal for row in rows])
        ratios = [(f"{value} %", f"{ends} %" if ends else "") for value, ends in shares]
    errors = value_column([row.error for row in rows], scale=100, at_most=True)
    made = []
    for row, ratio_text, error in zip(rows, ratios, errors, strict=True):
        observed, expected = ("" if total is None else count(total) for total in (row.observed, row.expected))
        direction = row.direction if row.flagged else "not flagged" if row.judged else "too few to judge"
        p_value = p_number(row.p_value, draws) if row.judged else "–"
        made.append(GroupText(count(row.n), observed, expected, ratio_text, error, direction, p_value))
    return made


def covered(rows: Sequence[kinds.GroupRow]) -> str:
    """The nominal coverage, where groups are judged by what their central intervals hold; else ""."""
    return f"{100 * rows[0].ideal:.4g} %" if rows and rows[0].ideal != 1 else ""


def _group_rows(
    rows: Sequence[kinds.GroupRow], *, first: str, draws: int | None = None
) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    spread, held = all(row.expected is None for row in rows), covered(rows)
    made = []
    for row, found in zip(rows, group_texts(rows, draws), strict=True):
        totals = () if spread else (found.observed, found.expected)
        error = "" if held else _with_ends(found.error)
        made.append((row.name, found.n, *totals, *found.ratio, error, found.direction, found.p_value))
    names = (f"Coverage of {held} intervals",) if held else ("Ratio",) if spread else ("Observed", "Expected", "O:E")
    what = "ENCE, %" if spread else "Error, points"
    return (first, "Rows", *names, "95 % interval", what, "Direction", "Adjusted p"), made


def map_texts(section: kinds.Recalibration) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """What error remains after each map and by how much the loss falls, in percent, with their intervals."""
    remaining = value_column([one.remaining for one in section.maps], scale=100, at_most=True, apart=0.0)
    gains = value_column([one.gain for one in section.maps], scale=100, apart=0.0)
    return list(zip(remaining, gains, strict=True))


def gain_heading(section: kinds.Recalibration) -> str:
    """The head of the column of gains."""
    return f"{first_up(section.loss)} lower by, %"


def recalibration_table(section: kinds.Recalibration) -> Table:
    """The maps, best first."""
    rows = [
        (name_of_map(one.name), _with_ends(remaining), _with_ends(gain), one.effect)
        for one, (remaining, gain) in zip(section.maps, map_texts(section), strict=True)
    ]
    columns = ("Map", f"Remaining {', '.join(remaining_error(section.loss))}", gain_heading(section), "Effect")
    before = rounding.loss(Value(section.loss_before)).value
    heading = f"Recalibration, cross-validated ({section.loss} before: {before})"
    return Table(heading, columns, rows, section.note)


def net_benefit_table(section: kinds.NetBenefit) -> Table:
    """The net benefit at the user's threshold and at every eighth beside it, per 100 rows."""
    some = range(section.own % 8, len(section.thresholds), 8)
    found = value_column([section.values[k] for k in some], scale=100, apart=0.0)
    rows = [(score(section.thresholds[k]), *own, treat_all(section, k)) for k, own in zip(some, found, strict=True)]
    columns = ("Threshold", "Net benefit", "95 % interval", "Of treating everyone")
    return Table("Net benefit, true positives per 100 rows", columns, rows)


def treat_all(section: kinds.NetBenefit, k: int) -> str:
    """The net benefit of treating everyone, with the decimals of that of the predictions beside it."""
    return fixed(100 * section.treat_all[k], len(points(section.values[k]).value.partition(".")[2]))


def coverage_table(section: kinds.Spread) -> Table:
    """Coverage of central intervals."""
    nominal = [one.nominal for one in section.coverage]
    found = value_column([one.observed for one in section.coverage], scale=100, apart=nominal)
    rows = [
        (score(one.nominal), f"{value} %", f"{ends} %" if ends else "")
        for one, (value, ends) in zip(section.coverage, found, strict=True)
    ]
    return Table("Coverage of central intervals", ("Nominal", "Observed", "95 % interval"), rows, section.note)


def shares_table(section: kinds.Shares) -> Table:
    """The error for other shares of positives."""
    found = value_column(section.errors, scale=100, apart=0.0)
    rows = [(score(prior), *own) for prior, own in zip(section.priors, found, strict=True)]
    return Table("How much depends on the share of positives", ("Share", "Error, points", "95 % interval"), rows)


def confidence_table(section: kinds.Labels) -> Table:
    """Accuracy by range of confidence."""
    rows = [
        (range_text(one), count(one.n), score(one.predicted), f"{value} %", f"{ends} %" if ends else "")
        for one, (value, ends) in zip(section.ranges, _observed(section.ranges), strict=True)
    ]
    return Table("By confidence", ("Confidence", "Rows", "Mean", "Right", "95 % interval"), rows)


def judge_table(section: kinds.Labels) -> Table:
    """Whether the scores of each judge are calibrated, what the judge is worth, and how to label more."""
    columns = ("Judge", "Gold labels", "Mean score", "Right", "95 % interval", "Error of the score, points", "p")
    gain = ""
    if section.gain is not None:
        gain = f"With the judge, the interval of the accuracy is {100 * section.gain:.0f} % as wide as with the "
        gain += f"{count(section.gold)} gold labels alone."
    rows = [judge_texts(one, section.judges) for one in section.judges]
    return Table("Is the judge calibrated?", columns, rows, f"{gain} {section.note}".strip())


def judge_texts(one: kinds.JudgeRow, judges: Sequence[kinds.JudgeRow]) -> tuple[str, ...]:
    """The numbers of a judge; the share of right answers has one number of digits beside every mean score."""
    if one.mean is None or one.right is None or one.error is None or one.p_value is None:
        return (one.name, count(one.labels), "", "", "", "", "")
    means = [other.mean for other in judges if other.right == one.right and other.mean is not None]
    low, high = (100 * (end or 0.0) for end in (one.right.low, one.right.high))
    finest = max(means, key=lambda mean: rounding.decimals(low, high, apart=100 * mean))
    ((value, ends),) = value_column([one.right], scale=100, apart=finest)
    (error,) = value_column([one.error], scale=100, at_most=True)
    p = p_number(one.p_value)
    return (one.name, count(one.labels), score(one.mean), f"{value} %", f"{ends} %", _with_ends(error), p)


def range_text(one: Bin) -> str:
    """A range of scores."""
    return score(one.low) if one.low == one.high else rounding.span(one.low, one.high)


def _observed(bins: Sequence[Bin]) -> list[tuple[str, str]]:
    return value_column([one.observed for one in bins], scale=100, apart=[one.predicted for one in bins])


def estimates_table(report: Report) -> Table:
    """Every estimate; errors of probabilities in points."""
    rows = []
    for measure in report.measures:
        name = name_of_estimate(measure.estimate)
        value, ends = estimate_texts(measure.estimate, own=measure.headline)
        rows.append((name.text, value, ends, f"{name.line} {_outside(measure.estimate)}".strip()))
    return Table("Estimates", ("Estimate", "Value", "95 % interval", "What it is"), rows)


def _outside(estimate: Estimate) -> str:
    """Why an estimate lies outside of its interval."""
    found = estimate.interval
    if found is None or float(estimate) in found or found.method.startswith("range of") or found.side != "two-sided":
        return ""
    return "It is outside of the interval, which is for the true value and free of the bias of this estimate."


def estimate_texts(estimate: Estimate, *, own: bool = True) -> tuple[str, str]:
    """Value and interval of an estimate, in points where it is an error of probabilities.

    Without an interval of its `own`, beside that of the headline or the range of a calibrated forecaster, a value has
    the digits of a number that stands alone.
    """
    target = "" if estimate.target is None else estimate.target.quantity
    held = Value(float(estimate))
    found = estimate.interval
    if found is not None and found.side == "two-sided":
        held = Value(float(estimate), float(found.low), float(found.high))
    unit = "%" if target in _IN_PERCENT else "points"
    level = 0.95 if found is None else found.level
    if target in _IN_PERCENT or target in _IN_POINTS:
        nominal = estimate.details.get("null", {}).get("mean", 0.0) if target == "coverage" else 0.0
        form = rates if target in _IN_PERCENT else points
        alone = held.low is not None and (bool(_kind_of_range(estimate)) or (target == "true error" and not own))
        alone = alone and not _seems_outside(held)
        text = form(replace(held, value=held.low or 0.0) if alone else held, nominal)
        text = replace(text, value=form(Value(held.value)).value) if alone else text
        ends = at_level(f"{text.ends}{' %' if unit == '%' else ''}", level)
        shown = f"{text.value} %" if unit == "%" else text.points
        return shown, f"{ends}{_kind_of_range(estimate)}" if text.ends else ""
    ideal = _IDEALS.get(estimate.name)
    text = rounding.loss(held)
    if ideal is not None and held.low is not None:
        text = rounding.rounded(held, least=2, apart=ideal)
    return text.value, at_level(f"{text.ends}{_kind_of_range(estimate)}" if text.ends else "", level)


def _seems_outside(held: Value) -> bool:
    """Whether a value inside of its interval would be printed outside of it, with the digits of one without."""
    low, high, value = (100 * (end or 0.0) for end in (held.low, held.high, held.value))
    digits = rounding.decimals(low, high, apart=0.0)
    first, last = round(low, digits), round(high, digits)
    return low <= value <= high and not max(low, first) <= round(value, rounding.significant(value)) <= min(high, last)


#: What calibrated predictions show, by the name of an estimate: an interval that excludes it must be seen to do so.
#: Derived: definitions.
_IDEALS = dict.fromkeys(("O:E ratio", "Calibration slope", "Scale factor", "Mean z^2"), 1.0)
_IDEALS |= {"Mean z": 0.0, "Calibration intercept": 0.0}

#: Targets that are errors of probabilities, told in points, and those that are shares, told in percent.
_IN_POINTS = {
    "true error", "smooth error", "cumulative error", "classwise mean", "coverage error", "over- or underconfidence",
}  # fmt: skip
_IN_PERCENT = {"accuracy", "coverage", "relative spread error"}


def _kind_of_range(estimate: Estimate) -> str:
    """What stands in place of a confidence interval."""
    found = estimate.interval
    return " (range of a calibrated forecaster)" if found is not None and found.method.startswith("range of") else ""


def tests_table(report: Report) -> Table:
    """Every test; that of the verdict first."""
    rows = []
    for test in report.tests:
        name = name_of_test(test)
        rows.append((name.text, p_number(test.p_value, test.draws), name.line))
    return Table("Tests", ("Test", "p-value", "What it asks"), rows)


def _with_ends(found: tuple[str, str]) -> str:
    value, ends = found
    return f"{value} ({ends})" if ends else value


def _printable(table: Table) -> Table:
    rows = [tuple(map(printable, row)) for row in table.rows]
    return Table(printable(table.heading), tuple(map(printable, table.columns)), rows, printable(table.note))


_MARKS = {"problem": "!!", "caution": "!", "note": "-"}
#: Columns of a terminal.
#: Test: tests/reporting/test_text.py::test_the_terminal_shows_verdict_answers_findings_and_tables.
_WIDTH = 100
#: What means something in Markdown: anywhere, in an address, and at the start of a line.
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>&|~#$@^]|:(?=//)|(?i:(?<=www)\.)|^[-+=](?=\s|-|=|$)|^\d+(?=[.)](?:\s|$))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

#: The states of a verdict, as headings; its sentence says what is too few.
STATES: dict[State, str] = {
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
    confidence, unlabeled = contents.kind in ("top label", "classes", "judged"), contents.kind == "unlabeled"
    if known.labels is not None:
        said.append(f"{count(known.labels)} gold {plural('label', known.labels)}")
    if known.classes is not None:
        said.append(f"{count(known.classes)} classes")
    if known.events is not None:
        what = plural("labelled positive" if unlabeled else known.event, known.events, kind="event")
        share = f" ({score(known.base_rate)})" if known.base_rate is not None and not unlabeled else ""
        said.append(f"{count(known.events)} {what}{share}")
    elif known.base_rate is not None and contents.kind != "judged":  # an estimate, which stands beside its interval
        said.append(f"accuracy {score(known.base_rate)}" if confidence else f"base rate {score(known.base_rate)}")
    if unlabeled and known.base_rate is not None:
        said.append(f"assumed share of positives {score(known.base_rate)}")
    if known.mean_prediction is not None:
        said.append(f"mean {'confidence' if confidence else 'prediction'} {score(known.mean_prediction)}")
    if known.effective_rows is not None:
        said.append(f"effective sample size {count(known.effective_rows)}")
    if known.clusters is not None:
        said.append(f"{count(known.clusters)} groups of dependent rows")
    said += [text for text in (known.period, known.model, known.source) if text]
    return printable(" · ".join(said))


def answers(verdict: kinds.Verdict) -> list[tuple[str, str]]:
    """The three short answers, as far as there are any."""
    given = ("How sure", verdict.how_sure), ("What it means", verdict.what_it_means), ("What to do", verdict.what_to_do)
    return [(name, printable(text)) for name, text in given if text]


def plain(report: Report) -> str:
    """For a terminal."""
    title, contents = printable(report.title), report.contents
    found = contents.verdict
    lines = [title, "=" * len(title), facts(contents), ""]
    lines += [f"{_MARKS[found.severity]} {STATES[found.state]}", *_wrapped(printable(str(found)), "   "), ""]
    for name, text in answers(found):
        lines += _wrapped(f"{name + ':':<15}{text}", "", hang=15)
    lines += [""] if answers(found) else []
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
    lines += [f"**{STATES[found.state]}. {in_markdown(found.sentence)}**{second}", ""]
    lines += [f"- **{name}.** {in_markdown(text)}" for name, text in answers(found)]
    if report.findings:
        lines += ["", "## Findings", ""]
        lines += [f"- **{one.code}** ({one.severity}) {in_markdown(one.text)}" for one in report.findings]
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
        rounding.no_break(text), _WIDTH, initial_indent=indent, subsequent_indent=indent + " " * hang,
        break_long_words=False, break_on_hyphens=False,
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
    """Text that stays text in Markdown: no tag, link, emphasis, heading, list or cell; addresses are escaped too."""

    def escaped(found: re.Match[str]) -> str:
        own = found[0]
        return f"{own}\\" if own.isdigit() else _ENTITIES.get(own, f"\\{own}")

    return _MARKDOWN.sub(escaped, printable(text))
