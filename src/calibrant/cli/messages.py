"""What the command line says besides its results: notes and errors, on standard error."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from calibrant.cli.formats import UsageError

#: Exit codes; 70 is that of an internal software error in sysexits.h.
GATE_FAILED, BAD_INPUT, UNEXPECTED, INTERRUPTED = 1, 2, 70, 130


def say(*lines: str) -> None:
    """Print notes; no escape sequence of a user's file reaches the terminal."""
    from calibrant.results.printable import printable

    for line in lines:
        print(printable(line), file=sys.stderr)


def complain(text: str) -> None:
    """Print an error."""
    from rich.console import Console
    from rich.markup import escape

    from calibrant.results.printable import printable

    Console(stderr=True, highlight=False).print(f"[red]Error:[/red] {escape(printable(text))}", soft_wrap=True)


def leave_if_failed(reasons: list[str]) -> None:
    """Leave with the exit code of a failed gate if there are reasons, and say them."""
    if reasons:
        say(*(f"Gate failed: {reason}." for reason in reasons))
        raise typer.Exit(GATE_FAILED)


def require_writable(output: Path | None, *, force: bool) -> None:
    """Refuse to overwrite before any work is done."""
    if output is None:
        return
    if output.exists() and not force:
        message = f"{output} exists already; give another name or --force."
        raise UsageError(message)
    if not output.resolve().parent.is_dir():
        message = f"There is no folder {output.resolve().parent} to write {output.name} to."
        raise UsageError(message)


def title_of(files: list[str]) -> str:
    """What a report on these files is called.

    >>> title_of(["scores/2025.csv", "scores/2026.csv"])
    '2025.csv, 2026.csv'
    """
    return "Standard input" if files == ["-"] else ", ".join(Path(name).name for name in files)
