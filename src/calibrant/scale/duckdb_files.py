"""Files as one table of an embedded DuckDB: how each format is read, and one type per column for all files.

Types are those of the files; those of several files are compared, widened where they are numbers, and refused where
they differ otherwise. Text files have no types, and DuckDB finds them from the first rows. Since it would round later
numbers to a type of whole numbers, and take words such as ``no`` for truth values, numbers of text files are always
double precision and words stay words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from calibrant.data.validation import InvalidPredictions
from calibrant.scale.paths import Files, Format, as_pattern, is_remote

#: DuckDB's types of whole numbers, and of floating-point ones.
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
WHOLE = (*SIGNED, "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT")
FLOATING = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Part:
    """Files whose columns have the same names and types: what to read them by, and what is in them.

    `absent_is_missing` says that a column which is not there has missing values, as in JSON.
    """

    scan: str
    types: dict[str, str]
    first: str
    absent_is_missing: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns that all parts share, by type, and why others cannot be used."""

    types: dict[str, str]
    refused: dict[str, str] = field(default_factory=dict)


def common_schema(parts: Sequence[Part], is_empty: Callable[[Part, str], bool]) -> Schema:
    """The columns of all parts under one type each.

    Whole and floating-point numbers are widened. A column with any other mixture of types, or that some files lack,
    is refused once somebody asks for it; `is_empty` tells whether a part has no value at all in a column, which then
    fits every type.
    """
    types: dict[str, str] = {}
    refused: dict[str, str] = {}
    for column in dict.fromkeys(column for part in parts for column in part.types):
        holders = [part for part in parts if column in part.types]
        lacking = [part for part in parts if column not in part.types and not part.absent_is_missing]
        if lacking:
            refused[column] = (
                f"Cannot read {lacking[0].first!r}: it has no column {column!r}, which {holders[0].first!r} has; its "
                f"columns are {', '.join(map(repr, lacking[0].types))}."
            )
            continue
        kind = widened([part.types[column] for part in holders])
        if kind is None:
            filled = [part for part in holders if not is_empty(part, column)] or holders[:1]
            kind = widened([part.types[column] for part in filled])
            if kind is None:
                refused[column] = _mixed(column, filled)
                continue
        types[column] = kind
    return Schema(types, refused)


def widened(kinds: Sequence[str]) -> str | None:
    """One type for all values of these types without loss, None where there is none."""
    found = set(kinds)
    if len(found) == 1:
        return kinds[0]
    if found <= {*WHOLE, *FLOATING} and found & set(FLOATING):
        return "DOUBLE"
    if found <= set(WHOLE):
        return max(found, key=SIGNED.index) if found <= set(SIGNED) else "HUGEINT"
    return None


def _mixed(column: str, parts: Sequence[Part]) -> str:
    first = parts[0]
    other = next(part for part in parts if widened([part.types[column], first.types[column]]) is None)
    return (
        f"Cannot read {other.first!r}: column {column!r} is of type {other.types[column]} there and of type "
        f"{first.types[column]} in {first.first!r}. Write both files with one type; only numbers are widened."
    )


#: What the words and numbers of a CSV file may become.
TEXT_TYPES = ("TIMESTAMP", "DOUBLE", "VARCHAR")


def quoted(name: str) -> str:
    """A column name that SQL takes for nothing else."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text that SQL takes for nothing else."""
    return "'" + text.replace("'", "''") + "'"


def alike_parts(opened: Any, files: Files, kind: Format, names: tuple[str, ...], *, whole: bool) -> list[Part]:
    """The files of one format, those of the same columns and types together."""
    names = tuple(found for name in names for found in _listed(opened, name))
    if kind == "parquet":
        alike: dict[Any, list[str]] = {}
        for name, mark in _parquet_marks(opened, names):
            alike.setdefault(mark, []).append(name)
        return [part_of(opened, files, kind, tuple(same), whole=whole) for same in alike.values()]
    parts: dict[Any, list[str]] = {}
    for name in names:
        part = part_of(opened, files, kind, (name,), whole=whole)
        parts.setdefault(name if kind == "arrow" else tuple(sorted(part.types.items())), []).append(name)
    return [part_of(opened, files, kind, tuple(same), whole=whole) for same in parts.values()]


