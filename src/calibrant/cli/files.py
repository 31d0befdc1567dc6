"""Predictions from files: columns of numbers become the predictions of a task or, where rows are many, a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.cli.columns import Columns, labels_of, require_columns, separated
from calibrant.cli.console import copy_of_standard_input, refuse, temporary_folder
from calibrant.cli.selection import LABEL, Selection, located, positive_label, selected, text_classes, without_missing
from calibrant.data.forecasts import Gaussian, Quantiles, Samples
from calibrant.data.groups import groups
from calibrant.data.judged import Judged
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Confidence, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.scale.checks import is_text, labels_of_columns, outcome, require_one_pair, require_two, some_labels
from calibrant.scale.columns import EventColumns
from calibrant.scale.duckdb_files import FileTable, read
from calibrant.scale.paths import files
from calibrant.table.bintable import BinTable

#: The outcomes among the columns of a file; no column has an empty name.
TRUTH = ""

Arrays = dict[str, NDArray[Any]]


def task_from(found: Arrays, columns: Columns, group: Any = None, by: Any = ()) -> Predictions:
    """The predictions that the columns are, one array per name; the outcomes are under `TRUTH`."""
    y, weight = found[TRUTH], None if columns.weight is None else found[columns.weight]
    more: dict[str, Any] = {"weight": weight, "group": group}
    if columns.task == "spread":
        return Gaussian(y, found[columns.mean or ""], found[columns.std or ""], **more)
    if columns.task == "quantiles":
        values = _matrix(found, [name for _, name in columns.levels])
        return Quantiles(y, [level for level, _ in columns.levels], values, **more)
    if columns.task == "members":
        return Samples(y, _matrix(found, columns.members), **more)
    if columns.task == "unlabeled":
        return _unlabeled(y, found[columns.prob[0]], weight, columns)
    if columns.task == "judged":
        scores, (prob,), name = _matrix(found, columns.judge), columns.prob, columns.label_weight
        weight = None if name is None else found[name]
        data = Judged(y, found[prob], judge=scores, weight=weight, group=group, by=by)
        data.names = {"gold": columns.truth, "p": prob, "judge": list(columns.judge), "group": columns.cluster}
        data.names["weight"] = name  # for the code that a report shows
        return data
    if columns.task == "multiclass":
        text = y.dtype.kind in "OUS"
        labels = text_classes(columns, np.unique(y)) if text else labels_of_columns(None, columns.prob)
        return Multiclass(y, _matrix(found, columns.prob), classes=list(labels), **more)
    kind = Confidence if columns.answers else Binary
    return kind(y, found[columns.prob[0]], **more)


def _matrix(found: Arrays, names: Any) -> NDArray[Any]:
    return np.stack([found[name] for name in names], axis=1)


def _unlabeled(y: NDArray[Any], p: NDArray[Any], weight: NDArray[Any] | None, columns: Columns) -> PositiveUnlabeled:
    known = y == columns.labelled
    if not known.any():
        fail(f"No row of column {columns.truth!r} is {columns.labelled!r}, the value of --labelled.")
    if known.all():
        fail(f"Every row of column {columns.truth!r} is {columns.labelled!r}: there are no unlabeled rows.")
    scenario: Any = "single-sample" if columns.single_sample else "case-control"
    stacked = None if weight is None else np.concatenate([weight[known], weight[~known]])
    return PositiveUnlabeled(p[known], p[~known], prior=columns.prior, scenario=scenario, weight=stacked)


#: Beyond this many rows a binary file is grouped by DuckDB and only the table comes to Python.
#: Speed: from here on sorting the rows takes longer than one GROUP BY; results agree within `BinTable.error_bound`.
TABLE_ROWS = 2_000_000

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Loaded:
    """Files as predictions: a task with the group of each row, or tables where the rows were too many.

    `by` is None, the group of each row or a table per group; for several groupings a dictionary of the groups of the
    rows by grouping, or of tables by ``grouping = group``.
    """

    data: Predictions | BinTable
    by: Any = None
    notes: tuple[str, ...] = ()
    #: The model that gave each answer, where a column or a log says so, and the cluster of each row.
    model: Any = None
    cluster: Any = None
    #: The share of the rows that was left out for missing values.
    left_out: float = 0.0
    #: Other columns of the same rows, where some were asked for.
    features: dict[str, NDArray[Any]] | None = None


def load(paths: Sequence[str], columns: Columns, *, features: Sequence[str] = (), sample: int | None = None) -> Loaded:
    """Read the predictions in `paths`; columns not named are guessed, and every guess is noted.

    `features` are columns and patterns to be read with them. Of very many rows, a seed in `sample` draws some.
    """
    return _read(paths, columns, partial(_loaded, wanted=features, sample=sample))


def load_models(paths: Sequence[str], columns: Columns) -> tuple[list[Predictions], tuple[str, ...]]:
    """The same rows as predicted by several models, `columns.models`, read once; and notes."""
    return _read(paths, columns, _models)


def _read(paths: Sequence[str], columns: Columns, use: Callable[[FileTable, Columns, list[str]], Result]) -> Result:
    """What `use` makes of the files; errors in the words of the command line."""
    columns.require_consistent()
    with temporary_folder() as folder:
        given = [copy_of_standard_input(folder) if path == "-" else path for path in paths]
        names, asked, said = of_logs(given, columns, folder)

        def used(table: FileTable) -> Result:
            table.opened.execute("SET preserve_insertion_order = true")  # folds of rows depend on their order
            notes = list(said)
            columns = asked.guessed([*table.relation.columns, *table.refused], notes)
            try:
                return use(table, columns, notes)
            except NoRows as error:
                fail(f"{', '.join(paths)} has no rows{error}.")
            except InvalidPredictions as error:
                fail(located(table, columns, error))

        return read(files(names, asked.reading), used)


def of_logs(names: list[str], columns: Columns, folder: Path) -> tuple[list[str], Columns, tuple[str, ...]]:
    """Logs of evaluations as one file of answers in `folder`, its columns, and what was found; other files as they are.

    Files beside outputs of a batch hold the right answers, in columns custom_id and answer.
    """
    from calibrant.scale.evaluation_logs import logs_in, read_eval

    logs = [] if columns.chosen else [name for name in names if next(logs_in(Path(name)), None) is not None]
    if not logs:
        return names, columns, ()
    import pyarrow as pa
    from pyarrow import parquet

    keys = [name for name in names if name not in logs]
    right = read(files(keys, columns.reading), _right_answers) if keys else None
    log = read_eval(logs, correct=columns.correct, confidence=columns.confidence, answers=right)
    log.require_known(drop_missing=columns.drop_missing, remedy="--drop-missing")
    place = folder / f"{Path(logs[0]).name}.parquet"
    parquet.write_table(pa.table({k: pa.array(values, from_pandas=True) for k, values in log.columns.items()}), place)
    questions, models = (set(log.columns[name].tolist()) for name in ("question", "model"))
    found = replace(
        columns,
        correct="correct",
        confidence="confidence",
        cluster=columns.cluster or ("question" if len(questions) < len(log) else None),
        model=columns.model or ("model" if len(models) > 1 else None),
    )
    return [str(place)], found, log.notes


def _right_answers(table: FileTable) -> dict[str, str]:
    wanted = ("custom_id", "answer")
    require_columns(wanted, table.relation.columns)
    rows = table.relation.project(", ".join(f"CAST({name} AS VARCHAR)" for name in wanted)).fetchall()
    return {str(name): str(answer).strip() for name, answer in rows}


class NoRows(Exception):
    """No row is left; the message says what of the options left none."""


def _loaded(
    table: FileTable, columns: Columns, notes: list[str], *, wanted: Sequence[str] = (), sample: int | None = None
) -> Loaded:
    names = _feature_names(table, columns, wanted, notes) if wanted else []
    selection = _chosen(table, columns, notes)
    rows = _count(table.relation if sample is None else selection.relation)
    if sample is not None and rows > AUDIT_ROWS:
        notes.append(f"{rows:,} rows: audited a random sample of {AUDIT_ROWS:,} of them.")
        drawn = f"SELECT * FROM every USING SAMPLE reservoir({AUDIT_ROWS} ROWS) REPEATABLE ({sample})"
        frame = nw.from_native(selection.relation.query("every", drawn))
        selection = replace(selection, columns=replace(selection.columns, frame=frame))
    alone = columns.task == "binary" and not (columns.answers or columns.cluster or columns.model)
    if sample is None and alone and rows > TABLE_ROWS:
        notes.append(f"{rows:,} rows: grouped by DuckDB, measured from the table.")
        return _tables(selection, columns, notes)
    found = _arrays(selection, columns, names)
    known = {by: groups("--by", found[name]) for by, name in selection.groups.items()}
    named_groups = {by: known[by] for by in columns.by}
    by = next(iter(named_groups.values())) if len(named_groups) == 1 else named_groups or None
    model, cluster = (None if name is None else known[name] for name in (columns.model, columns.cluster))
    data = task_from(found, columns, cluster, named_groups)
    features = {name: found[f"{_FEATURE}{name}"] for name in names} if wanted else None
    return Loaded(data, by, tuple(notes), model, cluster, selection.left_out, features)


def _models(table: FileTable, columns: Columns, notes: list[str]) -> tuple[list[Predictions], tuple[str, ...]]:
    words = 'Comparison needs the rows; take a sample, e.g. with --where "random() < 0.1".'
    refuse(_count(table.relation) > TABLE_ROWS, words)
    selection = _chosen(table, columns, notes)
    found = _arrays(selection, columns)
    cluster = None if columns.cluster is None else groups("--cluster", found[selection.groups[columns.cluster]])
    return [task_from(found, model, cluster) for model in columns.models], tuple(notes)


def _chosen(table: FileTable, columns: Columns, notes: list[str]) -> Selection:
    """The rows that the options select; there must be some, and two labels where one of them was named."""
    selection = selected(table, columns)
    if columns.drop_missing:
        selection, note = without_missing(selection, columns)
        notes.extend([note] if note else [])
    if not _count(selection.relation.limit(1)):
        asked = {"fit --where": columns.where, "have no missing values": columns.drop_missing}
        conditions = [words for words, given in asked.items() if given]
        raise NoRows(f" that {' and '.join(conditions)}" if conditions else "")
    truth = columns.truth or ""
    for name in columns.numbers:
        selection.columns.number(name, columns.roles[name])  # text among them is the first thing to be said
    if columns.positive is not None:
        positive = positive_label(selection.columns, columns)
        require_two(some_labels(selection.columns, truth, positive), positive, truth)
    elif columns.task in ("binary", "judged") and is_text(selection.columns.kind(truth, "--truth")):
        require_one_pair(some_labels(selection.columns, truth), truth)
    return selection


def _arrays(selection: Selection, columns: Columns, features: Sequence[str] = ()) -> Arrays:
    """The columns of the task under the users' names, the outcomes as `TRUTH`, and those of groups and features."""
    named, truth = selection.columns, columns.truth or ""
    numeric = {name: named.number(name, columns.roles[name]) for name in columns.numbers}
    if columns.labelled is not None:
        label = nw.col(LABEL)
    elif columns.task in ("binary", "judged"):
        label = outcome(named, truth, positive_label(named, columns))[0]
    else:
        label = named[truth] if columns.prob else named.number(truth, "--truth")
    groups = {name: nw.col(name) for name in selection.groups.values()}
    wanted = {**numeric, **groups, **{f"{_FEATURE}{name}": nw.col(name) for name in features}, TRUTH: label}
    places = {f"column_{place}": name for place, name in enumerate(wanted)}
    chosen = named.frame.select(*(wanted[name].alias(place) for place, name in places.items()))
    found = chosen.to_native().fetchnumpy()
    return {name: _plain(found[place]) for place, name in places.items()}


