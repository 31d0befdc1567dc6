"""`calibrant apply`: a file with the recalibrated columns appended, and not a bit of the others changed.

The text of CSV and JSON files is kept: columns are typed only where the text can be recovered from the type. Parquet
and Arrow files are streams of Arrow tables, however large they are.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyarrow.csv import CSVWriter

from calibrant._atomic_write import replacing
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError, copy_of_standard_input, refuse, stop, temporary_folder
from calibrant.cli.maps import NewColumns, Numbers
from calibrant.data.validation import fail
from calibrant.recalibrate.export import SqlMap
from calibrant.scale.csv_files import MISSING_NUMBERS, CsvRecords, opened_text
from calibrant.scale.duckdb_files import numpy_table

#: Most bytes and rows of a piece that is read and written.
#: Speed: memory stays below 200 MB for files of any size; no result depends on them.
PIECE_BYTES, PIECE_ROWS = 24 * 2**20, 2**20
PARQUET, ARROW, CSV, JSON_LINES = (".parquet", ".pq"), (".arrow", ".feather", ".ipc"), (".csv",), (".jsonl", ".ndjson")

#: Bytes that are read ahead of each column, instead of all of it in the group of rows.
#: Speed: as `PIECE_BYTES`; no result depends on it.
_BUFFER = 2**20
#: Names of compression in files, and those by which the writer knows them.
_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """A table that comes in pieces of about 24 MB, how its Parquet file was encoded, and its rows, if known."""

    schema: Any
    pieces: Callable[[], Iterator[Any]]
    encoding: dict[str, Any] = field(default_factory=dict)
    rows: int | None = None


@contextmanager
def opened(path: str) -> Iterator[ArrowTable]:
    """A Parquet or Arrow file; of a Parquet file each group of rows is a piece, unless it is too large."""
    try:
        if Path(path).suffix.lower() in PARQUET:
            with parquet.ParquetFile(path, buffer_size=_BUFFER) as file:
                about = file.metadata
                yield ArrowTable(file.schema_arrow, lambda: _groups(file), _encoding(about), about.num_rows)
        else:
            with pa.memory_map(path) as mapped:
                yield _of_ipc(mapped)
    except pa.ArrowException as error:
        fail(f"Cannot read {path!r}: {error}", cause=error)


def _groups(file: Any) -> Iterator[Any]:
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        rows = _piece_rows(group.num_rows, group.total_byte_size)
        if rows >= group.num_rows:
            yield file.read_row_group(number)
        else:
            for batch in file.iter_batches(batch_size=max(1, rows // 4), row_groups=[number]):
                yield pa.Table.from_batches([batch])


def _piece_rows(rows: int, size: int) -> int:
    """Rows of a piece, of a table with this many rows and bytes."""
    return max(1, min(PIECE_ROWS, int(PIECE_BYTES * rows / max(size, 1))))


def _encoding(metadata: Any) -> dict[str, Any]:
    """Compression and dictionaries as in the first group of rows: encoding what was not a dictionary as one is slow."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    dictionaries = [column.path_in_schema for column in columns if any("DICT" in name for name in column.encodings)]
    codecs = {column.path_in_schema: _CODECS.get(column.compression, column.compression) for column in columns}
    return {"use_dictionary": dictionaries, "compression": codecs}


def _of_ipc(mapped: Any) -> ArrowTable:
    try:
        file = pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        stream = pa.ipc.open_stream(mapped)
        return ArrowTable(stream.schema, lambda: _pieces_of(iter(stream)))
    return ArrowTable(file.schema, lambda: _pieces_of(file.get_batch(k) for k in range(file.num_record_batches)))


