"""How DuckDB reads the files of one format, and what columns it finds in them.

Types are those of the files. Text files have none, and DuckDB finds them from the first rows; since it would round
later numbers to a type of whole numbers, and take words such as ``no`` for truth values, numbers of text files are
always double precision and words stay words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.data.validation import InvalidPredictions
from calibrant.scale.paths import Files, Format, as_pattern, is_remote
from calibrant.scale.schemas import WHOLE, Part

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
