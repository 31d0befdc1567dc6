"""Files, through an embedded DuckDB: Parquet, CSV and JSON lines, here or in an object store."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.data.validation import InvalidPredictions

#: Which reader takes which files; a compression suffix may follow.
READERS = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
#: DuckDB indexes group numbers of so many bits directly instead of hashing them: 2^16 cells and null.
DIRECT_BITS = 17
_LACKING = (
    "Reading {names[0]!r} needs DuckDB's extension {extension!r}, which is not here and could not be downloaded. "
    "Install it once where there is a network, python -c \"import duckdb; duckdb.install_extension('{extension}')\", "
    "or give a frame that reads the files itself, e.g. polars.scan_parquet(...)."
)
_COMPRESSED = (".gz", ".zst", ".snappy")


@dataclass(frozen=True)
class Files:
    """Files of one format, to be read as one table."""

    names: tuple[str, ...]
    reader: str

    @property
    def counted(self) -> bool:
        """Whether the number of rows stands in the files' own metadata."""
        return self.reader == "read_parquet"


def is_path(source: object) -> bool:
    """Whether a source is the name of a file, a folder or a pattern."""
    return isinstance(source, (str, os.PathLike))


def files(paths: Sequence[str | os.PathLike[str]]) -> list[Files]:
    """The files that paths, folders and patterns name, one entry per format; an error where there are none."""
    formats: dict[str, list[str]] = {}
    for path in paths:
        for name in _expanded(os.fspath(path)):
            formats.setdefault(_reader(name), []).append(name)
    return [Files(tuple(names), reader) for reader, names in formats.items()]


@contextmanager
def connection() -> Iterator[Any]:
    """A DuckDB of our own, in memory, gone afterwards."""
    try:
        import duckdb
    except ImportError as error:
        message = "Reading files needs DuckDB: pip install 'calibrant[files]'."
        raise ImportError(message) from error
    with duckdb.connect(":memory:") as opened:
        opened.execute("SET preserve_insertion_order = false")
        opened.execute(f"SET perfect_ht_threshold = {DIRECT_BITS}")
        yield opened


@contextmanager
def relation(opened: Any, source: Files) -> Iterator[Any]:
    """The files as a DuckDB relation; what DuckDB says of a broken file is passed on with the file's name."""
    import duckdb

    try:
        if source.reader != "read_parquet" and len(source.names) > 1:
            _require_alike(opened, source)
        yield getattr(opened, source.reader)(list(source.names))
    except duckdb.Error as error:
        lacking = re.search(r"required extension '?\"?(\w+)", str(error))
        if lacking:
            raise ImportError(_LACKING.format(names=source.names, extension=lacking.group(1))) from error
        raise InvalidPredictions(_explained(opened, source, error)) from error


def _require_alike(opened: Any, source: Files) -> None:
    """Text files carry no schema: DuckDB would match their columns by place, and numbers with words as words."""
    first = None
    for name in source.names:
        read = getattr(opened, source.reader)([name])
        found = dict(zip(read.columns, (str(kind) == "VARCHAR" for kind in read.types), strict=True))
        if first is None:
            first = found
        elif source.reader == "read_csv" and list(found) != list(first):
            message = (
                f"Cannot read {name!r}: its columns are {list(found)}, those of {source.names[0]!r} {list(first)}."
            )
            raise InvalidPredictions(message)
        for column in (column for column in found if found[column] != first.setdefault(column, found[column])):
            kinds = ("text", "no text") if found[column] else ("no text", "text")
            message = (
                f"Cannot read {name!r}: column {column!r} holds {kinds[0]} there, {kinds[1]} in {source.names[0]!r}."
            )
            raise InvalidPredictions(message)


def _expanded(path: str) -> list[str]:
    if "://" in path:
        return [path]
    if Path(path).is_dir():
        found = [
            str(name) for name in sorted(Path(path).rglob("*")) if name.is_file() and _suffix(str(name)) in READERS
        ]
        names = [name for name in found if not Path(name).name.startswith((".", "_"))]
    else:
        names = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
    if not names:
        message = f"No file matches {path!r}."
        raise FileNotFoundError(message)
    empty = [name for name in names if Path(name).stat().st_size == 0]
    if empty:
        message = f"The file {empty[0]!r} is empty (0 bytes)" + (
            f", as are {len(empty) - 1} more." if empty[1:] else "."
        )
        raise InvalidPredictions(message)
    return names


def _suffix(name: str) -> str:
    stem = name.split("?")[0].rstrip("*")
    for ending in _COMPRESSED:
        stem = stem.removesuffix(ending)
    return Path(stem).suffix.lower()


def _reader(name: str) -> str:
    suffix = _suffix(name)
    if suffix not in READERS:
        message = f"Cannot tell the format of {name!r} from its name; known endings are {', '.join(READERS)}."
        raise ValueError(message)
    return READERS[suffix]


def _explained(opened: Any, source: Files, error: Exception) -> str:
    """DuckDB's message, preceded by the file it is about, which is looked for one by one where it is not named."""
    text = str(error).strip()
    said = re.search(r'(?:read|in) file "([^"]+)"', text)
    culprit = said.group(1) if said else _culprit(opened, source)
    return f"Cannot read {culprit!r}: {text}"


def _culprit(opened: Any, source: Files) -> str:
    """The first file that cannot be read by itself, or whose columns differ in type from those of the first file."""
    import duckdb

    kinds: dict[str, str] = {}
    for name in source.names:
        try:
            read = getattr(opened, source.reader)([name])
            read.aggregate(", ".join(f"count({quoted(column)})" for column in read.columns)).fetchall()
        except duckdb.Error:
            return name
        found = dict(zip(read.columns, map(str, read.types), strict=True))
        if any(kinds.setdefault(column, kind) != kind for column, kind in found.items()):
            return name
    return source.names[0]


def quoted(name: str) -> str:
    """A column name that SQL takes for nothing else."""
    return '"' + name.replace('"', '""') + '"'