def _plain(values: Any) -> NDArray[Any]:
    """DuckDB marks missing values by masked arrays; they become NaN or None, which validation refuses by row."""
    plain, missing = np.asarray(values), np.ma.getmaskarray(values)
    if missing.any():
        plain = plain.astype(np.float64 if plain.dtype.kind in "fiub" else object)
        plain[missing] = np.nan if plain.dtype.kind == "f" else None
    return plain


#: Beyond this many rows an audit takes a random sample of them.
#: Speed: two million rows of twenty features are audited in about a minute; more only narrow its intervals.
AUDIT_ROWS = 2_000_000
_FEATURE = "_calibrant_feature_"
#: Types of columns that are not features.
_TIMES = ("DATE", "TIME", "TIMESTAMP", "INTERVAL")


def _feature_names(table: FileTable, columns: Columns, wanted: Sequence[str], notes: list[str]) -> list[str]:
    """The columns that names and patterns name; patterns leave out columns of the task, and dates, which is noted."""
    kinds = dict(zip(table.relation.columns, map(str, table.relation.types), strict=True))
    wanted = [name for text in wanted for name in separated(text, kinds, "--features")]
    taken = {*columns.roles, *columns.groupings}
    names = [name for name in labels_of(wanted, list(kinds), "--features") if name in wanted or name not in taken]
    require_columns(names, list(kinds))
    dates = [name for name in names if name not in wanted and kinds[name].startswith(_TIMES)]
    if dates:
        notes.append(f"Left out {', '.join(map(repr, dates))}: a date is not a feature; write it as a number or text.")
    names = [name for name in names if name not in dates]
    refuse(not names, "No column is left for --features: name some.")
    return names


def _tables(selection: Selection, columns: Columns, notes: list[str]) -> Loaded:
    """The table of all rows, and one per group of every grouping."""
    from calibrant.scale import bin_table, bin_tables
    from calibrant.table.bintable import merge

    truth, (prob,) = columns.truth or "", columns.prob
    options: dict[str, Any] = {
        "y_true": selection.held(truth),
        "y_prob": selection.held(prob),
        "weight": None if columns.weight is None else selection.held(columns.weight),
        "task": EventColumns(positive=positive_label(selection.columns, columns)),
    }
    source = selection.relation
    if not selection.groups:
        return Loaded(bin_table(source, **options), None, tuple(notes), left_out=selection.left_out)
    tables = {by: bin_tables(source, by=name, **options) for by, name in selection.groups.items()}
    first = next(iter(tables.values()))
    flat = {f"{by} = {name}": table for by, some in tables.items() for name, table in some.items()}
    whole, by = merge(list(first.values())), first if len(tables) == 1 else flat
    return Loaded(whole, by, tuple(notes), left_out=selection.left_out)


def _count(relation: Any) -> int:
    return int(relation.aggregate("count(*)").fetchall()[0][0])
