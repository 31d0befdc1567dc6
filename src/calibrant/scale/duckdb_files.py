"""Files as one table of an embedded DuckDB: how each format is read, and one type per column for all files.

Types are those of the files; those of several files are compared, widened where they are numbers, and refused where
they differ otherwise. Text files have no types: numbers are always double precision and words such as ``no`` stay
words. A CSV file is read as text, by the rules of `csv_files`; of a column of numbers the text is kept beside the
numbers, since groups are told apart by it. A matrix ``p`` in a file of NumPy is the columns ``p_0``, ``p_1`` and so on;
nothing is unpickled.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import fail
from calibrant.scale import csv_files
from calibrant.scale.csv_files import MISSING_NUMBERS, CsvRecords, Header, first_fault, read_header
from calibrant.scale.paths import Files, Format, as_pattern, is_remote


def numpy_table(path: str) -> tuple[Any, dict[str, str]]:
    """The columns of a file, which have the rows that most arrays have, and why other arrays are no columns."""
    import pyarrow as pa

    arrays, refused = _arrays(path)
    sizes = Counter(len(array) for array in arrays.values())
    if not sizes:
        fail(f"Cannot read {path!r}: {next(iter(refused.values()), 'it holds no arrays.')}")
    rows = max(sizes, key=lambda size: (sizes[size], size))
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if len(array) != rows:
            refused[name] = f"The array {name!r} of {path!r} has {len(array):,} rows, the others have {rows:,}."
            continue
        for column, values in _columns(name, array):
            try:
                columns[column] = pa.array(values)
            except (pa.ArrowException, TypeError) as error:
                refused[column] = f"The array {column!r} of {path!r} cannot be used: {error}."
    return pa.table(columns), refused


#: What NumPy says of files that are damaged, or hold Python objects.
_FAILURES = (ValueError, OSError, EOFError, zipfile.BadZipFile)


def _arrays(path: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of one or two dimensions by name, and why others cannot be used; that of an ``.npy`` has none."""
    arrays: dict[str, NDArray[Any]] = {}
    refused: dict[str, str] = {}
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            loaded = {"": loaded} if isinstance(loaded, np.ndarray) else loaded
            for name in loaded:
                try:
                    array = loaded[name]
                except _FAILURES as error:
                    refused[name] = f"The array {name!r} of {path!r} cannot be read: {error}"
                    continue
                if array.ndim in (1, 2):
                    arrays[name] = array
                else:
                    refused[name] = f"The array {name!r} of {path!r} has {array.ndim} dimensions, not one or two."
    except _FAILURES as error:
        fail(f"Cannot read {path!r} as arrays of NumPy: {error}", cause=error)
    return arrays, refused


