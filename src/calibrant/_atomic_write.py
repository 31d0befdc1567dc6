"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A place beside `path` to write to, which takes its name when the block ends well and vanishes when it does not.

    Readers see the old file or the new one, never a part. The content reaches the disk before the name does, so that
    a crash of the machine leaves no empty file either.

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
