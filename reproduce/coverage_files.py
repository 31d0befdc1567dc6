"""CSV files that grow while something is measured."""

from __future__ import annotations

import csv
import os
from pathlib import Path

Line = dict[str, object]


def write(path: Path, text: str) -> None:
    """Replace the whole file at once."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf8")
    os.replace(part, path)


def write_csv(path: Path, lines: list[Line]) -> None:
    """One line per result, with the columns of them all."""
    columns = list(dict.fromkeys(key for line in lines for key in line))
    part = path.with_suffix(".csv.part")
    with part.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows({key: f"{v:.5g}" if isinstance(v, float) else v for key, v in line.items()} for line in lines)
    os.replace(part, path)


def read_csv(path: Path) -> list[Line]:
    """The lines without their empty columns; nothing where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf8") as file:
        return [{key: _number(text) for key, text in line.items() if text != ""} for line in csv.DictReader(file)]


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text