def _columns(name: str, array: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The columns of an array under their names, in types that Arrow has."""
    kind = array.dtype
    if kind.names is not None:
        for part in kind.names:
            yield from _columns(f"{name}_{part}" if name else part, array[part])
    elif array.ndim == 2:
        for place in range(array.shape[1]):
            yield from _columns(f"{name}_{place}" if name else str(place), array[:, place])
    else:
        native = array.astype(np.float32 if kind == np.float16 else kind.newbyteorder("="), copy=False)
        yield name or "0", np.ascontiguousarray(native)


#: DuckDB's types of whole numbers, and of floating-point ones.
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
WHOLE = (*SIGNED, "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT")
FLOATING = ("FLOAT", "DOUBLE")
_JSON_TYPES = dict.fromkeys(WHOLE, "DOUBLE") | {"BOOLEAN": "VARCHAR"}


@dataclass(frozen=True)
class Part:
    """Files whose columns have the same names and types: what to read them by, and what is in them."""

    scan: str
    types: dict[str, str]
    first: str
    #: Whether a column that is not there has missing values, as in JSON.
    absent_is_missing: bool = False
    #: The columns of the scan that hold the text of columns, and why columns cannot be used, by their names.
    texts: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


class Schema(NamedTuple):
    """The columns that all parts share, by type, and why others cannot be used."""

    types: dict[str, str]
    refused: dict[str, str]


def common_schema(parts: Sequence[Part], is_empty: Callable[[Part, str], bool]) -> Schema:
    """The columns of all parts under one type each: whole and floating-point numbers are widened.

    A column with any other mixture of types, or that some files lack, is refused once somebody asks for it. A part
    where it `is_empty`, without any value, fits every type.
    """
    types: dict[str, str] = {}
    refused: dict[str, str] = {name: why for part in parts for name, why in part.refused.items()}
    for column in dict.fromkeys(column for part in parts for column in part.types if column not in refused):
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
                own = filled[0].types[column]
                other = next(part for part in filled if widened([part.types[column], own]) is None)
                refused[column] = (
                    f"Cannot read {other.first!r}: column {column!r} is of type {other.types[column]} there and of "
                    f"type {own} in {filled[0].first!r}. Write both files with one type; only numbers are widened."
                )
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


def quoted(name: str) -> str:
    """A column name that SQL takes for nothing else."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text that SQL takes for nothing else."""
    return "'" + text.replace("'", "''") + "'"


def alike_parts(opened: Any, files: Files, kind: Format, names: tuple[str, ...], *, whole: bool) -> list[Part]:
    """The files of one format, those of the same columns and types together."""
    names = tuple(found for name in names for found in _listed(opened, name))
    marks: Mapping[str, Any] = _parquet_marks(opened, names) if kind == "parquet" else {}
    alike: dict[Any, list[str]] = {}
    for name in names:
        mark = marks.get(name, name)  # else one by one
        if kind == "csv":
            mark = _csv_columns(opened, name, files.options.decimal, whole=whole)
        elif kind == "json":
            mark = tuple(sorted(part_of(opened, files, kind, (name,), whole=whole).types.items()))
        alike.setdefault(mark, []).append(name)
    if kind == "csv":
        return [_csv_part(opened, files, tuple(same), columns) for columns, same in alike.items()]
    return [part_of(opened, files, kind, tuple(same), whole=whole) for same in alike.values()]


def part_of(opened: Any, files: Files, kind: Format, names: tuple[str, ...], *, whole: bool) -> Part:
    """Files of one format and the same columns, by the types of the first."""
    if kind == "csv":
        return _csv_part(opened, files, names, _csv_columns(opened, names[0], files.options.decimal, whole=whole))
    if kind == "numpy":
        table, refused = numpy_table(names[0])
        return replace(_view(opened, names[0], table), refused=refused)
    if kind == "arrow":
        return _without_repeated(_view(opened, names[0], _arrow_table(names[0])), kind)
    hive = files.options.hive
    types = _types(opened, _scan(kind, names[:1], hive=False, whole=whole))
    columns: dict[str, str] = {}
    if kind == "json":  # numbers as double precision and truth values as words, whatever the first rows hold
        types = columns = {name: _JSON_TYPES.get(one, one) for name, one in types.items()}
    scan = _scan(kind, names, hive=hive, whole=whole, columns=columns)
    if hive:
        _require_no_clash(types, names[0])
        types = _types(opened, _scan(kind, names[:1], hive=hive, whole=whole, columns=columns))
    return _without_repeated(Part(scan, types, names[0], absent_is_missing=kind == "json"), kind)


def _without_repeated(part: Part, kind: Format) -> Part:
    """The part without the columns whose name others have too; DuckDB would distinguish them by numbers."""
    before_numbers = {re.sub(r"_\d+$", "", name) for name in part.types}
    if kind == "json" or is_remote(part.first) or len(part.types) == len(before_numbers):
        return part
    from pyarrow import parquet

    schema = parquet.read_schema(part.first) if kind == "parquet" else _arrow_table(part.first).schema
    repeated = {name for name in schema.names if schema.names.count(name) > 1}
    gone = {name for name, own in zip(part.types, schema.names, strict=False) if own in repeated}
    refused = {name: _repeated(name, schema.names.count(name), part.first) for name in repeated}
    return replace(part, types={name: one for name, one in part.types.items() if name not in gone}, refused=refused)


def _repeated(name: str, count: int, file: str) -> str:
    return f"There are {count} columns called {name!r} in {file!r}: rename all but one."


#: How text becomes numbers and times; times with an offset become those of UTC.
_NUMBER, _TIME = "CAST({} AS DOUBLE)", "CAST(CAST({} AS TIMESTAMPTZ) AS TIMESTAMP)"
#: Columns of a CSV file as they are read, before they have names and types.
_FIELD = "_calibrant_field_"
#: Rows from which the types of a CSV file are found first.
#: Reference: DuckDB documentation, read_csv, default of sample_size.
_SAMPLE = 20_480


CsvColumns = tuple[Header, tuple[tuple[str, str], ...]]
"""The header of a CSV file, and of each column its type and the SQL that makes it of the text."""


def _csv_part(opened: Any, files: Files, names: tuple[str, ...], columns: CsvColumns) -> Part:
    """CSV files of the same columns: a scan of text, and over it the columns under their names and types."""
    header, found = columns
    text = _csv_scan(header, names, hive=files.options.hive)
    shown = _shown_names(header)
    kinds = {name: kind for name, (kind, _) in zip(shown, found, strict=True) if name is not None}
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, (_, sql) in zip(shown, found, strict=True) if name)
    texts = {name: f"{_FIELD}{k}" for k, name in enumerate(shown) if name is not None}
    refused = {name: _repeated(name, header.names.count(name), names[0]) for name in header.repeated if name}
    if files.options.hive:
        _require_no_clash(dict.fromkeys(header.names, ""), names[0])
        kinds |= {name: kind for name, kind in _types(opened, text).items() if not name.startswith(_FIELD)}
    scan = f"(SELECT {listed}{', ' if listed else ''}* FROM {text})"
    return Part(scan, kinds, names[0], texts=texts, refused=refused)


