"""Files as one table of an embedded DuckDB: Parquet, CSV, JSON and Arrow, here or in an object store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from calibrant.data.validation import InvalidPredictions
from calibrant.scale.paths import Files
from calibrant.scale.scans import alike_parts, part_of, quoted
from calibrant.scale.schemas import Part, Schema, common_schema

#: DuckDB indexes group numbers of so many bits directly instead of hashing them: 2^16 cells and null.
DIRECT_BITS = 17
#: The number of a row in its file, from 1, without the header.
FILE_ROW = "_calibrant_file_row"
_LACKING = (
    "Reading {name!r} needs DuckDB's extension {extension!r}, which is not here and could not be downloaded. "
    "Install it once where there is a network, python -c \"import duckdb; duckdb.install_extension('{extension}')\", "
    "or give a frame that reads the files itself, e.g. polars.scan_parquet(...)."
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class FileTable:
    """The files as one DuckDB relation; `refused` says of columns that differ between files why they cannot be used."""

    opened: Any
    files: Files
    relation: Any
    schema: Schema
    whole: bool

    @property
    def refused(self) -> dict[str, str]:
        """Columns that not all files have with one type, and what to say of them."""
        return self.schema.refused

    def numbered(self) -> Iterator[tuple[str, Any]]:
        """Each file by itself, in order, with the number of the row in the file as `FILE_ROW`."""
        self.opened.execute("SET preserve_insertion_order = true")
        for kind, name in self.files.each:
            part = part_of(self.opened, replace(self.files, names={kind: (name,)}), kind, (name,), whole=self.whole)
            relation = self.opened.sql(_select([part], self.schema if self.schema.types else None))
            yield name, relation.project(f"*, row_number() OVER () AS {FILE_ROW}")


@contextmanager
def connection() -> Iterator[Any]:
    """A DuckDB of our own, in memory, gone afterwards."""
    try:
        import duckdb
    except ImportError as error:
        message = "Reading files needs DuckDB: pip install 'calibrant[files]'."
        raise ImportError(message) from error
    with duckdb.connect(":memory:") as opened:
        opened.execute("SET enable_progress_bar = false")  # it would write into the output of programs
        opened.execute("SET preserve_insertion_order = false")
        opened.execute(f"SET perfect_ht_threshold = {DIRECT_BITS}")
        yield opened


def read(files: Files, use: Callable[[FileTable], Result]) -> Result:
    """What `use` makes of the files; what DuckDB says of a broken file is passed on with the file's name.

    `use` may run twice: where the first rows of a text file promised numbers and a later one is a word, the types are
    found from all rows instead.
    """
    with connection() as opened:
        import duckdb

        try:
            return use(_table(opened, files, whole=False))
        except duckdb.Error as error:
            lacking = re.search(r"required extension '?\"?(\w+)", str(error))
            if lacking:
                name = files.each[0][1]
                raise ImportError(_LACKING.format(name=name, extension=lacking.group(1))) from error
            if not files.text:
                raise InvalidPredictions(_explained(opened, files, error)) from error
        try:
            return use(_table(opened, files, whole=True))
        except duckdb.Error as error:
            raise InvalidPredictions(_explained(opened, files, error)) from error


def filtered(relation: Any, where: str, refused: Mapping[str, str]) -> Any:
    """The rows that fit a condition in SQL, which must not need a column of those `refused`."""
    import duckdb

    try:
        return relation.filter(where)
    except (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException) as error:
        explained = unusable(where, refused)
        message = explained or f"where is no condition on the columns, {where!r}: {first_line(error)}"
        raise InvalidPredictions(message) from error


def unusable(sql: str, refused: Mapping[str, str]) -> str | None:
    """Why a column that a piece of SQL mentions cannot be used."""
    return next((message for column, message in refused.items() if re.search(rf"\b{re.escape(column)}\b", sql)), None)


def first_line(error: Exception) -> str:
    """What DuckDB says, without the picture of the place."""
    return str(error).strip().split("\n")[0]


def _table(opened: Any, files: Files, *, whole: bool) -> FileTable:
    parts = [
        part for kind, names in files.names.items() for part in alike_parts(opened, files, kind, names, whole=whole)
    ]
    if len(parts) == 1:
        return FileTable(opened, files, opened.sql(_select(parts, None)), Schema({}), whole)
    schema = common_schema(parts, lambda part, column: _is_empty(opened, part, column))
    if not schema.types:
        raise InvalidPredictions(next(iter(schema.refused.values())))
    return FileTable(opened, files, opened.sql(_select(parts, schema)), schema, whole)


def _select(parts: Sequence[Part], schema: Schema | None) -> str:
    """SQL for all rows of the parts, under the types of the schema."""
    if schema is None:
        return f"SELECT * FROM {parts[0].scan}"
    selects = []
    for part in parts:
        columns = (
            quoted(name) if part.types.get(name) == kind else f"CAST({_value(part, name)} AS {kind}) AS {quoted(name)}"
            for name, kind in schema.types.items()
        )
        selects.append(f"SELECT {', '.join(columns)} FROM {part.scan}")
    return " UNION ALL ".join(selects)


def _value(part: Part, name: str) -> str:
    return quoted(name) if name in part.types else "NULL"


def _is_empty(opened: Any, part: Part, column: str) -> bool:
    return opened.sql(f"SELECT count({quoted(column)}) FROM {part.scan}").fetchall()[0][0] == 0


def _explained(opened: Any, files: Files, error: Exception) -> str:
    """DuckDB's message, preceded by the file it is about, which is looked for one by one where it is not named."""
    text = str(error).strip()
    said = re.search(r'(?:read|in) file "([^"]+)"', text)
    culprit = said.group(1) if said else _culprit(opened, files)
    return f"Cannot read {culprit!r}: {text}"


def _culprit(opened: Any, files: Files) -> str:
    """The first file that cannot be read by itself."""
    import duckdb

    for kind, name in files.each:
        try:
            part = part_of(opened, files, kind, (name,), whole=False)
            counts = ", ".join(f"count({quoted(column)})" for column in part.types)
            opened.sql(f"SELECT {counts} FROM {part.scan}").fetchall()
        except duckdb.Error:
            return name
    return files.each[0][1]
