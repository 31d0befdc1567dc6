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
    "draws": "--members",
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
    if options.task == "spread":
        return columns, (
            *GaussianColumns(options.mean or "", options.std or "").rows(columns, truth, ()).checks,
            *weighed,
        )
    if options.task in ("quantiles", "members"):
        levels = [name for _, name in options.levels]
        each = (truth, *levels, *options.members)
        numbers = (check for name in each for check in _finite(columns, name, options.roles[name]))
        return columns, (*numbers, *_uncrossed(columns, levels), *weighed)
    if options.task == "classes":
        classes = (options.classes or options.prob) if is_text(columns.kind(truth, "--truth")) else None
        found = TopLabelColumns(classes).rows(columns, truth, options.prob)
        return found.columns, (*found.checks, *weighed)
    labels = present(columns, truth, "y_true", implied=False)
    if options.labelled is None:
        labels = outcome(columns, truth, positive_label(columns, options))[1]
    return columns, (*(check for name in options.prob for check in probability(columns, name)[1]), *labels, *weighed)


def _finite(columns: NamedFrame, name: str, role: str) -> tuple[Check, ...]:
    values = columns.number(name, role).cast(nw.Float64)
    return (*present(columns, name, role), Check(role, "not finite", finite(values), name))


def _uncrossed(columns: NamedFrame, names: list[str]) -> tuple[Check, ...]:
    """Quantiles of higher levels are not lower."""
    values = [columns.number(name, "--quantiles") for name in names]
    return tuple(
        Check("--quantiles", f"below column {lower!r}, a quantile of a lower level,", second >= first, name)
        for first, second, lower, name in zip(values, values[1:], names, names[1:], strict=False)
    )


def located(table: FileTable, options: Columns, error: Exception) -> Exception:
    """The error in the words of the command line; where rows break a rule, with their number and the first of them."""
    found = (_broken_rule(table, options, model) for model in options.models)
    said = next((message for message in found if message is not None), in_options(str(error)))
    return InvalidPredictions(said)


def _broken_rule(table: FileTable, options: Columns, model: Columns) -> str | None:
    """What to say of the rows that break a rule of one model; None if there are none."""
    whole = _chosen(table, table.relation, options)
    columns, checks = rules(whole.columns, model)
    counts = _counts(columns, checks)
    first = _first(table, options, model)
    if first is None:
        return None
    rows = sum(counts.values())
    found = [
        f"{_subject(check)} {_broken(check)} in {count:,} of {rows:,} rows"
        for place, check in enumerate(checks)
        if (count := counts.get(place, 0))
    ]
    remedy = _remedy(whole, checks[first.rule], model)
    sentence = f"{'; '.join(found)} (first: {first})."
    return sentence[0].upper() + sentence[1:] + remedy


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


def _first(table: FileTable, options: Columns, model: Columns) -> FirstRow | None:
    for name, relation in table.numbered():
        found = first_invalid(*rules(_chosen(table, relation, options).columns, model))
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
        named = ", ".join(map(repr, (options.classes or options.prob)[:5]))
        names = options.classes or options.prob
        start = _common_start(min(names), max(names))
        hint = f' If those are what follows {start!r}, say --prob "{start}*".' if start else ""
        return f" The classes are {named}, as --prob names them, or column numbers from 0.{hint}"
    if check.broken == "not 0 or 1":
        words = unknown_labels(some_labels(selection.columns, options.truth or ""))
        return f" Its labels are {words}: say which one is the event, --positive VALUE." if words else ""
    return ""


def _common_start(first: str, last: str) -> str:
    """What two names have in common up to the first letter in which they differ."""
    alike = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:alike]