def _header(opened: Any, name: str) -> Header:
    """The header of a CSV file; that of a remote one is read by DuckDB."""
    if not is_remote(name):
        return read_header(name)
    lines = "columns = {'line': 'VARCHAR'}, auto_detect = false, header = false, strict_mode = false"
    lines = f"{lines}, delim = '\x1f', quote = '', escape = ''"
    opened.execute("SET preserve_insertion_order = true")
    found = opened.sql(f"SELECT line FROM read_csv({literal(name)}, {lines}) LIMIT 100").fetchall()
    return CsvRecords(f"{line}\n" for (line,) in found).header


def _shown_names(header: Header) -> list[str | None]:
    """The name of each column: none where others are called alike, a number where names differ only in case."""
    found: list[str | None] = []
    for place, name in enumerate(header.names):
        own, number = name or f"column{place}", 0
        taken = {other.lower() for other in found if other is not None}
        while own.lower() in taken:
            number += 1
            own = f"{name}_{number}"
        found.append(None if name in header.repeated and name else own)
    return found


def _csv_scan(header: Header, names: Sequence[str], *, hive: bool) -> str:
    """SQL that reads every field as text and leaves nothing about rows to be guessed."""
    fields = ", ".join(f"'{_FIELD}{k}': 'VARCHAR'" for k in range(len(header.names)))
    options = (
        f"auto_detect = false, columns = {{{fields}}}, delim = {literal(header.delimiter)}, quote = '\"', "
        "escape = '\"', header = true, skip = 0, comment = '', nullstr = '', null_padding = false, "
        f"ignore_errors = false, strict_mode = true, hive_partitioning = {str(hive).lower()}"
    )
    return f"read_csv([{_listed_names(names)}], {options})"


