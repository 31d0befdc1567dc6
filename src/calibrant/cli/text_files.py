"""CSV and JSON files whose text is kept: columns are typed only where the text can be recovered from the type."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibrant.cli.arrow_files import ArrowTable
from calibrant.cli.console import UsageError
from calibrant.cli.maps import NewColumns, Numbers
from calibrant.data.validation import InvalidPredictions, fail
from calibrant.scale.csv_files import MISSING_NUMBERS, CsvRecords, opened_text

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
        write(_with_fields(self._records.head, [_quoted(name, self.delimiter) for name in new.outputs], self.delimiter))
        places, others = ([self.header.index(name) for name in names] for names in (new.inputs, new.features))
        for first, batch in _batches(self.rows()):
            columns = [numbers([fields[k] for fields, _ in batch], self.header[k], first) for k in places]
            made = new.of_batch(columns, [[fields[k] for fields, _ in batch] for k in others], first)
            for (_, text), values in zip(batch, zip(*(part.tolist() for part in made), strict=True), strict=True):
                write(_with_fields(text, [repr(value) for value in values], self.delimiter))


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
        for first, batch in _batches(self.rows()):
            for row, (found, _) in enumerate(batch, first):
                _require_keys(found, new, row)
            columns = [numbers([found[name] for found, _ in batch], name, first) for name in new.inputs]
            features = [[found[name] for found, _ in batch] for name in new.features]
            made = new.of_batch(columns, features, first)
            for (_, text), values in zip(batch, zip(*(part.tolist() for part in made), strict=True), strict=True):
                added = ", ".join(f"{name}: {value!r}" for name, value in zip(names, values, strict=True))
                write(f"{text.rstrip()[:-1].rstrip()}, {added}}}\n")


def _with_fields(text: str, values: Sequence[str], delimiter: str) -> str:
    """The text of a row with further fields before its line break."""
    body = text.rstrip("\r\n")
    return body + "".join(f"{delimiter}{value}" for value in values) + text[len(body) :]


def _quoted(name: str, delimiter: str) -> str:
    made = io.StringIO()
    csv.writer(made, delimiter=delimiter, lineterminator="").writerow([name])
    return made.getvalue()


def numbers(values: Sequence[Any], name: str, first: int) -> Numbers:
    """A column of text or of values of JSON as numbers."""
    found = np.empty(len(values))
    for k, value in enumerate(values):
        try:
            found[k] = number(value)
        except (TypeError, ValueError):
            absent = value is None or (isinstance(value, str) and value.strip().lower() in ("", *MISSING_NUMBERS))
            what = "is missing" if absent else f"is {value!r}, which is not a number"
            message = f"Column {name!r} {what} in row {first + k:,}."
            raise InvalidPredictions(message) from None
    return found


def number(value: Any) -> float:
    """A number, or text that is one; Python's own underscores are none."""
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        raise ValueError(value)
    return float(value)


def _require_keys(found: dict[str, Any], new: NewColumns, row: int) -> None:
    for name in (*new.inputs, *new.features):
        if name not in found:
            fail(f"Column {name!r} is missing in row {row:,}.")
    for name in new.outputs:
        if name in found:
            fail(f"Row {row:,} has a column {name!r} already: choose other names by --suffix TEXT.")


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
        message = f"Line {row:,} has several values of {error}: leave all but one out."
        raise InvalidPredictions(message) from None
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
    between, wrong = re.compile(r"[ \t\r\n]*"), 0
    try:
        if text.lstrip().startswith("["):
            between, listed = re.compile(r"[ \t\r\n,\[\]]*"), json.loads(text)  # one cut short would look whole below
            wrong = next((k for k, one in enumerate(listed, 1) if not isinstance(one, dict)), 0)
    except (ValueError, RecursionError) as error:
        message = f"The file is not JSON: {error}."
        raise InvalidPredictions(message) from error
    if wrong:
        fail(f"Object {wrong:,} of the file is not a JSON object of names and values.")
    while (at := between.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # nothing matches too
        row += 1
        try:
            found, end = decoder.raw_decode(text, at)
        except _NameTwice as error:
            message = f"Object {row:,} of the file has several values of {error}: leave all but one out."
            raise InvalidPredictions(message) from None
        except (ValueError, RecursionError) as error:
            message = f"The file is not JSON: object {row:,} cannot be read ({error})."
            raise InvalidPredictions(message) from error
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
    import pyarrow as pa

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
                    made: Any = numbers(values, name, first) if name in inputs else _converted(values, kind)
                    arrays.append(pa.array(made, schema.field(k).type))
                yield pa.Table.from_arrays(arrays, schema=schema)

    return ArrowTable(schema, pieces)


def _kinds(text: CsvText, inputs: Collection[str]) -> list[str]:
    """The type of each column."""
    possible = [["double"] if name in inputs else list(_KINDS) for name in text.header]
    seen = [False] * len(possible)
    for _, batch in _batches(text.rows()):
        for k, name in enumerate(text.header):
            if name not in inputs:
                values = {fields[k] for fields, _ in batch} - {""}
                seen[k] |= bool(values)
                possible[k] = [kind for kind in possible[k] if _all_are(values, _KINDS[kind])]
    return [
        kinds[0] if kinds and (some or name in inputs) else "string"
        for name, kinds, some in zip(text.header, possible, seen, strict=True)
    ]


def _all_are(values: Collection[str], kind: Callable[[str], Any]) -> bool:
    try:
        for value in values:
            kind(value)
    except (ValueError, KeyError):
        return False
    return True


def _converted(values: list[str], kind: str) -> list[Any]:
    """Values of their type; nothing between two delimiters is a missing number, but the empty text."""
    if kind == "string":
        return values
    return [_KINDS[kind](value) if value else None for value in values]


def json_table(path: str) -> ArrowTable:
    """A JSON file, as a whole: names that a row lacks are missing values."""
    import pyarrow as pa

    with opened_text(path) as file:
        rows = [found for found, _ in JsonText(file).rows()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        table = pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowException, OverflowError) as error:
        message = f"The values of a column are of different types ({error}); write .jsonl, which keeps them."
        raise UsageError(message) from error
    return ArrowTable(table.schema, lambda: iter([table]))
