"""Which files a path, folder or pattern names, and of what format they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Format = Literal["parquet", "csv", "json", "arrow", "numpy"]

#: The format of a file by its ending; that of a compressed text file may be followed by one of `COMPRESSED`.
FORMATS: dict[str, Format] = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}
FORMATS |= {".json": "json", ".jsonl": "json", ".ndjson": "json"}
FORMATS |= {".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npz": "numpy", ".npy": "numpy"}
COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class ReadOptions:
    """How files are read: whether folders named ``key=value`` are columns, and the decimal mark of CSV files."""

    hive: bool = False
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            message = f"decimal must be '.' or ',', got {self.decimal!r}."
            raise ValueError(message)


DEFAULT = ReadOptions()


@dataclass(frozen=True)
class Files:
    """The names of the files of each format, in their order; of those in `checked` all rows are known to be read."""

    names: dict[Format, tuple[str, ...]]
    options: ReadOptions = DEFAULT
    checked: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def counted(self) -> bool:
        """Whether the number of rows stands in the files' own metadata."""
        return set(self.names) == {"parquet"}

    @property
    def text(self) -> bool:
        """Whether some files have no types of their own."""
        return bool({"csv", "json"} & set(self.names))

    @property
    def each(self) -> list[tuple[Format, str]]:
        """Every file by itself."""
        return [(kind, name) for kind, names in self.names.items() for name in names]

    def __str__(self) -> str:
        (_, first), *more = self.each
        return first + (f" and {len(more)} more" if more else "")


def is_path(source: object) -> bool:
    """Whether a source is the name of a file, a folder or a pattern."""
    return isinstance(source, (str, os.PathLike))


def files(paths: Iterable[str | os.PathLike[str]], options: ReadOptions = DEFAULT) -> Files:
    """The files that paths, folders and patterns name, at least one; a path that exists is no pattern."""
    names: dict[Format, list[str]] = {}
    for path in paths:
        for name in _expanded(os.fspath(path)):
            names.setdefault(format_of(name), []).append(name)
    return Files({kind: tuple(found) for kind, found in names.items()}, options)


def format_of(name: str) -> Format:
    """The format of a file, from the ending of its name."""
    suffix = _suffix(name)
    if suffix not in FORMATS:
        message = f"Cannot tell the format of {name!r} from its name; known endings are {', '.join(FORMATS)}."
        raise ValueError(message)
    return FORMATS[suffix]


def is_remote(name: str) -> bool:
    """Whether a file is in an object store or behind an address."""
    return "://" in name


def as_pattern(name: str) -> str:
    """A name as DuckDB takes it, which reads every name as a pattern; those of remote files may be patterns."""
    return name if is_remote(name) else glob.escape(name)


def _expanded(path: str) -> list[str]:
    if is_remote(path):
        return [path]
    if Path(path).is_dir():
        found = [str(name) for name in sorted(Path(path).rglob("*")) if name.is_file()]
        names = [name for name in found if _suffix(name) in FORMATS and not Path(name).name.startswith((".", "_"))]
    else:
        names = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
    if not names:
        message = f"No file matches {path!r}."
        raise FileNotFoundError(message)
    empty = [name for name in names if Path(name).stat().st_size == 0]
    if empty:
        from calibrant.data.validation import InvalidPredictions  # which needs NumPy; options of reading do not

        more = f", as are {len(empty) - 1} more" if empty[1:] else ""
        message = f"The file {empty[0]!r} is empty (0 bytes){more}."
        raise InvalidPredictions(message)
    return names


def _suffix(name: str) -> str:
    stem = name.split("?")[0].rstrip("*") if is_remote(name) else name
    for ending in COMPRESSED:
        if stem.lower().endswith(ending):
            stem = stem[: -len(ending)]
    return Path(stem).suffix.lower()
