"""The command `calibrant`: from a file of predictions to an answer.

Here belong arguments, files of users and messages. Whatever a Python user could want as well belongs below.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install where its libraries are missing."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit("The command line needs typer and rich: pip install 'calibrant[cli]'.")
    from calibrant.cli.commands import run
    from calibrant.cli.console import defer

    defer()
    run()
