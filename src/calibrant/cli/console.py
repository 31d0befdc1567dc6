"""Standard input, output files, notes and errors (to standard error), progress, and what the process imports late."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from calibrant._atomic_write import creating

if TYPE_CHECKING:
    from rich.console import Console

    from calibrant.inference.gates import Decision


#: How compressed content begins.
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
#: How content of a format begins, after white space, and the ending that says so; the rest is CSV.
_BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff" * 4: ".arrow",
    b"PK\x03\x04": ".npz",
    b"\x93NUMPY": ".npy",
    b"{": ".jsonl",
    b"[": ".json",
}


#: Letters of a command in one line. Derived: what a box of code on half of a page holds.
HALF_PAGE = 58


class UsageError(Exception):
    """Invalid command-line arguments; the message is for the user."""


def stop(message: str, *, cause: BaseException | None = None) -> NoReturn:
    """Raise a `UsageError`."""
    raise UsageError(message) from cause


def refuse(broken: object, message: str) -> None:
    """Raise a `UsageError` if a rule is broken."""
    if broken:
        stop(message)


def in_shell(word: str) -> str:
    """A word as one would type it in a shell: in double quotes where these are enough."""
    quoted = shlex.quote(word)
    return f'"{word}"' if "'" in word and not set(word) & set('"$`!\\\n') else quoted


def over_lines(command: str, width: int = HALF_PAGE) -> str:
    """A command over several lines, as a shell would take it; an option stays beside its value."""
    parts: list[str] = []
    for word in shlex.split(command):
        if not parts or re.match("--?[a-z]", word):
            parts.append(in_shell(word))
        else:
            parts[-1] += f" {in_shell(word)}"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return " \\\n".join(lines)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end, also where the process is told to end: no copy of data stays behind."""
    folder = tempfile.mkdtemp()

    def leave(number: int, _: Any) -> None:  # at once: an exception might be caught, or abort other libraries
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    main = threading.current_thread() is threading.main_thread()
    ours = [one for one in known if main and signal.getsignal(one) is signal.SIG_DFL]  # `nohup` ignores the second
    try:
        for one in ours:
            signal.signal(one, leave)
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def copy_of_standard_input(folder: Path) -> str:
    """The path of a file in `folder` with what standard input holds, unpacked; its ending says the format."""
    content = sys.stdin.buffer.read()
    packing = next((name for start, name in _COMPRESSED.items() if content.startswith(start)), None)
    if packing is not None:
        import pyarrow as pa

        content = pa.CompressedInputStream(pa.BufferReader(content), packing).read()
    begin = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not begin:
        from calibrant.data.validation import fail

        fail("Standard input is empty.")
    suffix = next((suffix for start, suffix in _BEGINNINGS.items() if begin.startswith(start)), ".csv")
    path = folder / f"standard-input{suffix}"
    path.write_bytes(content)
    return str(path)


#: Exit codes; those of gates are in `inference.gates`.
#: Reference: BSD sysexits.h (70, internal software error) and POSIX shells (2, usage; 130, interrupted).
BAD_INPUT, UNEXPECTED, INTERRUPTED = 2, 70, 130


def say(*lines: str) -> None:
    """Print notes; no escape sequence of a user's file reaches the terminal."""
    from calibrant.results.estimate import printable

    for line in lines:
        print(printable(line), file=sys.stderr)


def complain(text: str) -> None:
    """Print an error."""
    from rich.console import Console
    from rich.markup import escape

    from calibrant.results.estimate import printable

    Console(stderr=True, highlight=False).print(f"[red]Error:[/red] {escape(printable(text))}", soft_wrap=True)


def leave_with(decision: Decision) -> None:
    """Say the result of a gate, and exit with its code."""
    say(*decision.lines)
    if decision.exit_code:
        raise typer.Exit(decision.exit_code)


def require_writable(output: Path | None, *, force: bool, inputs: Sequence[str | Path] = ()) -> None:
    """Refuse to overwrite before any work is done, and a file that is read even if told to."""
    if output is None:
        return
    if output.exists() and force:
        for name in inputs:
            words = f"{output} is also read (as {name}), and would be destroyed: give another name with -o."
            refuse(any(os.path.samefile(place, output) for place in _places(name)), words)
    refuse(output.exists() and not force, f"{output} exists already; give another name or --force.")
    words = f"There is no folder {output.resolve().parent} to write {output.name} to."
    refuse(not output.resolve().parent.is_dir(), words)


def _places(name: str | Path) -> list[str]:
    """The files that a path, folder or pattern names; none where there are none, which reading says better."""
    from calibrant.scale.paths import files, is_remote

    name = "/dev/stdin" if str(name) == "-" else name
    if Path(name).is_file():
        return [str(name)]
    try:
        return [place for _, place in files([name]).each if not is_remote(place)]
    except (OSError, ValueError):
        return []


@contextmanager
def writing(output: Path, *, force: bool) -> Iterator[None]:
    """Overwrite no file in the block unless told to, not even one that another process makes in the meantime."""
    if force:
        yield
        return
    try:
        with creating():
            yield
    except FileExistsError as error:
        stop(f"{output} exists already; give another name or --force.", cause=error)


def title_of(files: list[str]) -> str:
    """What a report on these files is called."""
    return "Standard input" if files == ["-"] else ", ".join(Path(name).name for name in files)


@dataclass
class Stage:
    """A stage of the work; what is told of it appears where somebody can see it."""

    name: str
    bar: Any = None
    task: Any = None

    def part(self, name: str) -> None:
        """Say which part of the stage begins."""
        if self.bar is not None:
            shown = name if name[:2].isupper() else f"{name[:1].lower()}{name[1:]}"  # ECE stays ECE
            self.bar.update(self.task, description=f"{self.name}: {shown}")

    def done(self, amount: float, total: float | None) -> None:
        """Say how much is done; without a total the bar only shows that work goes on."""
        if self.bar is not None:
            self.bar.update(self.task, completed=amount, total=total)


@contextmanager
def stage(name: str, console: Console | None = None) -> Iterator[Stage]:
    """Show a stage while it lasts; off a terminal nothing is printed."""
    from rich.console import Console

    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield Stage(name)
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    shown = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), shown, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield Stage(name, bar, bar.add_task(name, total=None))


#: Libraries that others import but our commands seldom use: scikit-learn the first two for its compatibility functions,
#: SciPy the third because NumPy lists it. They take longer to import than a report takes to compute.
SELDOM_USED = frozenset({"pandas", "scipy.stats", "numpy.f2py"})


class WhenUsed(MetaPathFinder):
    """Finds the modules called `names` as Python does, but has them executed when an attribute is first used."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is, with a loader that waits; None where it is not there or not one of ours."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self.names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer() -> None:
    """Have the libraries loaded when used; for a process of our own only, as others decide about their imports."""
    sys.meta_path.insert(0, WhenUsed(SELDOM_USED))
