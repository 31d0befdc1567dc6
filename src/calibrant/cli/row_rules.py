"""What rows of a file break which rule, in the words of the command line: option, column, row of the file, remedy."""

from __future__ import annotations

import re
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.cli.columns import Columns
from calibrant.cli.selection import Selection, selected, without_missing
from calibrant.data.validation import InvalidPredictions
from calibrant.scale.checks import Check, finite, first_broken, present, probability, weight_checks
from calibrant.scale.columns import GaussianColumns, TopLabelColumns
from calibrant.scale.labels import fitting, is_text, outcome, some_labels, unknown_labels
from calibrant.scale.named_columns import NamedFrame
from calibrant.scale.relations import FileTable
from calibrant.scale.sources import FirstRow, first_invalid

#: The options for what Python calls otherwise.
OPTIONS = {
    "y_true": "--truth",
    "y_prob": "--prob",
    "weight": "--weight",
    "mean": "--mean",
    "std": "--std",
    "where": "--where",
}


def positive_label(columns: NamedFrame, options: Columns) -> Any:
    """The label of --positive as a value of the column's type."""
    name, given = options.truth or "", options.positive
    kind = columns.kind(name, "--truth")
    if given is None or is_text(kind):
        return given
    words = {"true": True, "yes": True, "false": False, "no": False}
    if kind == nw.Boolean and given.lower() in words:
        return words[given.lower()]
    try:
        return float(given)
    except ValueError:
        return fitting(given, kind, name)


def rules(columns: NamedFrame, options: Columns) -> tuple[NamedFrame, tuple[Check, ...]]:
    """The rules for the rows of the task, and the frame that they are about."""
    truth, weight = options.truth or "", options.weight
    weighed = () if weight is None else weight_checks(columns, weight)
    if options.mean is not None and options.std is not None:
        return columns, (*GaussianColumns(options.mean, options.std).rows(columns, truth, ()).checks, *weighed)
    if options.quantiles:
        names = (truth, *(name for _, name in options.levels))
        return columns, (*(check for name in names for check in _finite(columns, name, options.roles[name])), *weighed)
    if options.labelled is None and not options.one_event:
        classes = options.prob if is_text(columns.kind(truth, "--truth")) else None
        found = TopLabelColumns(classes).rows(columns, truth, options.prob)
        return found.columns, (*found.checks, *weighed)
    labels = present(columns, truth, "y_true", implied=False)
    if options.labelled is None:
        labels = outcome(columns, truth, positive_label(columns, options))[1]
    return columns, (*(check for name in options.prob for check in probability(columns, name)[1]), *labels, *weighed)


def _finite(columns: NamedFrame, name: str, role: str) -> tuple[Check, ...]:
    values = columns.number(name, role).cast(nw.Float64)
    return (*present(columns, name, role), Check(role, "not finite", finite(values), name))


def located(table: FileTable, options: Columns, error: Exception) -> Exception:
    """The error in the words of the command line; where rows break a rule, with their number and the first of them."""
    said = in_options(str(error))
    whole = _chosen(table, table.relation, options)
    columns, checks = rules(whole.columns, options)
    counts = _counts(columns, checks)
    first = _first(table, options)
    if first is None:
        return InvalidPredictions(said)
    rows = sum(counts.values())
    found = [
        f"{_subject(check)} {_broken(check)} in {count:,} of {rows:,} rows"
        for place, check in enumerate(checks)
        if (count := counts.get(place, 0))
    ]
    remedy = _remedy(whole, checks[first.rule], options)
    sentence = f"{'; '.join(found)} (first: {first})."
    return InvalidPredictions(sentence[0].upper() + sentence[1:] + remedy)


def in_options(message: str) -> str:
    """A message of the library with the options in place of its arguments; names of columns, quoted, stay."""
    for name, option in OPTIONS.items():
        message = re.sub(rf"(?<![\w'\-]){name}(?![\w'])", option, message)
    return message.replace("decimal=','", "--decimal-comma").replace("EventColumns(positive=...)", "--positive")


def _chosen(table: FileTable, relation: Any, options: Columns) -> Selection:
    chosen = selected(table, relation, options)
    return without_missing(chosen, options)[0] if options.drop_missing else chosen


def _counts(columns: NamedFrame, checks: tuple[Check, ...]) -> dict[int, int]:
    rule = columns.frame.select(first_broken(checks).alias("rule"))
    found = rule.group_by("rule").agg(nw.len().alias("rows")).collect()
    return dict(zip(found["rule"].to_list(), map(int, found["rows"].to_list()), strict=True))


def _first(table: FileTable, options: Columns) -> FirstRow | None:
    for name, relation in table.numbered():
        found = first_invalid(*rules(_chosen(table, relation, options).columns, options))
        if found is not None:
            return FirstRow(_shown(name), *found)
    return None


def _shown(name: str) -> str:
    return "standard input" if "standard-input" in name else name


def _subject(check: Check) -> str:
    option = OPTIONS.get(check.role, check.role)
    return option if check.column is None else f"column {check.column!r} ({option})"


def _broken(check: Check) -> str:
    return check.broken if check.broken.startswith(("is ", "does ")) else f"is {check.broken}"


def _remedy(selection: Selection, check: Check, options: Columns) -> str:
    if check.broken == "missing":
        return " Leave such rows out with --drop-missing."
    if check.role == "y_prob" and check.column is not None and not options.percent:
        values = selection.columns.number(check.column, "y_prob")
        low, high = (
            selection.columns.frame.select(values.min().alias("low"), values.max().alias("high")).collect().row(0)
        )
        return " If they are in percent, say --percent." if low >= 0 and 1 < high <= 100 else ""
    if check.broken == "is no class":
        return " Its classes are the names of --prob, or column numbers from 0."
    if check.broken == "not 0 or 1":
        words = unknown_labels(some_labels(selection.columns, options.truth or ""))
        return f" Its labels are {words}: say which one is the event, --positive VALUE." if words else ""
    return ""
