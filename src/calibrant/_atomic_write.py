"""Atomic writes: a file is replaced completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file next to `path`, renamed to `path` if the block succeeds and deleted if it raises.

    Readers see the old file or the new one, never a partial one. The content is flushed to disk before the renaming, so
    a crash of the machine leaves no empty file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "a.txt"
    ...     with replacing(target) as place:
    ...         _ = place.write_text("whole")
    ...     target.read_text()
    'whole'
    """
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    place = Path(name)
    try:
        yield place
        with open(place, "rb+") as written:
            os.fsync(written.fileno())
        mask = os.umask(0)
        os.umask(mask)
        place.chmod(0o666 & ~mask)  # the temporary file's own mode would shut other readers out
        os.replace(place, target)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
