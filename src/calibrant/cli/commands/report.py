"""`calibrant report`, `calibrant serve` and `calibrant demo`: a report written, shown in a browser, or on examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import Command, app, loaded_from
from calibrant.cli.console import require_writable, say, stage, title_of, writing
from calibrant.cli.options import JUDGED, TASK, Files, Force, Json, Seed, Several, option, takes, written

_RANGES = "Divide --by columns of numbers into NUMBER ranges of equal size."
_CONFIRM = "Find groups on one half of the rows, and test them on the other."
_AUDIT = 'Features to audit by: columns, also "age,device", or patterns ("*").'


@app.command(cls=Command)
@takes(*TASK, *JUDGED, "by")
def report(
    files: Files,
    columns: Columns,
    *,
    depth: Annotated[int, option("NUMBER", "Also test crosses of up to NUMBER --by columns.")] = 2,
    ranges: Annotated[int | None, option("NUMBER", _RANGES)] = None,
    confirm: Annotated[bool, Option("--confirm", help=_CONFIRM)] = False,
    time: Annotated[str | None, option("COLUMN", "Time of each row: column or SQL.")] = None,
    threshold: Annotated[float | None, option("SCORE", "Score at which decisions are made.")] = None,
    tolerance: Annotated[float | None, option("ERROR", "Largest acceptable error, e.g. 0.01 for one point.")] = None,
    model: Annotated[str | None, option("TEXT", "Name of the model, or the column of names.")] = None,
    event: Annotated[str | None, option("WORD", "What one event is called, e.g. fraud.")] = None,
    row: Annotated[str | None, option("WORD", "What one row is called, e.g. payment.")] = None,
    title: Annotated[str | None, option("TEXT", "Title of the report.")] = None,
    audit: Annotated[Several, option("COLUMN", _AUDIT)] = None,
    output: Annotated[Path | None, written("File to write: .html, .json or .md.")] = None,
    force: Force = False,
    as_json: Json = False,
    seed: Seed = 0,
) -> None:
    """A full report: verdict, how sure, what to do, groups, time, recalibration; as text, HTML, JSON or Markdown."""
    from calibrant.cli.reports import by_and_time, with_own_commands, write_model_reports
    from calibrant.reporting import report as build
    from calibrant.reporting.contents import told_to

    require_writable(output, force=force, inputs=files)
    by = columns.by
    asked = replace(columns, by=(*by, *([time] if time else ())), model=model)
    loaded = loaded_from(files, asked, features=audit or ())
    groups, times = by_and_time(loaded.by, by, time)
    shared: dict[str, Any] = {
        "threshold": threshold, "tolerance": tolerance, "event": event, "row": row, "source": title_of(files),
        "seed": seed, "depth": depth, "quantiles": ranges, "confirm": confirm,
    }  # fmt: skip
    name = title or title_of(files)
    if loaded.model is not None:
        own: dict[str, Any] = {"files": files, "columns": replace(columns, model=model)}
        write_model_reports(loaded, groups, times, name, shared, output, force=force, as_json=as_json, **own)
        return
    if audit:
        shared["audit"] = loaded.features or {}
    with stage("Measuring") as measuring, told_to(measuring.part):
        found = build(loaded.data, by=groups, time=times, model=model, title=name, **shared)
    found = with_own_commands(found, files, columns)
    if output is not None:
        with stage("Writing"), writing(output, force=force):
            found.save(output)
        say(f"Wrote {output}")
    print(found.to_json() if as_json else found.verdict if output is not None else str(found))


@app.command(cls=Command)
@takes(*TASK, *JUDGED, "by")
def serve(
    files: Files,
    columns: Columns,
    *,
    port: Annotated[int, Option("--port", metavar="NUMBER", min=0, max=65535, help="Port; 0 for any free one.")] = 8765,
    seed: Seed = 0,
) -> None:
    """Open the report in the browser, served on this machine only."""
    from calibrant.cli.reports import by_and_time, serve_page, with_own_commands
    from calibrant.reporting import report as build
    from calibrant.reporting.contents import told_to

    loaded = loaded_from(files, columns)
    groups, _ = by_and_time(loaded.by, columns.by, None)
    with stage("Measuring") as measuring, told_to(measuring.part):
        found = build(loaded.data, by=groups, title=title_of(files), seed=seed)
    serve_page(with_own_commands(found, files, columns).to_html(), port)


@app.command(cls=Command)
def demo(
    *,
    folder: Annotated[Path, option("FOLDER", "Where predictions and reports go.")] = Path("calibrant-demo"),
) -> None:
    """Simulate predictions and run the commands that you would run on your own file: report, audit, repair, monitor."""
    from calibrant.cli.demo import run_demo

    run_demo(folder)
