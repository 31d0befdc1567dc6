"""Predictions out of files: which columns mean what, and how they become a task or, where they are many, a table."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._atomic_write import replacing
from calibrant.data.distributions import Gaussian, Quantiles
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.scale.paths import connection, files, quoted, relation
from calibrant.table.bintable import BinTable

#: Beyond this many rows a binary file is grouped by DuckDB and only the table comes to Python.
TABLE_ROWS = 2_000_000

#: Names that are taken for a column when none is given, in this order.
GUESSES = {
    "truth": ("y_true", "y", "truth", "label", "target", "outcome", "actual"),
    "prob": ("y_prob", "p", "prob", "probability", "score", "confidence"),
}


class UsageError(Exception):
    """The call's words are off; the message is for the user."""


@dataclass(frozen=True)
class Columns:
    """What the user said about the columns of a file."""

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
    with _named_files(paths) as names, connection() as opened:
        notes: list[str] = []
        header, rows = _header(opened, names)
        columns = _guessed(columns, header, notes)
        require_columns(_wanted(columns), header)
        one_event = len(columns.prob) == 1 and columns.positive is None and columns.mean is None
        if one_event and rows > TABLE_ROWS:
            notes.append(f"{rows:,} rows: grouped by DuckDB, measured from the table.")
            return _tables(names, columns, notes)
        table = _read(opened, names, _wanted(columns), columns.where)
        if not len(next(iter(table.values()))):
            message = f"{', '.join(paths)} has no rows{' that fit --where' if columns.where else ''}."
            raise InvalidPredictions(message)
        return Loaded(_task(table, columns), table.get(columns.by or ""), tuple(notes))


def read_columns(path: str) -> dict[str, NDArray[Any]]:
    """All columns of one file, in the order of its rows."""
    with _named_files([path]) as found, connection() as opened:
        opened.execute("SET preserve_insertion_order = true")
        header, _ = _header(opened, found)
        return _read(opened, found, header, None)


@contextmanager
def _named_files(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths, with `-` (standard input) and Arrow files copied to a format that DuckDB reads."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for k, path in enumerate(paths):
            if path == "-":
                names.append(_from_standard_input(Path(folder)))
            elif Path(path).suffix.lower() in (".arrow", ".feather", ".ipc"):
                names.append(_from_arrow(path, Path(folder) / f"{k}.parquet"))
            else:
                names.append(path)
        yield names


def _from_standard_input(folder: Path) -> str:
    content = sys.stdin.buffer.read()
    if not content.strip():
        message = "Standard input is empty."
        raise InvalidPredictions(message)
    suffix = ".parquet" if content[:4] == b"PAR1" else ".jsonl" if content.lstrip()[:1] == b"{" else ".csv"
    path = folder / f"standard-input{suffix}"
    path.write_bytes(content)
    return str(path)


def _from_arrow(path: str, target: Path) -> str:
    from pyarrow import ArrowInvalid, feather, parquet

    try:
        parquet.write_table(feather.read_table(path), target)
    except ArrowInvalid as error:
        message = f"Cannot read {path!r} as Arrow: {error}"
        raise InvalidPredictions(message) from error
    return str(target)


def _header(opened: Any, names: Sequence[str]) -> tuple[list[str], int]:
    found: list[str] = []
    rows = 0
    for source in files(names):
        with relation(opened, source) as read:
            found = found or list(read.columns)
            rows += int(read.aggregate("count(*)").fetchall()[0][0])
    return found, rows


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


def _read(opened: Any, names: Sequence[str], wanted: Sequence[str], where: str | None) -> dict[str, NDArray[Any]]:
    parts = []
    for source in files(names):
        with relation(opened, source) as read:
            chosen = read.filter(where) if where else read
            parts.append(chosen.project(", ".join(quoted(name) for name in wanted)).fetchnumpy())
    return {name: np.concatenate([_plain(part[name]) for part in parts]) for name in wanted}


def _plain(values: Any) -> NDArray[Any]:
    """DuckDB marks missing values by masked arrays; they become NaN or None, which the door refuses by row."""
    if isinstance(values, np.ma.MaskedArray):
        plain: NDArray[Any] = values.data
        missing = np.ma.getmaskarray(values)
        if missing.any():
            plain = plain.astype(np.float64 if plain.dtype.kind in "fiub" else object)
            plain[missing] = np.nan if plain.dtype.kind == "f" else None
        return plain
    return np.asarray(values)


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


def _tables(names: Sequence[str], columns: Columns, notes: list[str]) -> Loaded:
    from calibrant.scale import bin_table
    from calibrant.table.bintable import merge

    found: Any = bin_table(
        list(names),
        y_true=columns.truth or "",
        y_prob=columns.prob[0],
        weight=columns.weight,
        by=columns.by,
        where=columns.where,
    )
    if columns.by is None:
        return Loaded(found, None, tuple(notes))
    return Loaded(merge(list(found.values())), found, tuple(notes))


def write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write columns as Parquet, CSV or JSON lines by the ending of the path; the file appears whole or not at all."""
    import pyarrow as pa

    suffix = path.suffix.lower()
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    with replacing(path) as place:
        if suffix in (".parquet", ".pq"):
            from pyarrow import parquet

            parquet.write_table(table, place)
        elif suffix == ".csv":
            from pyarrow import csv

            csv.write_csv(table, place)
        elif suffix in (".jsonl", ".ndjson"):
            with open(place, "w", encoding="utf8") as file:
                file.writelines(json.dumps(row, default=str) + "\n" for row in table.to_pylist())
        else:
            message = f"Tables are written as .parquet, .csv or .jsonl, not as {path.name!r}."
            raise UsageError(message)
