"""The rows of files that the options select, and the rules that rows may break, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.cli.columns import Columns, separated
from calibrant.data.groups import MISSING
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.scale import checks
from calibrant.scale.checks import Check, NamedFrame, NotNumbers, all_hold, is_text, present, some_labels
from calibrant.scale.columns import GaussianColumns, TopLabelColumns
from calibrant.scale.duckdb_files import FLOATING, FileTable, filtered, literal, quoted
from calibrant.scale.group_by import LARGEST_WHOLE
from calibrant.scale.sources import FirstRow, first_invalid

_GROUP, LABEL = "_calibrant_group_", "_calibrant_label"


@dataclass(frozen=True)
class Selection:
    """The chosen rows: their columns by the users' names, and the names of the columns of groups by grouping."""

    columns: NamedFrame
    groups: dict[str, str]
    #: The share of the rows that was left out for missing values.
    left_out: float = 0.0

    @property
    def relation(self) -> Any:
        """The rows as a DuckDB relation."""
        return self.columns.frame.to_native()

    def held(self, name: str) -> str:
        """The column of the relation that has a name or an expression of the user's."""
        return self.columns.held.get(name, name)


def selected(table: FileTable, columns: Columns, relation: Any = None) -> Selection:
    """The rows (of `relation`, if given) that fit the condition: percent as shares, groups under their names."""
    relation = table.with_texts(_group_columns(table, columns)) if relation is None else relation
    if columns.where:
        relation = filtered(relation, columns.where, table.refused)
    crossings = {by: separated(by, table.relation.columns, "--by") for by in columns.groupings}
    wanted = dict.fromkeys(_group_columns(table, columns), "--by") | columns.roles
    named = checks.bound(nw.from_native(relation), wanted, table.refused)
    chosen = Selection(named, {})
    if columns.percent:
        chosen = _with(chosen, {chosen.held(name): _share(chosen, name) for name in columns.probabilities}, new=False)
    if columns.logits:
        chosen = _with(chosen, _of_logits(chosen, columns), new=False)
    groups = {by: f"{_GROUP}{place}" for place, by in enumerate(crossings)}
    labels = {groups[by]: _label(chosen, names) for by, names in crossings.items()}
    if columns.labelled is not None:
        labels[LABEL] = _text(chosen, columns.truth or "")
    return replace(_with(chosen, labels, new=True), groups=groups)


def _group_columns(table: FileTable, columns: Columns) -> list[str]:
    """The columns of all groupings."""
    return [name for by in columns.groupings for name in separated(by, table.relation.columns, "--by")]


def without_missing(selection: Selection, columns: Columns) -> tuple[Selection, str | None]:
    """The rows that have a value in every column of the task, and what to say of those left out."""
    named = columns.roles.items()
    needed = tuple(check for name, role in named for check in present(selection.columns, name, role, implied=False))
    frame = selection.columns.frame
    counts = [check.holds.cast(nw.Int64).sum().alias(f"held_{k}") for k, check in enumerate(needed)]
    every = all_hold(needed).cast(nw.Int64).sum().alias("every")
    found = frame.select(nw.len().alias("rows"), every, *counts).collect().row(0)
    rows, kept = int(found[0]), int(found[1] or 0)
    if kept == rows:
        return selection, None
    reasons = [
        f"{check.role} {check.column!r}: {rows - int(held or 0):,}"
        for check, held in zip(needed, found[2:], strict=True)
        if int(held or 0) < rows
    ]
    note = f"Left out {rows - kept:,} of {rows:,} rows with missing values ({', '.join(reasons)})."
    return replace(selection, columns=selection.columns.filter(all_hold(needed)), left_out=1 - kept / rows), note


def _text(selection: Selection, name: str, *, as_group: bool = False) -> str:
    """SQL of a column's values as text, whole numbers without a decimal point; null where they are missing."""
    column, kind = quoted(selection.held(name)), _kind(selection, name)
    if kind not in FLOATING:
        return f"CAST({column} AS VARCHAR)"
    if as_group:
        largest = selection.relation.aggregate(f"max(abs({column})) FILTER (NOT isnan({column}))").fetchall()[0][0]
        if largest is not None and largest >= LARGEST_WHOLE:
            fail(
                f"Column {name!r} (--by) holds {largest:.17g} in double precision, which cannot be distinguished from "
                "its neighbours. Write such groups as text, or as whole numbers to a Parquet file."
            )
    is_whole = f"{column} = floor({column}) AND abs({column}) < {LARGEST_WHOLE:.0f}"
    number = f"CASE WHEN {is_whole} THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE CAST({column} AS VARCHAR) END"
    return f"CASE WHEN NOT isnan({column}) THEN {number} END"


def _with(selection: Selection, columns: dict[str, str], *, new: bool) -> Selection:
    if not columns:
        return selection
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    chosen = selection.relation.project(f"*, {listed}" if new else f"* REPLACE ({listed})")
    return replace(selection, columns=replace(selection.columns, frame=nw.from_native(chosen)))


