"""Files of every format through one DuckDB connection, and back."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._atomic_write import replacing
from calibrant.data.validation import InvalidPredictions
from calibrant.scale.paths import connection, files, quoted, relation


class UsageError(Exception):
    """Invalid command-line arguments; the message is for the user."""


@contextmanager
def reading(paths: Sequence[str]) -> Iterator[tuple[Any, list[Any]]]:
    """A DuckDB connection, and what it reads: names of files, Arrow tables, and a copy of standard input (`-`)."""
    with tempfile.TemporaryDirectory() as folder, connection() as opened:
        sources: list[Any] = []
        for path in paths:
            if path == "-":
                sources.append(_from_standard_input(Path(folder)))
            elif Path(path).suffix.lower() in (".arrow", ".feather", ".ipc"):
                sources.append(_from_arrow(path))
            else:
                sources.append(path)
        yield opened, sources


@contextmanager
def relations(opened: Any, sources: Sequence[Any]) -> Iterator[Iterator[Any]]:
    """The sources as DuckDB relations: files of one format as one, every Arrow table by itself."""
    with ExitStack() as stack:
        named = [source for source in sources if isinstance(source, str)]
        arrows = (opened.from_arrow(source) for source in sources if not isinstance(source, str))
        yield chain((stack.enter_context(relation(opened, one)) for one in files(named)), arrows)


def _from_standard_input(folder: Path) -> str:
    content = sys.stdin.buffer.read()
    if not content.strip():
        message = "Standard input is empty."
        raise InvalidPredictions(message)
    suffix = ".parquet" if content[:4] == b"PAR1" else ".jsonl" if content.lstrip()[:1] == b"{" else ".csv"
    path = folder / f"standard-input{suffix}"
    path.write_bytes(content)
    return str(path)


def _from_arrow(path: str) -> Any:
    from pyarrow import ArrowInvalid, feather

    try:
        return feather.read_table(path)
    except ArrowInvalid as error:
        message = f"Cannot read {path!r} as Arrow: {error}"
        raise InvalidPredictions(message) from error


def header(opened: Any, sources: Sequence[Any]) -> tuple[list[str], int]:
    """Names of the columns, and number of rows."""
    found: list[str] = []
    rows = 0
    with relations(opened, sources) as parts:
        for read in parts:
            found = found or list(read.columns)
            rows += int(read.aggregate("count(*)").fetchall()[0][0])
    return found, rows


def columns_of(
    opened: Any, sources: Sequence[Any], wanted: Sequence[str], where: str | None
) -> dict[str, NDArray[Any]]:
    """The wanted columns of the rows that fit the condition."""
    found = []
    with relations(opened, sources) as parts:
        for read in parts:
            chosen = read.filter(where) if where else read
            found.append(chosen.project(", ".join(quoted(name) for name in wanted)).fetchnumpy())
    return {name: np.concatenate([_plain(one[name]) for one in found]) for name in wanted}


def _plain(values: Any) -> NDArray[Any]:
    """DuckDB marks missing values by masked arrays; they become NaN or None, which validation refuses by row."""
    if isinstance(values, np.ma.MaskedArray):
        plain: NDArray[Any] = values.data
        missing = np.ma.getmaskarray(values)
        if missing.any():
            plain = plain.astype(np.float64 if plain.dtype.kind in "fiub" else object)
            plain[missing] = np.nan if plain.dtype.kind == "f" else None
        return plain
    return np.asarray(values)


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
