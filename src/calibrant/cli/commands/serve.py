"""`calibrant serve` and `calibrant demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.console import stage, title_of
from calibrant.cli.options import TASK, Files, Seed, takes


@app.command()
@takes(*TASK, "by")
def serve(
    files: Files,
    columns: Columns,
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="NUMBER", min=0, max=65535, help="Port; 0 takes any free one.")
    ] = 8765,
    seed: Seed = 0,
) -> None:
    """Open the report in the browser, served on this machine only."""
    from calibrant.cli.reports import by_and_time, serve_page
    from calibrant.reporting import report as build
    from calibrant.reporting.assembling import told_to

    loaded = loaded_from(files, columns)
    groups, _ = by_and_time(loaded.by, columns.by, None)
    with stage("Measuring") as measuring, told_to(measuring.part):
        found = build(loaded.data, by=groups, title=title_of(files), seed=seed)
    serve_page(found.to_html(), port)


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