def _share(selection: Selection, name: str) -> str:
    """SQL of a share in percent, a number or a text that may end in a sign for percent, as a share."""
    column = quoted(selection.held(name))
    column = f"rtrim({column}, '% ')" if _kind(selection, name) == "VARCHAR" else column
    return f"CAST({column} AS DOUBLE) / 100"


def _of_logits(selection: Selection, columns: Columns) -> dict[str, str]:
    """SQL of the probabilities of log odds (binary) or logits (multiclass)."""
    found: dict[str, str] = {}
    for model in columns.models:
        for name in model.prob:
            selection.columns.number(name, "--prob")
        held = [quoted(selection.held(name)) for name in model.prob]
        if len(held) == 1:
            (one,) = held
            shares = [f"CASE WHEN {one} >= 0 THEN 1 / (1 + exp(-{one})) ELSE exp({one}) / (1 + exp({one})) END"]
        else:
            powers = [f"exp({one} - greatest({', '.join(held)}))" for one in held]
            shares = [f"{power} / ({' + '.join(powers)})" for power in powers]
        found |= {selection.held(name): share for name, share in zip(model.prob, shares, strict=True)}
    return found


def _label(selection: Selection, names: Sequence[str]) -> str:
    """SQL of the name of a group, null where it is missing.

    Where columns are crossed, missing parts are named, and a backslash marks what could be taken for something else
    within the parts (commas, backslashes, the name of missing parts), so that no two crosses have one name.
    """
    values = [_text(selection, selection.columns.as_text(name), as_group=True) for name in names]
    if len(values) == 1:
        return values[0]
    missing, alike = literal(MISSING), literal(rf"\{MISSING}")
    marked = (rf"replace(replace({value}, '\', '\\'), ',', '\,')" for value in values)
    return " || ', ' || ".join(
        f"CASE {value} WHEN {missing} THEN {alike} ELSE coalesce({value}, {missing}) END" for value in marked
    )


def _kind(selection: Selection, name: str) -> str:
    relation = selection.relation
    return dict(zip(relation.columns, map(str, relation.types), strict=True))[selection.held(name)]


#: The options for what Python calls otherwise.
OPTIONS = {"y_true": "--truth", "y_prob": "--prob", "draws": "--members"}
OPTIONS |= {name: f"--{name}" for name in ("weight", "mean", "std", "where")}

#: Those that are words of English too: they are arguments only where a sentence or a part of one begins.
_WORDS = ("weight", "draws", "mean", "where")


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
        return checks.fitting(given, kind, name)


def text_classes(options: Columns, labels: Iterable[Any]) -> tuple[str, ...]:
    """The classes of the columns where labels are words: their names, or else their numbers, if labels are such."""
    names, found = options.classes or options.prob, {str(label) for label in labels}
    numbers = tuple(map(str, checks.labels_of_columns(None, options.prob)))
    return numbers if not found & set(names) and found <= set(numbers) else names


def rules(columns: NamedFrame, options: Columns) -> tuple[NamedFrame, tuple[Check, ...]]:
    """The rules for the rows of the task, and the frame that they are about."""
    truth, weight = options.truth or "", options.weight
    weighed = () if weight is None else checks.weight_checks(columns, weight)
    if options.task == "spread":
        spread = GaussianColumns(options.mean or "", options.std or "").rows(columns, truth, ())
        return columns, (*spread.checks, *weighed)
    if options.task in ("quantiles", "members"):
        levels = [name for _, name in options.levels]
        each = (truth, *levels, *options.members)
        numbers = (check for name in each for check in checks.finite_number(columns, name, options.roles[name])[1])
        values = [columns.number(name, "--quantiles") for name in levels]
        uncrossed = (
            Check("--quantiles", f"below column {lower!r}, a quantile of a lower level,", second >= first, name)
            for first, second, lower, name in zip(values, values[1:], levels, levels[1:], strict=False)
        )
        return columns, (*numbers, *uncrossed, *weighed)
    if options.task == "multiclass":
        text = is_text(columns.kind(truth, "--truth"))
        classes = text_classes(options, some_labels(columns, truth)) if text else None
        found = TopLabelColumns(classes).rows(columns, truth, options.prob)
        return found.columns, (*found.checks, *weighed)
    labels = present(columns, truth, "y_true", implied=False)
    if options.labelled is None:
        labels = checks.outcome(columns, truth, positive_label(columns, options))[1]
    return columns, (
        *(check for name in options.prob for check in checks.probability(columns, name)[1]),
        *labels,
        *weighed,
    )


def located(table: FileTable, options: Columns, error: Exception) -> str:
    """The error in the words of the command line; where rows break a rule, with their number and the first of them."""
    said = in_options(str(error))
    try:
        if isinstance(error, NotNumbers):
            return _text_among_numbers(table, options, error)
        found = (_broken_rule(table, options, model) for model in options.models)
        said = next((message for message in found if message is not None), said)
    except InvalidPredictions:  # the rules cannot be asked: a column is not there, or is no number
        return said
    if options.answers:
        said = said.replace("(--prob)", "(--confidence)").replace("(--truth)", "(--correct)")
    return said


