"""Standard input as a file, and tables written to files."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._atomic_write import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How compressed content begins.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
#: How content of a format begins, after white space, and the ending that says so; the rest is CSV.
_BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"{": ".jsonl", b"[": ".json"}


class UsageError(Exception):
    """Invalid command-line arguments; the message is for the user."""


@contextmanager
def named(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths, with a copy of standard input in place of ``-``."""
    with tempfile.TemporaryDirectory() as folder:
        yield [copy_of_standard_input(Path(folder)) if path == "-" else path for path in paths]


def copy_of_standard_input(folder: Path) -> str:
    """The path of a file in `folder` with what standard input holds, unpacked; its ending says the format."""
    content = sys.stdin.buffer.read()
    packing = next((name for start, name in _COMPRESSED.items() if content.startswith(start)), None)
    if packing is not None:
        import pyarrow as pa

        content = pa.CompressedInputStream(pa.BufferReader(content), packing).read()
    begin = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not begin:
        from calibrant.data.validation import InvalidPredictions

        message = "Standard input is empty."
        raise InvalidPredictions(message)
    suffix = next((suffix for start, suffix in _BEGINNINGS.items() if begin.startswith(start)), ".csv")
    path = folder / f"standard-input{suffix}"
    path.write_bytes(content)
    return str(path)


def write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write columns as Parquet, CSV or JSON lines by the ending of the path; the file appears whole or not at all."""
    import pyarrow as pa

    suffix = path.suffix.lower()
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    with replacing(path) as place:
        if suffix in (".parquet", ".pq"):
            from pyarrow import parquet

            parquet.write_table(table, place)
        elif suffix == ".csv":
            from pyarrow import csv

            csv.write_csv(table, place)
        elif suffix in (".jsonl", ".ndjson"):
            with open(place, "w", encoding="utf8") as file:
                file.writelines(json.dumps(row, default=str) + "\n" for row in table.to_pylist())
        else:
            message = f"Tables are written as .parquet, .csv or .jsonl, not as {path.name!r}."
            raise UsageError(message)