def _listed_names(names: Sequence[str]) -> str:
    return ", ".join(literal(as_pattern(name)) for name in names)


def _csv_columns(opened: Any, name: str, decimal: str, *, whole: bool) -> CsvColumns:
    """The columns of a CSV file, their types found from the first rows or from all of them."""
    header = _header(opened, name)
    rows = f"(SELECT * FROM {_csv_scan(header, [name], hive=False)}{'' if whole else f' LIMIT {_SAMPLE}'})"
    fields = [f"{_FIELD}{k}" for k in range(len(header.names))]
    numbers = [text if decimal == "." else f"translate({text}, ',.', '.,')" for text in fields]
    absent = f"({', '.join(map(literal, MISSING_NUMBERS))})"
    tried_number, tried_time = (cast.replace("CAST(", "TRY_CAST(") for cast in (_NUMBER, _TIME))
    asked = []
    for text, number in zip(fields, numbers, strict=True):
        asked += [f"count({text})", f"count({tried_number.format(number)})"]
        asked += [f"count(*) FILTER (lower(trim({text})) IN {absent})"]
        asked += [f"count(CASE WHEN {text}[5] = '-' THEN {tried_time.format(text)} END)"]
    counts = opened.sql(f"SELECT {', '.join(asked)} FROM {rows}").fetchall()[0]
    found = []
    for place, (text, number) in enumerate(zip(fields, numbers, strict=True)):
        values, numeric, missing, times = counts[4 * place : 4 * place + 4]
        if numeric and numeric + missing == values:
            value = f"CASE WHEN lower(trim({text})) NOT IN {absent} THEN {number} END" if missing else number
            found.append(("DOUBLE", _NUMBER.format(value)))
        else:
            found.append(("TIMESTAMP", _TIME.format(text)) if times == values > 0 else ("VARCHAR", text))
    return header, tuple(found)


def _scan(kind: Format, names: Sequence[str], *, hive: bool, whole: bool, columns: Mapping[str, str] = {}) -> str:
    """SQL that reads the files; `whole` finds types from all rows, `columns` gives them."""
    options = {"hive_partitioning": str(hive).lower()}
    if kind != "parquet":
        options["union_by_name"] = "true"
        options |= {"sample_size": "-1"} if whole else {}
    if columns:
        types = ", ".join(f"{literal(name)}: {literal(found)}" for name, found in columns.items())
        options["columns"] = f"{{{types}}}"
    chosen = ", ".join(f"{option} = {value}" for option, value in options.items())
    return f"read_{kind}([{_listed_names(names)}], {chosen})"


def _types(opened: Any, scan: str) -> dict[str, str]:
    relation = opened.sql(f"SELECT * FROM {scan}")
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def _view(opened: Any, name: str, table: Any) -> Part:
    """A file that Python has read."""
    opened.register(f"arrow {name}", table)
    scan = quoted(f"arrow {name}")
    return Part(scan, _types(opened, scan), name)


def _arrow_table(name: str) -> Any:
    """An Arrow file, or a stream that was saved as one, as it lies on the disk."""
    import pyarrow as pa

    try:
        with pa.memory_map(name) as mapped:
            try:
                return pa.ipc.open_file(mapped).read_all()
            except pa.ArrowInvalid:
                mapped.seek(0)
                return pa.ipc.open_stream(mapped).read_all()
    except pa.ArrowException as error:
        fail(f"Cannot read {name!r} as Arrow: {error}", cause=error)


def _parquet_marks(opened: Any, names: Sequence[str]) -> dict[str, Any]:
    """By file, a mark that is the same for files of the same columns and types; one query for all of them."""
    if len(names) == 1:
        return {}
    column = "concat_ws('|', name, type, num_children, converted_type, scale, precision, logical_type)"
    source = f"parquet_schema([{_listed_names(names)}])"
    query = f"SELECT file_name, hash(list_sort(list({column}))) FROM {source} GROUP BY file_name"
    return dict(opened.sql(query).fetchall())


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
            fail(f"Cannot read {name!r}: {column!r} is both a column of the file and a key of its folder.")


