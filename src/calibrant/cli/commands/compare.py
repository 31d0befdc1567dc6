"""`calibrant compare` and `calibrant simulate`: which model, and which estimator at my sample size?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

from typer import Argument

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.console import UsageError, refuse, say, stage
from calibrant.cli.options import ANSWERS, LABELS, READING, Files, Json, Seed, option, takes

Several = list[str] | None


@app.command()
@takes("truth", *ANSWERS, *LABELS, "weight", *READING)
def compare(
    files: Files,
    columns: Columns,
    *,
    prob: Annotated[
        Several, option("--prob", "COLUMN", 'Twice, once per model; multiclass: "a_*" or a0,a1,a2.')
    ] = None,
    mean: Annotated[Several, option("--mean", "COLUMN", "Twice: predicted means of each model.")] = None,
    std: Annotated[Several, option("--std", "COLUMN", "Twice: predicted standard deviations of each model.")] = None,
    quantiles: Annotated[
        Several, option("--quantiles", "LEVEL=COLUMN", 'Twice: "a_*", or 0.1=a10,0.9=a90, of each model.')
    ] = None,
    members: Annotated[
        Several, option("--members", "COLUMN", 'Twice: "a_*", or a1,a2,a3, the ensemble of each model.')
    ] = None,
    model: Annotated[
        str | None, option("--model", "COLUMN", "Answers: column of the model; one row per model and question.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Which of two models is better calibrated on the same rows?"""
    from calibrant.cli.files import load_models
    from calibrant.cli.measures import compared, estimator_of, names_of, sentence
    from calibrant.inference.comparison import compare_many

    options = {"prob": prob, "mean": mean, "std": std, "quantiles": quantiles, "members": members}
    given = {name: values or () for name, values in options.items()}
    if not any(given.values()) and columns.truth is None:
        from calibrant.cli.reports import compared_answers

        several = compared_answers(loaded_from(files, replace(columns, model=model)))
        print(json.dumps([one.to_dict() for one in several]) if as_json else "\n\n".join(map(sentence, several)))
        return
    models = compared(columns, given)
    with stage("Reading"):
        (first, second), notes = load_models(files, models)
    say(*notes)
    with stage("Comparing"):
        one, other = names_of(given)
        found = compare_many(estimator_of(first), {one: first, other: second}, reference=other)[0]
    print(json.dumps(found.to_dict(), indent=2) if as_json else sentence(found))


@app.command()
@takes("truth", "prob", "positive", *READING)
def simulate(
    columns: Columns,
    *,
    files: Annotated[list[str] | None, Argument(metavar="FILES", help="Files of predictions.")] = None,
    scores: Annotated[str | None, option("--scores", "FILE", "The same, as an option.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """How biased is each estimator at my sample size, and how small an error can I detect?"""
    from calibrant.data.predictions import Binary
    from calibrant.simulate import advise
    from calibrant.table.bintable import BinTable

    named = [*(files or []), *([scores] if scores else [])]
    refuse(not named, "Name a file of predictions: calibrant simulate scores.parquet.")
    data = loaded_from(named, columns).data
    refuse(isinstance(data, BinTable), 'Simulation needs the rows; take a sample, e.g. with --where "random() < 0.1".')
    if not isinstance(data, Binary):
        message = "Simulation is for binary predictions: give --prob once."
        raise UsageError(message)
    with stage("Simulating"):
        advice = advise(data, seed=seed)
    print(json.dumps(advice.to_dict(), indent=2) if as_json else str(advice))