def _pieces_of(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        rows = _piece_rows(batch.num_rows, batch.nbytes)
        for start in range(0, batch.num_rows, rows):
            yield pa.Table.from_batches([batch.slice(start, rows)])


@contextmanager
def in_background(work: Callable[[Any], Any]) -> Iterator[Callable[[Any], None]]:
    """The same function, done in a thread while the caller goes on; one call waits for the one before it."""
    with ThreadPoolExecutor(1) as thread:
        last: list[Future[Any]] = []

        def later(item: Any) -> None:
            if last:
                last.pop().result()
            last.append(thread.submit(work, item))

        yield later
        if last:
            last.pop().result()


@contextmanager
def writer(place: Path, suffix: str, schema: Any, encoding: dict[str, Any]) -> Iterator[Callable[[Any], Any]]:
    """A function that writes tables of this schema one after another, in the format that the suffix names."""
    try:
        if suffix in PARQUET:
            with parquet.ParquetWriter(place, schema, **encoding) as writer:
                yield lambda table: writer.write_table(table, row_group_size=PIECE_ROWS)
        elif suffix in ARROW:
            pieces: list[Any] = []  # the format has one dictionary per column, so all of them must be known
            keep = any(pa.types.is_dictionary(column.type) for column in schema)
            with pa.ipc.new_file(place, schema) as writer:
                yield pieces.append if keep else writer.write_table
                if pieces:
                    writer.write_table(pa.concat_tables(pieces).unify_dictionaries())
        elif suffix in CSV:
            kinds = [(one, one.type.value_type if pa.types.is_dictionary(one.type) else one.type) for one in schema]
            plain = pa.schema([one.with_type(kind) for one, kind in kinds], metadata=schema.metadata)
            with CSVWriter(place, plain) as writer:
                yield lambda table: writer.write_table(table.cast(plain))
        else:
            with open(place, "w", encoding="utf8") as file:
                yield lambda table: file.writelines(_json_line(row) for row in table.to_pylist())
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid) as error:
        stop(f"A {suffix} file cannot hold all columns of the table ({error}); write .parquet.", cause=error)


def _json_line(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, default=_as_json, allow_nan=False, ensure_ascii=False) + "\n"
    except (TypeError, ValueError) as error:
        return stop(f"JSON cannot hold all columns of the table ({error}); write .parquet.", cause=error)


def _as_json(value: Any) -> str:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return fail(f"a {type(value).__name__} is not JSON", TypeError)


#: Rows that are mapped at once.
#: Speed: smaller batches cost more calls of the map; no result depends on it.
BATCH = 2**16
#: How compressed files end.
PACKED = (".gz", ".zst", ".bz2")

Row = TypeVar("Row")


def _batches(rows: Iterator[Row]) -> Iterator[tuple[int, list[Row]]]:
    """The rows by batches, each with the number of its first row, from 1."""
    first = 1
    while batch := list(islice(rows, BATCH)):
        yield first, batch
        first += len(batch)


class CsvText:
    """Rows of a CSV file, given as its lines, with their text."""

    def __init__(self, file: Iterable[str]) -> None:
        self._records = CsvRecords(file)
        self.delimiter, self.header = self._records.header.delimiter, list(self._records.header.names)

    def rows(self) -> Iterator[tuple[list[str], str]]:
        """Fields and text of each row, blank lines left out."""
        return ((record.fields, record.text) for record in self._records)

    def append(self, new: NewColumns, write: Callable[[str], Any]) -> None:
        """Write all rows, each with its new values."""
        names = io.StringIO()
        csv.writer(names, delimiter=self.delimiter, lineterminator="").writerow(new.outputs)
        write(_with_fields(self._records.head, [names.getvalue()], self.delimiter))
        for text, values in _mapped(self.rows(), new, {name: k for k, name in enumerate(self.header)}):
            write(_with_fields(text, map(repr, values), self.delimiter))


