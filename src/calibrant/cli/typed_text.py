"""CSV and JSON files as Arrow tables, typed only where the text can be had back from the type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any

from calibrant.cli.arrow_files import ArrowTable
from calibrant.cli.formats import UsageError
from calibrant.cli.text_files import BATCH, CsvText, JsonText, numbers, opened_text


def _whole(text: str) -> int:
    value = int(text)
    if str(value) != text or not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def _decimal(text: str) -> float:
    value = float(text)
    if repr(value) != text:
        raise ValueError(text)
    return value


def _truth(text: str) -> bool:
    return {"True": True, "False": False}[text]


#: Types that a column of text may have, if every value is written as Python writes that type.
_KINDS: dict[str, Callable[[str], Any]] = {"int64": _whole, "double": _decimal, "bool": _truth}


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
            text, first = CsvText(file), 1
            rows = text.rows()
            while batch := list(islice(rows, BATCH)):
                arrays = []
                for k, (name, kind) in enumerate(zip(text.header, kinds, strict=True)):
                    values = [fields[k] for fields, _ in batch]
                    made: Any = numbers(values, name, first) if name in inputs else _converted(values, kind)
                    arrays.append(pa.array(made, schema.field(k).type))
                yield pa.Table.from_arrays(arrays, schema=schema)
                first += len(batch)

    return ArrowTable(schema, pieces)


def _kinds(text: CsvText, inputs: Collection[str]) -> list[str]:
    """The type of each column."""
    possible = [["double"] if name in inputs else list(_KINDS) for name in text.header]
    seen = [False] * len(possible)
    rows = text.rows()
    while batch := list(islice(rows, BATCH)):
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
