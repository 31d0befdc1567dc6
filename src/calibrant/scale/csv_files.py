"""The rules of CSV files, the same for every command and every engine: what the header is, and how many rows there are.

The first record is the header and every other record is a row; nothing about rows is guessed. Fields are separated by
the delimiter that the header has most of, may be quoted by ``"``, and are as many in every row as in the header. Blank
lines are no rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import InvalidPredictions, fail

DELIMITERS = ",;\t|"
#: What stands for a missing number, in small letters; nothing between two delimiters does too.
MISSING_NUMBERS = ("na", "n/a", "#n/a", "null", "none", "-", ".", "?")
#: Longest field of a CSV file.
#: Derived: the largest power of two that a C long of 32 bits holds; lines of DuckDB are shorter.
_LONGEST_FIELD = 2**30
#: Bytes that are looked at together.
#: Speed: smaller blocks cost more calls; no result depends on it.
_BLOCK = 2**24
#: A longer quotation is rather a quote by itself; then the rows are counted by reading them.
#: Speed: as `_BLOCK`; no result depends on it.
_LONGEST_QUOTE = 4 * _BLOCK
_QUOTE, _RETURN, _NEWLINE = b'"', b"\r", b"\n"

Places = NDArray[np.intp]


@contextmanager
def opened_text(path: str) -> Iterator[io.TextIOWrapper]:
    """A file of text, compressed or not; bytes that are not UTF-8 are passed on as they are."""
    import pyarrow as pa

    with pa.input_stream(path, compression="detect") as stream:
        yield io.TextIOWrapper(io.BufferedReader(stream), encoding="utf8", errors="surrogateescape", newline="")


@dataclass(frozen=True)
class Header:
    """The first record of a file: its delimiter, the names of the columns, and how its line ends."""

    delimiter: str
    names: tuple[str, ...]
    ending: str = "\n"

    @property
    def repeated(self) -> tuple[str, ...]:
        """Names that several columns have."""
        return tuple(dict.fromkeys(name for name in self.names if self.names.count(name) > 1))


class Record(NamedTuple):
    """The fields of a row, its text with the line break, and the number of its first line, from 1."""

    fields: list[str]
    text: str
    line: int


class CsvRecords:
    """The header of a CSV file, given as its lines with their breaks, and its rows one by one."""

    def __init__(self, lines: Iterable[str]) -> None:
        csv.field_size_limit(_LONGEST_FIELD)
        self._lines = _Recorded(iter(lines))
        self.head = next(self._lines, "")
        while self.head.count('"') % 2:  # a name of a column may go over several lines
            self.head += next(self._lines, '"')
        text = self.head.removeprefix("\ufeff")
        if not text.strip():
            fail("The first line is blank: it must hold the names of the columns.")
        outside = re.sub(r'"[^"]*"', "", text)
        delimiter = max(DELIMITERS, key=outside.count)
        names = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
        self.header = Header(delimiter, tuple(name.strip() for name in names), _ending(text) or "\n")

    def __iter__(self) -> Iterator[Record]:
        """The rows; an error where one has not as many fields as the header."""
        reader = csv.reader(self._lines, delimiter=self.header.delimiter, skipinitialspace=True, strict=True)
        while True:
            self._lines.taken.clear()
            line = self._lines.number + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fail(f"Line {line:,} is not CSV: {error}.")
            text, width = "".join(self._lines.taken), len(self.header.names)
            if not fields and width == 1 and text:
                fail(f'Line {line:,} is blank: in a file of one column, write a missing value as "".')
            if fields and len(fields) != width:
                sizes = ((len(fields), "field"), (width, "column"))
                many, columns = (f"{number:,} {noun}{'' if number == 1 else 's'}" for number, noun in sizes)
                fail(f"Line {line:,} has {many}, but the header in line 1 names {columns}.")
            end = _ending(text)
            if end not in (self.header.ending, ""):
                fail(f"Line {line:,} ends in {end!r}, but line 1 in {self.header.ending!r}: write one of them.")
            if fields:
                yield Record(fields, text, line)


class _Recorded:
    """Lines, those taken since somebody last looked, and how many were taken in all."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self.taken, self.number = lines, list[str](), 0

    def __iter__(self) -> _Recorded:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken.append(line)
        self.number += 1
        return line


def _ending(text: str) -> str:
    return next((ending for ending in ("\r\n", "\n", "\r") if text.endswith(ending)), "")


