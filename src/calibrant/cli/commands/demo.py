"""`calibrant demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.commands.application import app


@app.command()
def demo(
    *,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="FOLDER", help="Where predictions and reports go.")
    ] = Path("calibrant-demo"),
) -> None:
    """Train real models, write their predictions, and report on them: what you would do with your own file."""
    from calibrant.cli.demo import run_demo

    run_demo(folder, say=print)
