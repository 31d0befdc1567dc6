"""Parquet and Arrow files as streams of Arrow tables: nothing but new columns changes, however large the file is."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from calibrant.cli.console import stop
from calibrant.data.validation import fail

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
            with csv.CSVWriter(place, plain) as writer:
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