#: DuckDB indexes group numbers of this many bits directly instead of hashing them.
#: Derived: 2^16 cells and null.
DIRECT_BITS = 17
#: The number of a row in its file, from 1, without the header.
FILE_ROW = "_calibrant_file_row"
#: How the names of columns begin that hold the text of numbers.
TEXT = "_calibrant_text_"
_LACKING = (
    "Reading {name!r} needs DuckDB's extension {extension!r}, which is not installed. "
    "Install it once where there is a network, python -c \"import duckdb; duckdb.install_extension('{extension}')\", "
    "or give a frame that reads the files itself, e.g. polars.scan_parquet(...)."
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class FileTable:
    """The files as one DuckDB relation; `refused` says of columns that differ between files why they cannot be used."""

    opened: Any
    files: Files
    parts: Sequence[Part]
    schema: Schema
    whole: bool

    @cached_property
    def relation(self) -> Any:
        """All rows."""
        return self.with_texts(())

    @property
    def refused(self) -> dict[str, str]:
        """Columns that not all files have with one type, or that several are called alike, and what to say of them."""
        return self.schema.refused

    def with_texts(self, names: Iterable[str]) -> Any:
        """All rows, and beside columns of numbers their text, as `TEXT` and the name, where all files are CSV."""
        return self.opened.sql(_select(self.parts, self.schema, self._texts(names)))

    def numbered(self, names: Iterable[str] = ()) -> Iterator[tuple[str, Any]]:
        """Each file by itself, in order, with the number of the row in the file as `FILE_ROW`."""
        self.opened.execute("SET preserve_insertion_order = true")
        texts = self._texts(names)
        for kind, name in self.files.each:
            part = part_of(self.opened, replace(self.files, names={kind: (name,)}), kind, (name,), whole=self.whole)
            relation = self.opened.sql(_select([part], self.schema, texts))
            yield name, relation.project(f"*, row_number() OVER () AS {FILE_ROW}")

    def _texts(self, names: Iterable[str]) -> list[str]:
        numbers = [name for name in dict.fromkeys(names) if self.schema.types.get(name) == "DOUBLE"]
        return [name for name in numbers if all(name in part.texts for part in self.parts)]


@contextmanager
def connection() -> Iterator[Any]:
    """A DuckDB of our own, in memory, gone afterwards."""
    try:
        import duckdb
    except ImportError as error:
        fail("Reading files needs DuckDB: pip install 'calibrant[files]'.", ImportError, cause=error)
    with duckdb.connect(":memory:") as opened:
        opened.execute("SET enable_progress_bar = false")  # it would write into the output of programs
        opened.execute("SET autoinstall_known_extensions = false")  # a word of the user's must not download programs
        opened.execute("SET autoload_known_extensions = false")
        opened.execute("SET TimeZone = 'UTC'")  # else the day of a time depends on the machine
        opened.execute("SET preserve_insertion_order = false")
        opened.execute(f"SET perfect_ht_threshold = {DIRECT_BITS}")
        yield opened


def read(files: Files, use: Callable[[FileTable], Result]) -> Result:
    """What `use` makes of the files; what DuckDB says of a broken file is passed on with the file's name.

    `use` runs again, with types found from all rows, where a later row of a text file has not the types of the first.
    """
    with connection() as opened:
        import duckdb

        _load_extensions(opened, files)
        try:
            _require_all_rows(opened, files)
            return use(_table(opened, files, whole=False))
        except duckdb.Error as error:
            if not files.text:
                fail(_explained(opened, files, error), cause=error)
        try:
            return use(_table(opened, files, whole=True))
        except duckdb.Error as error:
            fail(_explained(opened, files, error), cause=error)


#: The extension of DuckDB that reads from an address, by how it begins; the others need httpfs.
_EXTENSIONS = {"az": "azure", "azure": "azure", "abfss": "azure"}


def _load_extensions(opened: Any, files: Files) -> None:
    """Load what remote files need, if it is installed; nothing is ever downloaded."""
    import duckdb

    for name in (name for _, name in files.each if is_remote(name)):
        extension = _EXTENSIONS.get(name.partition("://")[0].lower(), "httpfs")
        try:
            opened.execute(f"LOAD {extension}")
        except duckdb.Error as error:
            fail(_LACKING.format(name=name, extension=extension), ImportError, cause=error)


def _require_all_rows(opened: Any, files: Files) -> None:
    """Raise unless DuckDB finds as many rows in each CSV file as it has, where there could be a doubt."""
    for name in files.names.get("csv", ()):
        if not is_remote(name) and name not in files.checked:
            header = read_header(name)
            if not csv_files.every_line_is_a_row(name, header):
                found = opened.sql(f"SELECT count(*) FROM {_csv_scan(header, [name], hive=False)}").fetchall()[0][0]
                csv_files.require_rows(name, header, found)
            files.checked.add(name)


def filtered(relation: Any, where: str, refused: Mapping[str, str]) -> Any:
    """The rows that fit a condition in SQL, which must not need a column of those `refused`."""
    import duckdb

    try:
        return relation.filter(where)
    except (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException) as error:
        words = f"where is not a condition on the columns, {where!r}: {first_line(error)}"
        fail(unusable(where, refused) or words, cause=error)


def unusable(sql: str, refused: Mapping[str, str]) -> str | None:
    """Why a column that a piece of SQL mentions cannot be used."""
    return next((message for column, message in refused.items() if re.search(rf"\b{re.escape(column)}\b", sql)), None)


def first_line(error: Exception) -> str:
    """What DuckDB says, without the picture of the place."""
    return str(error).strip().split("\n")[0]


def _table(opened: Any, files: Files, *, whole: bool) -> FileTable:
    each = files.names.items()
    parts = [part for kind, names in each for part in alike_parts(opened, files, kind, names, whole=whole)]
    if len(parts) == 1:
        return FileTable(opened, files, parts, Schema(parts[0].types, dict(parts[0].refused)), whole)

    def is_empty(part: Part, column: str) -> bool:
        return opened.sql(f"SELECT count({quoted(column)}) FROM {part.scan}").fetchall()[0][0] == 0

    schema = common_schema(parts, is_empty)
    if not schema.types:
        fail(next(iter(schema.refused.values())))
    return FileTable(opened, files, parts, schema, whole)


def _select(parts: Sequence[Part], schema: Schema, texts: Sequence[str] = ()) -> str:
    """SQL for all rows of the parts, under the types of the schema."""
    selects = []
    for part in parts:
        columns = []
        for name, kind in schema.types.items():
            value = quoted(name) if name in part.types else "NULL"
            same = part.types.get(name) == kind
            columns.append(value if same else f"CAST({value} AS {kind}) AS {quoted(name)}")
        columns += [f"{part.texts[name]} AS {quoted(TEXT + name)}" for name in texts]
        selects.append(f"SELECT {', '.join(columns)} FROM {part.scan}")
    return " UNION ALL ".join(selects)


def _explained(opened: Any, files: Files, error: Exception) -> str:
    """DuckDB's message, preceded by the file it is about, which is looked for one by one where it is not named."""
    text = str(error).strip()
    said = re.search(r'(?:read|in) file "([^"]+)"', text)
    culprit = said.group(1) if said else _culprit(opened, files)
    fault = first_fault(culprit) if culprit in files.names.get("csv", ()) and not is_remote(culprit) else None
    return f"Cannot read {culprit!r}: {fault or text}"


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
