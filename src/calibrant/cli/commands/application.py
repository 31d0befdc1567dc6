"""The application that the commands belong to, and how its errors are said."""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant._version import __version__
from calibrant.cli.console import BAD_INPUT, INTERRUPTED, UNEXPECTED, UsageError, complain, say, stage

if TYPE_CHECKING:
    from calibrant.cli.columns import Columns
    from calibrant.cli.files import Loaded

app = typer.Typer(
    name="calibrant",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Can a model's predicted uncertainty be trusted? Measure its calibration, with intervals, and recalibrate it.",
)


def run() -> None:
    """Run the command; errors are one sentence with the remedy, a traceback only with --debug."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, prog_name="calibrant", standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        elif _is_said(error):
            complain(str(error))
        else:
            kind = type(error).__name__
            complain(f"{kind}: {error}. This is an error of calibrant itself; --debug shows where it is.")
        sys.exit(BAD_INPUT if _is_said(error) else UNEXPECTED)


def _is_said(error: Exception) -> bool:
    """Whether the message of an error is meant for the user: of our own types, or raised by our own checks."""
    from calibrant.data.saved_files import InvalidFile
    from calibrant.data.validation import InvalidPredictions

    if isinstance(error, (UsageError, InvalidPredictions, InvalidFile, OSError, ImportError)):
        return True
    if not isinstance(error, (ValueError, TypeError)) or error.__traceback__ is None:
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith("calibrant.")


@app.callback(invoke_without_command=True)
def _version(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def loaded_from(files: list[str], columns: Columns, *, gate: bool = False) -> Loaded:
    """The predictions of the files; what was guessed or left out is said. A gate refuses guesses among several."""
    from calibrant.cli.files import load

    with stage("Reading"):
        loaded = load(files, replace(columns, gate=gate))
    say(*loaded.notes)
    return loaded