def read_header(path: str) -> Header:
    """The header of a file, which an error is preceded by the name of."""
    with opened_text(path) as file, _named(path):
        return CsvRecords(file).header


def every_line_is_a_row(path: str, header: Header) -> bool:
    """Whether nothing in a file (quotes, blank lines, null bytes, other ends) could be read in two ways; fast."""
    import pyarrow as pa

    end, delimiter = header.ending.encode(), header.delimiter.encode()
    if end == _RETURN:
        return False
    odd = (_QUOTE, b"\0", 2 * end, delimiter + end)
    newlines, returns, pairs, tail = 0, 0, 0, b""
    with pa.input_stream(path, compression="detect") as stream:
        while block := stream.read(_BLOCK):
            text = tail + block
            if any(one in text for one in odd) or (end == _NEWLINE and _RETURN in block):
                return False
            if end != _NEWLINE:
                newlines, returns = newlines + block.count(_NEWLINE), returns + block.count(_RETURN)
                pairs += text.count(end) - tail.count(end)
            tail = text[-3:]
    return newlines == returns == pairs and not tail.endswith(delimiter)


def require_rows(path: str, header: Header, found: int) -> None:
    """Raise an error unless a reader that found this many rows has read all; it says where the file is not CSV."""
    if count_rows(path, header) == found:
        return
    with opened_text(path) as file, _named(path):
        rows = sum(1 for _ in CsvRecords(file))
    if rows != found:
        fail(f"Cannot read {path!r}: it has {rows:,} rows, but DuckDB finds {found:,}. Write it as Parquet.")


def first_fault(path: str) -> str | None:
    """What is wrong with a file that another reader refuses, by line; None where it keeps these rules."""
    with opened_text(path) as file:
        try:
            for record in CsvRecords(file):
                if not record.text.isascii() and re.search("[\udc80-\udcff]", record.text):
                    return f"Line {record.line:,} is not UTF-8 text."
        except InvalidPredictions as error:
            return str(error)
    return None


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except InvalidPredictions as error:
        fail(f"Cannot read {path!r}: {error}")


def count_rows(path: str, header: Header) -> int | None:
    """The rows of a file from its bytes, in a fraction of the time of reading them; None where that cannot be told."""
    import pyarrow as pa

    end = _RETURN if header.ending == "\r" else _NEWLINE
    rows, rest = -1, b""
    with pa.input_stream(path, compression="detect") as stream:
        while block := stream.read(_BLOCK):
            found, rest = _whole_lines(rest + block, end)
            if found is None or not _right_width(found, header):
                return None
            rows += found.rows
        last, rest = _whole_lines(rest + end, end)
        return None if last is None or rest or not _right_width(last, header) else rows + last.rows


class _Lines(NamedTuple):
    """Some whole lines: how many are not blank, and where quotes and ends of lines are."""

    letters: NDArray[np.uint8]
    rows: int
    quotes: Places
    ends: Places


def _whole_lines(text: bytes, end: bytes) -> tuple[_Lines | None, bytes]:
    """The lines that are complete, and the rest; None where a quotation does not end."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == end[0])
    quotes = np.flatnonzero(letters == _QUOTE[0]) if _QUOTE in text else ends[:0]
    ends = _unquoted(ends, quotes)
    if not len(ends):
        return (_Lines(letters[:0], 0, quotes, ends), text) if len(text) <= _LONGEST_QUOTE else (None, b"")
    starts = np.concatenate([[0], ends[:-1] + 1])
    size = ends - starts
    blank = (size == 0) | ((size == 1) & (letters[starts] == _RETURN[0]))
    return _Lines(letters[: ends[-1] + 1], int((~blank).sum()), quotes, ends), text[ends[-1] + 1 :]


def _right_width(lines: _Lines, header: Header) -> bool:
    """Whether no row has an empty field too many, which DuckDB does not see; asked where a row ends in a delimiter."""
    delimiter, last = ord(header.delimiter), lines.ends - len(header.ending)
    if not (lines.letters[last[last >= 0]] == delimiter).any():
        return True
    delimiters = _unquoted(np.flatnonzero(lines.letters == delimiter), lines.quotes)
    return len(delimiters) == lines.rows * (len(header.names) - 1)


def _unquoted(places: Places, quotes: Places) -> Places:
    """Those of the places that an even number of quotes stands before."""
    return places[np.searchsorted(quotes, places) % 2 == 0] if len(quotes) else places
