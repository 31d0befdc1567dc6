"""`calibrant apply`: a file with the recalibrated columns appended, and not a bit of the others changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._atomic_write import replacing
from calibrant.cli.arrow_files import (
    ARROW,
    CSV,
    JSON_LINES,
    PARQUET,
    ArrowTable,
    arrow_writer,
    in_background,
    opened_arrow,
)
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError, copy_of_standard_input, refuse, temporary_folder
from calibrant.cli.maps import NewColumns, Numbers
from calibrant.cli.text_files import CsvText, JsonText, csv_table, json_table, suffix_of
from calibrant.data.validation import fail
from calibrant.recalibrate.export import SqlMap
from calibrant.scale.csv_files import opened_text
from calibrant.scale.numpy_files import numpy_table

_CSV_INPUT, _JSON_INPUT, _NUMPY_INPUT = (*CSV, ".tsv", ".txt"), (*JSON_LINES, ".json"), (".npz", ".npy")


Done = Callable[[float, float | None], None]


def apply_to_file(
    fitted: Any, path: str, output: Path, inputs: Columns, *, suffix: str, done: Done = lambda *_: None
) -> list[str]:
    """Write the table of `path` with the new columns of a fitted map to `output`; returns what was guessed.

    CSV and JSON stay the same text with more fields. Everything else goes through Arrow piece by piece, so that memory
    does not grow with the file. `done` is told how many rows are done, and of how many where that is known.
    """
    notes: list[str] = []
    wanted = output.suffix.lower()
    words = f"Tables are written as .parquet, .arrow, .csv or .jsonl, not as {output.name!r}."
    refuse(wanted not in (*PARQUET, *ARROW, *CSV, *JSON_LINES), words)
    with _one_file(path) as source, replacing(output) as place:
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
        message = f"The map is a {type(fitted).__name__}: only maps of probabilities are written as SQL."
        raise UsageError(message)
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
    import pyarrow as pa

    with _arrow_table(fitted, source, inputs, suffix) as table:
        new = NewColumns.of(fitted, inputs, table.schema.names, suffix=suffix, notes=notes)
        schema, encoding = table.schema, dict(table.encoding)
        for name in new.outputs:
            schema = schema.append(pa.field(name, pa.float64()))
        if "compression" in encoding:
            encoding["compression"] = {**encoding["compression"], **dict.fromkeys(new.outputs, "SNAPPY")}
        first = 1
        with arrow_writer(place, wanted, schema, encoding) as write, in_background(write) as write_later:
            for piece in table.pieces():
                columns = [_numbers(piece[name], name, first) for name in new.inputs]
                features = [piece[name].to_pylist() for name in new.features]
                for name, values in zip(new.outputs, new.of_batch(columns, features, first), strict=True):
                    piece = piece.append_column(pa.field(name, pa.float64()), pa.array(values))
                write_later(piece.replace_schema_metadata(schema.metadata))
                first += len(piece)
                done(first - 1, table.rows)


@contextmanager
def _arrow_table(fitted: Any, source: str, inputs: Columns, suffix: str) -> Iterator[ArrowTable]:
    kind = suffix_of(source)
    if kind in (*PARQUET, *ARROW):
        with opened_arrow(source) as table:
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
        message = f"Cannot tell the format of {source!r} from its name; known endings are {known}."
        raise UsageError(message)


@contextmanager
def _one_file(path: str) -> Iterator[str]:
    """The path of one file; standard input is copied first."""
    if path == "-":
        with temporary_folder() as folder:
            yield copy_of_standard_input(folder)
        return
    if not Path(path).is_file():
        message = (
            f"There is no file {path!r}." if not Path(path).is_dir() else f"{path!r} is a folder: apply takes one file."
        )
        raise FileNotFoundError(message)
    if Path(path).stat().st_size == 0:
        fail(f"The file {path!r} is empty (0 bytes).")
    yield path


def _numbers(column: Any, name: str, first: int) -> Numbers:
    """A column of Arrow as NumPy has it, if it holds numbers and none is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        fail(f"Column {name!r} must hold numbers, but it holds {kind}.")
    if column.null_count:
        row = first + pc.index(column.is_null(), value=True).as_py()
        fail(f"Column {name!r} must not be missing, but it is in row {row:,}.")
    if kind != column.type or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy())
