"""Files that Calibrant wrote and reads back: maps and tables. What it did not write, or what is damaged, is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from calibrant._version import __version__
from calibrant.data.validation import fail

#: Lists and objects within each other; files of this package need fewer than twenty.
#: Derived: three times as many, and far below the 1,000 calls within each other that Python allows.
DEEPEST = 64


class InvalidFile(ValueError):
    """A saved map or table cannot be used: it is damaged, from elsewhere, of an unknown layout, or contradicts itself.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import calibrant as cal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/map.json"
    ...     _ = pathlib.Path(path).write_text("[1, 2]")
    ...     try:
    ...         cal.recalibrate.load(path)
    ...     except InvalidFile as error:
    ...         print(str(error).replace(folder, "folder"))
    folder/map.json is not a map written by save(): its format is not 'calibrant-map'.
    """


def parsed_json(content: bytes, name: str | os.PathLike[str], what: str) -> Any:
    """The value of a JSON text, of which nothing is trusted; `what` says what the file should be."""
    try:
        value = json.loads(content, parse_constant=lambda constant: fail(f"{constant} is not JSON", ValueError))
        too_deep = _depth_exceeds(value, DEEPEST)
    except (ValueError, RecursionError) as error:  # invalid UTF-8 and numbers of too many digits are ValueErrors too
        reason = "too deeply nested" if isinstance(error, RecursionError) else error
        holds = f"it does not hold JSON ({reason})"
        fail(f"{os.fspath(name)} is not {what}, or is damaged: {holds}.", InvalidFile, cause=error)
    if too_deep:
        fail(f"{os.fspath(name)} is not {what}: its contents are nested more than {DEEPEST} deep.", InvalidFile)
    return value


def layout_version(found: Any, readable: Collection[int], name: str | os.PathLike[str], written_by: Any = None) -> int:
    """The version of a file's layout, if it is one that this release reads."""
    if type(found) is int and found in readable:
        return found
    who = f", written by calibrant {written_by}" if isinstance(written_by, str) else ""
    remedy = " Upgrade calibrant." if type(found) is int and found > max(readable) else ""
    reads = f"this release ({__version__}) reads versions {' and '.join(map(str, sorted(readable)))}"
    return fail(f"{os.fspath(name)} has layout version {found!r}{who}; {reads}.{remedy}", InvalidFile)


@contextmanager
def reading_back(name: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn whatever wrong contents cause within the block into an `InvalidFile`; a missing library stays what it is."""
    try:
        yield
    except (ImportError, InvalidFile):
        raise
    except Exception as error:  # there is no end of exceptions that wrong contents can cause
        text = str(error).rstrip(".")
        if isinstance(error, KeyError):
            text = f"it lacks {text}"
        elif not isinstance(error, ValueError) or not text:
            text = f"{type(error).__name__}: {text}"
        fail(f"{os.fspath(name)} is not {what}: {text}.", InvalidFile, cause=error)


def _depth_exceeds(value: Any, limit: int) -> bool:
    """Whether lists and objects are nested deeper; level by level, without recursion."""
    level = [value]
    for _ in range(limit + 1):
        inner: list[Any] = []
        for item in level:
            inner.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        if not inner:
            return False
        level = inner
    return True