class JsonText:
    """Objects of a JSON file with their text: one a line, or a list of them."""

    def __init__(self, file: io.TextIOBase) -> None:
        self._objects = _json_objects(file)
        self._first = next(self._objects, None)
        self.header = [] if self._first is None else list(self._first[0])

    def rows(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each object, and its text without line breaks."""
        if self._first is not None:
            yield self._first
            yield from self._objects

    def append(self, new: NewColumns, write: Callable[[str], Any]) -> None:
        """Write all objects, each with its new values, one a line."""
        names = [json.dumps(name, ensure_ascii=False) for name in new.outputs]
        needed = {name: name for name in (*new.inputs, *new.features)}
        for text, values in _mapped(self._checked(new, needed), new, needed):
            added = ", ".join(f"{name}: {value!r}" for name, value in zip(names, values, strict=True))
            write(f"{text.rstrip()[:-1].rstrip()}, {added}}}\n")

    def _checked(self, new: NewColumns, needed: Iterable[str]) -> Iterator[tuple[dict[str, Any], str]]:
        for row, (found, text) in enumerate(self.rows(), 1):
            for name in needed:
                if name not in found:
                    fail(f"Column {name!r} is missing in row {row:,}.")
            for name in new.outputs:
                if name in found:
                    fail(f"Row {row:,} has a column {name!r} already: choose other names by --suffix TEXT.")
            yield found, text


def _mapped(
    rows: Iterator[tuple[Any, str]], new: NewColumns, place: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The text of each row and its new values; `place` says where in a row a column is."""
    for first, batch in _batches(rows):
        columns = [numbers([found[place[name]] for found, _ in batch], name, first) for name in new.inputs]
        features = [[found[place[name]] for found, _ in batch] for name in new.features]
        made = (part.tolist() for part in new.of_batch(columns, features, first))
        yield from zip((text for _, text in batch), zip(*made, strict=True), strict=True)


def _with_fields(text: str, values: Iterable[str], delimiter: str) -> str:
    """The text of a row with further fields before its line break."""
    body = text.rstrip("\r\n")
    return body + "".join(f"{delimiter}{value}" for value in values) + text[len(body) :]


def numbers(values: Sequence[Any], name: str, first: int) -> Numbers:
    """A column of text or of values of JSON as numbers."""
    found = np.empty(len(values))
    for k, value in enumerate(values):
        try:
            found[k] = number(value)
        except (TypeError, ValueError):
            absent = value is None or (isinstance(value, str) and value.strip().lower() in ("", *MISSING_NUMBERS))
            what = "is missing" if absent else f"is {value!r}, which is not a number"
            fail(f"Column {name!r} {what} in row {first + k:,}.")
    return found


def number(value: Any) -> float:
    """A number, or text that is one; Python's own underscores are none."""
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        raise ValueError(value)
    return float(value)


def _json_objects(file: io.TextIOBase) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects one by one; a list of objects, or objects over several lines, are read whole."""
    start = file.readline().removeprefix("\ufeff")
    while start and not start.strip():
        start = file.readline()
    one = _parsed(start, 1)
    if one is None:
        yield from _json_whole(start + file.read())
        return
    yield one, start.strip()
    for row, line in enumerate(file, 2):
        if line.strip():
            found = _parsed(line, row)
            if found is None:
                fail(f"Line {row:,} is not a JSON object.")
            yield found, line.strip()


def _parsed(line: str, row: int) -> dict[str, Any] | None:
    try:
        found = json.loads(line, object_pairs_hook=_with_names_once)
    except _NameTwice as error:
        fail(f"Line {row:,} has several values of {error}: keep only one.")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _NameTwice(Exception):
    """An object has several values of one name."""


def _with_names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; Python would take the last value of a name, and other readers the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _NameTwice(repr(next(name for name in names if names.count(name) > 1)))
    return found


def _json_whole(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    decoder, at, row = json.JSONDecoder(object_pairs_hook=_with_names_once), 0, 0
    is_list = text.lstrip().startswith("[")
    try:
        listed = json.loads(text) if is_list else []  # one cut short would look whole below
    except (ValueError, RecursionError) as error:
        fail(f"The file is not JSON: {error}.", cause=error)
    for k, one in enumerate(listed, 1):
        if not isinstance(one, dict):
            fail(f"Object {k:,} of the file is not a JSON object of names and values.")
    between = re.compile(r"[ \t\r\n,\[\]]*" if is_list else r"[ \t\r\n]*")
    while (at := between.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # nothing matches too
        row += 1
        try:
            found, end = decoder.raw_decode(text, at)
        except _NameTwice as error:
            fail(f"Object {row:,} of the file has several values of {error}: keep only one.")
        except (ValueError, RecursionError) as error:
            fail(f"The file is not JSON: object {row:,} cannot be read ({error}).", cause=error)
        if not isinstance(found, dict):
            fail(f"Object {row:,} of the file is not a JSON object of names and values.")
        yield found, " ".join(text[at:end].splitlines())
        at = end


def suffix_of(path: str) -> str:
    """The ending that says the format, in small letters, without that of the compression."""
    name = Path(path).name.lower()
    for ending in PACKED:
        name = name.removesuffix(ending)
    return Path(name).suffix


def _number_of(kind: type[int] | type[float]) -> Callable[[str], Any]:
    def number(text: str) -> float:
        value = kind(text)
        if repr(value) != text or (kind is int and not -(2**63) <= value < 2**63):
            raise ValueError(text)
        return value

    return number


#: Types that a column of text may have, if every value is written as Python writes that type.
_KINDS: dict[str, Callable[[str], Any]] = {
    "int64": _number_of(int),
    "double": _number_of(float),
    "bool": {"True": True, "False": False}.__getitem__,
}


def csv_table(path: str, inputs: Collection[str]) -> ArrowTable:
    """A CSV file; `inputs` become numbers, other columns keep their text unless a type loses nothing of it.

    So 0017 stays text, and 17 becomes a whole number. The file is read twice: first for the types.
    """
    with opened_text(path) as file:
        text = CsvText(file)
        kinds = _kinds(text, inputs)
        schema = pa.schema(list(zip(text.header, kinds, strict=True)))

    def pieces() -> Iterator[Any]:
        with opened_text(path) as file:
            text = CsvText(file)
            for first, batch in _batches(text.rows()):
                arrays = []
                for k, (name, kind) in enumerate(zip(text.header, kinds, strict=True)):
                    values = [fields[k] for fields, _ in batch]
                    made: Any = values  # nothing between two delimiters is a missing number, but the empty text
                    if name in inputs:
                        made = numbers(values, name, first)
                    elif kind != "string":
                        made = [_KINDS[kind](value) if value else None for value in values]
                    arrays.append(pa.array(made, schema.field(k).type))
                yield pa.Table.from_arrays(arrays, schema=schema)

    return ArrowTable(schema, pieces)


def _kinds(text: CsvText, inputs: Collection[str]) -> list[str]:
    """The type of each column."""
    possible = {k: list(_KINDS) for k, name in enumerate(text.header) if name not in inputs}
    seen = dict.fromkeys(possible, False)
    for _, batch in _batches(text.rows()):
        for k, kinds in possible.items():
            values = {fields[k] for fields, _ in batch} - {""}
            seen[k] |= bool(values)
            possible[k] = [kind for kind in kinds if _all_are(values, _KINDS[kind])]
    found = {k: kinds[0] if kinds and seen[k] else "string" for k, kinds in possible.items()}
    return [found.get(k, "double") for k in range(len(text.header))]


def _all_are(values: Collection[str], kind: Callable[[str], Any]) -> bool:
    try:
        return all(kind(value) is not None for value in values)
    except (ValueError, KeyError):
        return False


def json_table(path: str) -> ArrowTable:
    """A JSON file, as a whole: names that a row lacks are missing values."""
    with opened_text(path) as file:
        rows = [found for found, _ in JsonText(file).rows()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        table = pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowException, OverflowError) as error:
        stop(f"The values of a column are of different types ({error}); write .jsonl, which keeps them.", cause=error)
    return ArrowTable(table.schema, lambda: iter([table]))


_CSV_INPUT, _JSON_INPUT, _NUMPY_INPUT = (*CSV, ".tsv", ".txt"), (*JSON_LINES, ".json"), (".npz", ".npy")

Done = Callable[[float, float | None], None]


def apply_to_file(
    fitted: Any, path: str, output: Path, inputs: Columns, *, suffix: str, done: Done = lambda *_: None
) -> list[str]:
    """Write the table of `path` with the new columns of a fitted map to `output`; returns what was guessed.

    CSV and JSON stay the same text with more fields; everything else goes through Arrow piece by piece.
    """
    notes: list[str] = []
    wanted = output.suffix.lower()
    words = f"Tables are written as .parquet, .arrow, .csv or .jsonl, not as {output.name!r}."
    refuse(wanted not in (*PARQUET, *ARROW, *CSV, *JSON_LINES), words)
    with _one_file(path, inputs, notes) as (source, inputs), replacing(output) as place:
        kind = suffix_of(source)
        if (kind in _CSV_INPUT and wanted in CSV) or (kind in _JSON_INPUT and wanted in JSON_LINES):
            with opened_text(source) as file:
                text = CsvText(file) if kind in _CSV_INPUT else JsonText(file)
                new = NewColumns.of(fitted, inputs, text.header, suffix=suffix, notes=notes)
                with open(place, "w", encoding="utf8", errors="surrogateescape", newline="") as target:
                    text.append(new, target.write)
        else:
            _through_arrow(fitted, source, place, wanted, inputs, suffix, notes, done)
    return notes


def sql_of(fitted: Any, inputs: Columns, dialect: str) -> list[str]:
    """The map as SQL on the columns of `inputs`: the probability of the event, or one expression per class."""
    if not isinstance(fitted, SqlMap):
        stop(f"The map is a {type(fitted).__name__}: only maps of probabilities are written as SQL.")
    words = "--sql is an expression of probabilities: give columns of probabilities, not --percent or --logits."
    refuse(inputs.percent or inputs.logits, words)
    pattern = any("*" in name for name in inputs.prob)
    refuse(pattern, "--sql reads no file, so a pattern cannot name columns: give --prob once per column.")
    refuse(not inputs.prob, "Name the column of probabilities: --sql --prob p. Several are those of the classes.")
    header = (*inputs.prob, *(one["name"] for one in getattr(fitted, "features_", ())))
    new = NewColumns.of(fitted, inputs, header, suffix="_recalibrated", notes=[])
    try:
        if len(new.inputs) == 1:
            return [fitted.to_sql(new.inputs[0], dialect=dialect)]
        return list(fitted.to_sql(list(new.inputs), dialect=dialect))
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error


def _through_arrow(
    fitted: Any, source: str, place: Path, wanted: str, inputs: Columns, suffix: str, notes: list[str], done: Done
) -> None:
    with _arrow_table(fitted, source, inputs, suffix) as table:
        new = NewColumns.of(fitted, inputs, table.schema.names, suffix=suffix, notes=notes)
        schema, encoding = table.schema, dict(table.encoding)
        for name in new.outputs:
            schema = schema.append(pa.field(name, pa.float64()))
        if "compression" in encoding:
            encoding["compression"] = {**encoding["compression"], **dict.fromkeys(new.outputs, "SNAPPY")}
        first = 1
        with (
            writer(place, wanted, schema, encoding) as write,
            in_background(write) as later,
        ):
            for piece in table.pieces():
                columns = [_numbers(piece[name], name, first) for name in new.inputs]
                features = [piece[name].to_pylist() for name in new.features]
                for name, values in zip(new.outputs, new.of_batch(columns, features, first), strict=True):
                    piece = piece.append_column(pa.field(name, pa.float64()), pa.array(values))
                later(piece.replace_schema_metadata(schema.metadata))
                first += len(piece)
                done(first - 1, table.rows)


@contextmanager
def _arrow_table(fitted: Any, source: str, inputs: Columns, suffix: str) -> Iterator[ArrowTable]:
    kind = suffix_of(source)
    if kind in (*PARQUET, *ARROW):
        with opened(source) as table:
            yield table
    elif kind in _NUMPY_INPUT:
        arrays, _ = numpy_table(source)
        yield ArrowTable(arrays.schema, lambda: iter([arrays]), rows=len(arrays))
    elif kind in _CSV_INPUT:
        with opened_text(source) as file:
            header = CsvText(file).header
        yield csv_table(source, NewColumns.of(fitted, inputs, header, suffix=suffix, notes=[]).inputs)
    elif kind in _JSON_INPUT:
        yield json_table(source)
    else:
        known = ", ".join((*PARQUET, *ARROW, *_CSV_INPUT, *_JSON_INPUT, *_NUMPY_INPUT))
        stop(f"Cannot tell the format of {source!r} from its name; known endings are {known}.")


@contextmanager
def _one_file(path: str, inputs: Columns, notes: list[str]) -> Iterator[tuple[str, Columns]]:
    """The path of one file and its columns; standard input is copied first, and a log of an evaluation is read."""
    from calibrant.cli.files import of_logs

    with temporary_folder() as folder:
        if path == "-":
            yield copy_of_standard_input(folder), inputs
            return
        if not Path(path).is_file():
            there = Path(path).is_dir()
            message = f"{path!r} is a folder: apply takes one file." if there else f"There is no file {path!r}."
            raise FileNotFoundError(message)
        if Path(path).stat().st_size == 0:
            fail(f"The file {path!r} is empty (0 bytes).")
        (source,), found, said = of_logs([path], inputs, folder)
        notes.extend(said)
        yield source, inputs if found is inputs else replace(inputs, prob=("confidence",))


def _numbers(column: Any, name: str, first: int) -> Numbers:
    """A column of Arrow as NumPy has it, if it holds numbers and none is missing."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        fail(f"Column {name!r} must hold numbers, but it holds {kind}.")
    if column.null_count:
        row = first + pc.index(column.is_null(), value=True).as_py()
        fail(f"Column {name!r} must not be missing, but it is in row {row:,}.")
    if kind != column.type or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy())
