"""Atomic writes: a file is replaced completely or not at all."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no advisory locks of this kind
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".part"

#: Names of temporary files hold that of the file they become, up to this many bytes.
#: Derived: most systems allow 255, and a temporary name adds at most 16.
_LONGEST_NAME = 200

#: Whether files that exist already are kept; set by `creating`.
_KEEP: ContextVar[bool] = ContextVar("keep", default=False)


@contextmanager
def creating() -> Iterator[None]:
    """In the block, `replacing` replaces no file: where there is one, even one that has just come, it raises."""
    before = _KEEP.set(True)
    try:
        yield
    finally:
        _KEEP.reset(before)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file next to `path`, renamed to `path` if the block succeeds and deleted if it raises.

    Readers see the old file or the new one, never a partial one. The content is flushed to disk before the renaming, so
    a crash of the machine leaves no empty file. The new file has the permissions of the old one; of a symbolic link the
    file it points to is replaced; into a pipe or a device the content is copied once it is complete. Temporary files
    that killed processes left behind for the same `path` are removed.
    """
    old, keep = _status(path), _KEEP.get()
    if old is not None and keep:
        raise _exists(path)
    if old is not None and stat.S_ISDIR(old.st_mode):
        message = f"{os.fspath(path)!r} is a folder; name a file to write."
        raise IsADirectoryError(message)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with tempfile.TemporaryDirectory() as folder:
            yield (place := Path(folder) / "content")
            with open(place, "rb") as content, open(path, "wb") as pipe:
                shutil.copyfileobj(content, pipe)
        return
    target = Path(os.path.realpath(path))
    _remove_stale(target)
    handle, place = _claimed(target)
    try:
        yield place
        with open(place, "rb+") as written:
            os.fsync(written.fileno())
        _set_permissions(place, old)
        _move_to_new(place, target) if keep else os.replace(place, target)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def folder_locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other processes that ask for the same lock, on the folder of `path`, waiting until the block ends.

    Nothing is written, so nothing is left behind; the system releases the lock of a process that dies.
    """
    if fcntl is None:  # pragma: no cover - Windows
        yield
        return
    handle = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _move_to_new(place: Path, target: Path) -> None:
    """Rename a file unless there is one of the new name: a link is refused then, in one step."""
    try:
        os.link(place, target)
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError:  # file systems without links, where only processes of this package wait for each other
        with folder_locked(target):
            if target.exists():
                raise _exists(target) from None
            os.replace(place, target)
    else:
        place.unlink()


def _exists(path: str | os.PathLike[str]) -> FileExistsError:
    return FileExistsError(f"{os.fspath(path)!r} exists already and is kept as it is.")


def _short(name: str) -> str:
    """The name itself, or a digest of one that leaves no room for what a temporary name adds to it."""
    return name if len(os.fsencode(name)) <= _LONGEST_NAME else sha256(os.fsencode(name)).hexdigest()


def _claimed(target: Path) -> tuple[int | None, Path]:
    """A new temporary file, locked as long as the handle is open: a file that nobody locks is stale.

    Where there are no locks nothing is kept open, since Windows renames no open file.
    """
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{_short(target.name)}.", suffix=_SUFFIX, dir=target.parent)
        if fcntl is None:
            os.close(handle)
            return None, Path(name)
        if _lock(handle) and _status(name) is not None:  # else another process took it for stale in this moment
            return handle, Path(name)
        os.close(handle)  # pragma: no cover - a race of a few microseconds
        Path(name).unlink(missing_ok=True)  # pragma: no cover


def _remove_stale(target: Path) -> None:
    ours = re.compile(rf"\.{re.escape(_short(target.name))}\.\w{{8}}{re.escape(_SUFFIX)}")  # as mkstemp names them
    for entry in os.scandir(target.parent):
        if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with suppress(OSError):  # another process may be faster, or own the file
                handle = os.open(entry.path, os.O_RDWR)
                try:
                    if fcntl is not None and _lock(handle):
                        os.unlink(entry.path)
                finally:
                    os.close(handle)


def _lock(handle: int) -> bool:
    """Whether this process has the file to itself; where there are no locks, it is not contested."""
    if fcntl is None:  # pragma: no cover - Windows
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # pragma: no cover - file systems without locks
        return True
    return True


def _set_permissions(place: Path, old: os.stat_result | None) -> None:
    """Those of the file that is replaced; of a new file, what the user's mask leaves."""
    if old is None:
        mask = os.umask(0)
        os.umask(mask)
        place.chmod(0o666 & ~mask)  # the temporary file's own mode would shut other readers out
        return
    if hasattr(os, "chown"):
        with suppress(OSError):  # only the superuser may give files away
            os.chown(place, old.st_uid, old.st_gid)
    place.chmod(stat.S_IMODE(old.st_mode))