def part_of(opened: Any, files: Files, kind: Format, names: tuple[str, ...], *, whole: bool) -> Part:
    """Files of one format and the same columns, by the types of the first."""
    if kind == "arrow":
        scan = _arrow_view(opened, names[0])
        return Part(scan, _types(opened, scan), names[0])
    inside = _types(
        opened, _scan(kind, names[:1], replace(files, options=replace(files.options, hive=False)), whole=whole)
    )
    columns = {name: _json_type(found) for name, found in inside.items()} if kind == "json" else None
    scan = _scan(kind, names, files, whole=whole, columns=columns)
    types = inside if columns is None else columns
    if files.options.hive:
        _require_no_clash(inside, names[0])
        types = _types(opened, _scan(kind, names[:1], files, whole=whole, columns=columns))
    return Part(scan, types, names[0], absent_is_missing=kind == "json")


def _scan(
    kind: Format, names: Sequence[str], files: Files, *, whole: bool, columns: dict[str, str] | None = None
) -> str:
    """SQL that reads the files; `whole` finds types from all rows, `columns` gives them."""
    options = {"hive_partitioning": str(files.options.hive).lower()}
    if kind == "csv":
        options["auto_type_candidates"] = f"[{', '.join(map(literal, TEXT_TYPES))}]"
        options["decimal_separator"] = literal(files.options.decimal)
    if kind != "parquet":
        options["union_by_name"] = "true"
        options |= {"sample_size": "-1"} if whole else {}
    if columns:
        types = ", ".join(f"{literal(name)}: {literal(found)}" for name, found in columns.items())
        options["columns"] = f"{{{types}}}"
    listed = ", ".join(literal(as_pattern(name)) for name in names)
    chosen = ", ".join(f"{option} = {value}" for option, value in options.items())
    return f"read_{kind}([{listed}], {chosen})"


def _json_type(kind: str) -> str:
    """Numbers as double precision and truth values as words, whatever the first rows hold."""
    return "DOUBLE" if kind in WHOLE else "VARCHAR" if kind == "BOOLEAN" else kind


def _types(opened: Any, scan: str) -> dict[str, str]:
    relation = opened.sql(f"SELECT * FROM {scan}")
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def _arrow_view(opened: Any, name: str) -> str:
    from pyarrow import ArrowInvalid, feather

    try:
        table = feather.read_table(name)
    except ArrowInvalid as error:
        message = f"Cannot read {name!r} as Arrow: {error}"
        raise InvalidPredictions(message) from error
    view = f"arrow {name}"
    opened.register(view, table)
    return quoted(view)


def _parquet_marks(opened: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Each file with a mark that is the same for files of the same columns and types; one query for all of them."""
    if len(names) == 1:
        return [(names[0], 0)]
    listed = ", ".join(literal(as_pattern(name)) for name in names)
    column = "concat_ws('|', name, type, num_children, converted_type, scale, precision, logical_type)"
    marks = opened.sql(
        f"SELECT file_name, hash(list_sort(list({column}))) FROM parquet_schema([{listed}]) GROUP BY file_name"
    ).fetchall()
    found = dict(marks)
    return [(name, found.get(name, name)) for name in names]


def _listed(opened: Any, name: str) -> list[str]:
    """The files behind a remote pattern; a name that is no pattern stands for itself."""
    if not is_remote(name) or not re.search(r"[*?\[]", name.split("?")[0]):
        return [name]
    return [found for (found,) in opened.sql(f"SELECT file FROM glob({literal(name)}) ORDER BY file").fetchall()]


def _require_no_clash(inside: dict[str, str], name: str) -> None:
    """A column of the file that a folder ``column=value`` would replace cannot be meant."""
    for folder in Path(name).parts[:-1]:
        column, sign, _ = folder.partition("=")
        if sign and column in inside:
            message = f"Cannot read {name!r}: {column!r} is both a column of the file and a key of its folder."
            raise InvalidPredictions(message)


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