def _broken_rule(table: FileTable, options: Columns, model: Columns) -> str | None:
    """What to say of the rows that break a rule of one model; None if there are none."""
    whole = _chosen(table, options)
    columns, held = rules(whole.columns, model)
    broken = columns.frame.select(checks.first_broken(held).alias("rule"))
    told = broken.group_by("rule").agg(nw.len().alias("rows")).collect()
    counts = dict(zip(told["rule"].to_list(), map(int, told["rows"].to_list()), strict=True))
    first = _first(table, options, model)
    if first is None:
        return None
    rows = sum(counts.values())
    found = [
        f"{_said(check)} in {count:,} of {rows:,} rows"
        for place, check in enumerate(held)
        if (count := counts.get(place, 0))
    ]
    remedy = _remedy(whole, held[first.rule], model)
    sentence = f"{'; '.join(found)} (first: {first})."
    return sentence[0].upper() + sentence[1:] + remedy


def _text_among_numbers(table: FileTable, options: Columns, error: NotNumbers) -> str:
    """What to say of a column of text that must hold numbers: the first such text, its row, and what to do."""
    for file, relation in table.numbered(_group_columns(table, options)):
        found = checks.first_text(_chosen(table, options, relation).columns, error.name)
        if found is not None:
            value, row, count = found
            said = in_options(error.at(value, f"row {row:,} of {_shown(file)!r}", count))
            option = options.roles.get(error.name, "--truth")
            if option == "--prob" and value.lower() in (*checks.YES, *checks.NO):
                return said + _SWAPPED
            percent = " If they are in percent, say --percent." if option == "--prob" else f' Say {option} "{{}}".'
            other = f' Take text as missing values and leave them out: {option} "{{}}" --drop-missing.'
            return said + in_options(checks.text_remedy(value, error.name, percent=percent, other=other))
    return in_options(str(error))


_SWAPPED = " Are --truth and --prob swapped?"


def in_options(message: str) -> str:
    """A message of the library with the options in place of its arguments; names of columns, quoted, stay."""
    for name, option in OPTIONS.items():
        before = r"(^|[:;,.] |\()" if name in _WORDS else r"((?<![\w'\-]))"
        message = re.sub(rf"{before}{name}(?![\w'])", rf"\1{option}", message)
    return message.replace("decimal=','", "--decimal-comma").replace("EventColumns(positive=...)", "--positive VALUE")


def _chosen(table: FileTable, options: Columns, relation: Any = None) -> Selection:
    chosen = selected(table, options, relation)
    return without_missing(chosen, options)[0] if options.drop_missing else chosen


def _first(table: FileTable, options: Columns, model: Columns) -> FirstRow | None:
    for name, relation in table.numbered(_group_columns(table, options)):
        found = first_invalid(*rules(_chosen(table, options, relation).columns, model))
        if found is not None:
            return FirstRow(_shown(name), *found)
    return None


def _shown(name: str) -> str:
    return "standard input" if "standard-input" in name else name


def _said(check: Check) -> str:
    option = OPTIONS.get(check.role, check.role)
    subject = option if check.column is None else f"column {check.column!r} ({option})"
    return f"{subject} {'' if check.broken.startswith(('is ', 'does ')) else 'is '}{check.broken}"


def _remedy(selection: Selection, check: Check, options: Columns) -> str:
    if check.broken == checks.MISSING:
        return " Leave such rows out with --drop-missing."
    if check.broken == checks.OUTSIDE and not (options.percent or options.logits):
        values = [selection.columns.number(name, "y_prob") for name in options.prob]
        ends = [f(one).alias(f"{f.__name__}_{k}") for k, one in enumerate(values) for f in (nw.Expr.min, nw.Expr.max)]
        found = [end for end in selection.columns.frame.select(*ends).collect().row(0) if end is not None]
        shares = min(found) >= 0 and max(found) <= 100
        return " If they are in percent, say --percent." if shares else " If they are log odds, say --logits."
    if check.broken == checks.NO_CLASS:
        names = options.classes or options.prob
        named = ", ".join(map(repr, names[:5]))
        start = commonprefix(names)  # noqa: RUF071
        hint = f' If those are what follows {start!r}, say --prob "{start}*".' if start else ""
        return f" The classes are {named}, as --prob names them, or column numbers from 0.{hint}"
    if check.broken == checks.NOT_BINARY:
        return _label_remedy(selection, options)
    return ""


def _label_remedy(selection: Selection, options: Columns) -> str:
    """What to do about labels that are not 0 and 1: swap the columns, or name the event's label."""
    truth, (prob,) = options.truth or "", options.prob
    if is_text(selection.columns.kind(truth, "--truth")):
        words = checks.unknown_labels(some_labels(selection.columns, truth))
        return f" Its labels are {words}: say which one is the event, --positive VALUE." if words else ""
    held, score = (selection.columns.number(name, option) for name, option in ((truth, "--truth"), (prob, "--prob")))
    shares, labels = (held >= 0) & (held <= 1), (score == 0) | (score == 1)
    found = selection.columns.frame.select(shares.all().alias("shares"), labels.all().alias("labels")).collect().row(0)
    return _SWAPPED if all(found) else " Say which number is the event, --positive VALUE."
