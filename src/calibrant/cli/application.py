"""The application that the commands belong to, and how its errors are said."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option
from typer.core import TyperCommand, TyperOption

from calibrant._version import __version__
from calibrant.cli.console import BAD_INPUT, INTERRUPTED, UNEXPECTED, UsageError, complain, refuse, say, stage

if TYPE_CHECKING:
    from calibrant.cli.columns import Columns
    from calibrant.cli.files import Loaded


class Command(TyperCommand):
    """A command whose flags are shown without a type, and whose options are given once unless they take several."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for one in self.params:
            if isinstance(one, TyperOption) and one.is_flag:
                one.metavar = ""

    def get_help_option(self, ctx: Any) -> Any:
        """That of every command, without a type too."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.metavar = ""
        return found

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice, of which only the last would count."""
        single = {name: one for one in self.params if isinstance(one, TyperOption) for name in one.opts}
        given, words = Counter[str](), iter(args)
        for word in words:
            name = word.partition("=")[0] if word.startswith("--") else word
            if word == "--":
                break
            if name in single and not single[name].is_flag:
                given[single[name].opts[-1]] += not single[name].multiple
                if "=" not in word:
                    next(words, None)
        for name, count in given.items():
            refuse(count > 1, f"{name} is given {count} times, but takes one value.")
        return super().parse_args(ctx, args)


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
    *, version: Annotated[bool, Option("--version", metavar="", help="Print the version and exit.")] = False
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def loaded_from(files: list[str], columns: Columns, *, gate: bool = False, features: Sequence[str] = ()) -> Loaded:
    """The predictions of the files; what was guessed or left out is said. A gate refuses guesses among several."""
    from calibrant.cli.files import load

    with stage("Reading"):
        loaded = load(files, replace(columns, gate=gate), features=features)
    say(*loaded.notes)
    return loaded
