"""Predictions out of files: which columns mean what, and how they become a task or, where they are many, a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.formats import UsageError, columns_of, header, reading, relations
from calibrant.data.forecasts import Gaussian, Quantiles
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.table.bintable import BinTable

#: Beyond this many rows a binary file is grouped by DuckDB and only the table comes to Python.
TABLE_ROWS = 2_000_000

#: Names that are taken for a column when none is given, in this order.
GUESSES = {
    "truth": ("y_true", "y", "truth", "label", "target", "outcome", "actual"),
    "prob": ("y_prob", "p", "prob", "probability", "score", "confidence"),
}


@dataclass(frozen=True)
class Columns:
    """Which columns of a file mean what, as far as the options say."""

    truth: str | None = None
    prob: tuple[str, ...] = ()
    mean: str | None = None
    std: str | None = None
    quantiles: tuple[str, ...] = ()
    positive: str | None = None
    prior: float | None = None
    by: str | None = None
    weight: str | None = None
    where: str | None = None


@dataclass(frozen=True, eq=False)
class Loaded:
    """A file as predictions: a task with the group of each row, or tables where the rows were too many."""

    data: Predictions | BinTable
    by: Any = None
    notes: tuple[str, ...] = ()


def load(paths: Sequence[str], columns: Columns) -> Loaded:
    """Read the predictions in `paths`; columns not named are guessed, and every guess is noted."""
    with reading(paths) as (opened, sources):
        notes: list[str] = []
        names, rows = header(opened, sources)
        columns = _guessed(columns, names, notes)
        require_columns(_wanted(columns), names)
        one_event = len(columns.prob) == 1 and columns.positive is None and columns.mean is None
        if one_event and rows > TABLE_ROWS:
            notes.append(f"{rows:,} rows: grouped by DuckDB, measured from the table.")
            return _tables(opened, sources, columns, notes)
        table = columns_of(opened, sources, _wanted(columns), columns.where)
        _require_rows(table, paths, columns)
        return Loaded(_task(table, columns), table.get(columns.by or ""), tuple(notes))


def load_models(paths: Sequence[str], columns: Columns) -> tuple[list[Binary], tuple[str, ...]]:
    """The same rows as predicted by several models, one column of `columns.prob` each, read once; and notes."""
    with reading(paths) as (opened, sources):
        notes: list[str] = []
        names, rows = header(opened, sources)
        columns = _guessed(columns, names, notes)
        require_columns(_wanted(columns), names)
        if rows > TABLE_ROWS:
            message = 'Comparison needs the rows; take a sample, e.g. with --where "random() < 0.1".'
            raise UsageError(message)
        table = columns_of(opened, sources, _wanted(columns), columns.where)
        _require_rows(table, paths, columns)
    return [Binary(table[columns.truth or ""], table[name]) for name in columns.prob], tuple(notes)


def read_columns(path: str) -> dict[str, NDArray[Any]]:
    """All columns of one file, in the order of its rows."""
    with reading([path]) as (opened, sources):
        opened.execute("SET preserve_insertion_order = true")
        names, _ = header(opened, sources)
        return columns_of(opened, sources, names, None)


def _require_rows(table: dict[str, NDArray[Any]], paths: Sequence[str], columns: Columns) -> None:
    if not len(next(iter(table.values()))):
        message = f"{', '.join(paths)} has no rows{' that fit --where' if columns.where else ''}."
        raise InvalidPredictions(message)


def _guessed(columns: Columns, header: Sequence[str], notes: list[str]) -> Columns:
    if columns.truth is None:
        columns = replace(columns, truth=guessed_column("truth", header, notes))
    if not columns.prob and columns.mean is None and not columns.quantiles:
        columns = replace(columns, prob=(guessed_column("prob", header, notes),))
    return columns


def guessed_column(what: str, header: Collection[str], notes: list[str]) -> str:
    """The column that by its name is the truth or the probability; the guess is noted."""
    lower = {name.lower(): name for name in header}
    found = next((lower[name] for name in GUESSES[what] if name in lower), None)
    if found is None:
        message = f"Which column is --{what}? Say --{what} NAME; the file has {_listed(header)}."
        raise UsageError(message)
    notes.append(f"Taking column {found!r} as --{what}.")
    return found


def _wanted(columns: Columns) -> list[str]:
    single = (columns.truth, columns.mean, columns.std, columns.by, columns.weight)
    named = [*columns.prob, *(item.split("=", 1)[-1] for item in columns.quantiles)]
    return list(dict.fromkeys([name for name in single if name] + named))


def require_columns(names: Sequence[str], header: Collection[str]) -> None:
    """Raise unless every name is that of a column."""
    for name in names:
        if name not in header:
            message = f"There is no column {name!r}; the file has {_listed(header)}."
            raise UsageError(message)


def _listed(header: Collection[str]) -> str:
    return ", ".join(map(repr, header))


def _task(table: dict[str, NDArray[Any]], columns: Columns) -> Predictions:
    y = table[columns.truth or ""]
    weight = None if columns.weight is None else table[columns.weight]
    if columns.mean is not None:
        if columns.std is None:
            message = "--mean needs --std, the column of standard deviations."
            raise UsageError(message)
        return Gaussian(y, table[columns.mean], table[columns.std], weight=weight)
    if columns.quantiles:
        return _quantiles(y, table, columns, weight)
    if columns.positive is not None:
        return _unlabeled(y, table[columns.prob[0]], columns)
    if len(columns.prob) > 1:
        probs = np.stack([table[name] for name in columns.prob], axis=1)
        labels = list(columns.prob)
        text = y.dtype.kind in "OUS"
        return Multiclass(y.astype(str) if text else y, probs, classes=labels if text else None, weight=weight)
    return Binary(y, table[columns.prob[0]], weight=weight)


def _quantiles(y: NDArray[Any], table: dict[str, NDArray[Any]], columns: Columns, weight: Any) -> Quantiles:
    pairs = []
    for item in columns.quantiles:
        level, _, name = item.partition("=")
        try:
            pairs.append((float(level), name))
        except ValueError:
            message = f"--quantiles takes LEVEL=COLUMN, e.g. 0.05=q05, got {item!r}."
            raise UsageError(message) from None
    pairs.sort()
    values = np.stack([table[name] for _, name in pairs], axis=1)
    return Quantiles(y, [level for level, _ in pairs], values, weight=weight)


def _unlabeled(y: NDArray[Any], p: NDArray[Any], columns: Columns) -> PositiveUnlabeled:
    if columns.prior is None:
        message = "--positive needs --prior, the share of positives in the population."
        raise UsageError(message)
    labelled = y.astype(str) == str(columns.positive)
    if not labelled.any():
        message = f"No row of column {columns.truth!r} is {columns.positive!r}, the value of --positive."
        raise InvalidPredictions(message)
    return PositiveUnlabeled(p[labelled], p[~labelled], prior=columns.prior)


def _tables(opened: Any, sources: Sequence[Any], columns: Columns, notes: list[str]) -> Loaded:
    """The table of all rows, and one per group; DuckDB filters Arrow tables, which do not understand SQL themselves."""
    if columns.where and not all(isinstance(source, str) for source in sources):
        with relations(opened, sources) as parts:
            chosen = [read.filter(columns.where) for read in parts]
            return _grouped(chosen, replace(columns, where=None), notes)
    return _grouped(list(sources), columns, notes)


def _grouped(sources: list[Any], columns: Columns, notes: list[str]) -> Loaded:
    from calibrant.scale import bin_table, bin_tables
    from calibrant.table.bintable import merge

    options: dict[str, Any] = {
        "y_true": columns.truth or "",
        "y_prob": columns.prob[0],
        "weight": columns.weight,
        "where": columns.where,
    }
    if columns.by is None:
        return Loaded(bin_table(sources, **options), None, tuple(notes))
    tables = bin_tables(sources, by=columns.by, **options)
    return Loaded(merge(list(tables.values())), tables, tuple(notes))
