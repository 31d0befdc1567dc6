"""`calibrant simulate`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.console import UsageError, stage
from calibrant.cli.options import READING, Json, Seed, takes


@app.command()
@takes("truth", "prob", "positive", *READING)
def simulate(
    columns: Columns,
    *,
    files: Annotated[list[str] | None, typer.Argument(metavar="FILES", help="Files of predictions.")] = None,
    scores: Annotated[str | None, typer.Option("--scores", metavar="FILE", help="The same, as an option.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """How biased is each estimator at my sample size, and how small an error can I see?"""
    from calibrant.data.predictions import Binary
    from calibrant.simulate import advise
    from calibrant.table.bintable import BinTable

    named = [*(files or []), *([scores] if scores else [])]
    if not named:
        message = "Name a file of predictions: calibrant simulate scores.parquet."
        raise UsageError(message)
    data = loaded_from(named, columns).data
    if isinstance(data, BinTable):
        message = 'Simulation needs the rows; take a sample, e.g. with --where "random() < 0.1".'
        raise UsageError(message)
    if not isinstance(data, Binary):
        message = "Simulation is for the probability of one event: give --prob once."
        raise UsageError(message)
    with stage("Simulating"):
        advice = advise(data, seed=seed)
    print(json.dumps(advice.to_dict(), indent=2) if as_json else str(advice))
