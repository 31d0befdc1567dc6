"""`calibrant apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.commands.application import app
from calibrant.cli.formats import UsageError
from calibrant.cli.messages import require_writable, say
from calibrant.cli.options import KINDS, Force, Members, Percent, Quantiles
from calibrant.cli.progress import stage


@app.command(name="apply")
def apply_map(
    map_file: Annotated[Path, typer.Argument(metavar="MAP", help="A map saved by `calibrant recalibrate`.")],
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=f"{KINDS} file; - for standard input.")] = None,
    *,
    prob: Annotated[
        list[str] | None,
        typer.Option("--prob", metavar="COLUMN", help='Probabilities: column, or pattern ("p_*"); one per class.'),
    ] = None,
    mean: Annotated[str | None, typer.Option("--mean", metavar="COLUMN", help="Column of predicted means.")] = None,
    std: Annotated[
        str | None, typer.Option("--std", metavar="COLUMN", help="Column of predicted standard deviations.")
    ] = None,
    quantiles: Quantiles = None,
    members: Members = None,
    percent: Percent = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File to write: .parquet, .arrow, .csv or .jsonl.")
    ] = Path("fixed.parquet"),
    suffix: Annotated[
        str, typer.Option("--suffix", metavar="TEXT", help="What the names of new columns end in.")
    ] = "_recalibrated",
    force: Force = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print the map as SQL on the columns --prob instead.")] = False,
    dialect: Annotated[
        str, typer.Option("--dialect", metavar="NAME", help="duckdb, sqlite, spark, postgres or ansi.")
    ] = "duckdb",
) -> None:
    """Recalibrate the predictions of a file; all its columns are kept as they are, new ones end in `_recalibrated`."""
    from calibrant.cli.apply import apply_to_file, sql_of
    from calibrant.cli.new_columns import Inputs
    from calibrant.recalibrate.persistence import load

    inputs = Inputs(tuple(prob or ()), mean, std, tuple(quantiles or ()), tuple(members or ()), percent)
    if sql:
        print("\n".join(sql_of(load(map_file), inputs, dialect)))
        return
    if file is None:
        message = "Name the file of predictions: calibrant apply map.json scores.parquet."
        raise UsageError(message)
    require_writable(output, force=force)
    recalibrator = load(map_file)
    with stage("Recalibrating") as working:
        notes = apply_to_file(recalibrator, file, output, inputs, suffix=suffix, done=working.done)
    say(*notes)
    print(f"Wrote {output}")
