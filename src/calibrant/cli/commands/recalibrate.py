"""`calibrant recalibrate` and `calibrant apply`."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.console import UsageError, refuse, require_writable, say, stage, writing
from calibrant.cli.options import (
    KINDS,
    TASK,
    Files,
    Force,
    Logits,
    Members,
    Percent,
    Quantiles,
    columns_of,
    option,
    takes,
)


@app.command()
@takes(*TASK)
def recalibrate(
    files: Files,
    columns: Columns,
    *,
    method: Annotated[
        str, option("--method", "NAME", "auto, or the name of a map: Temperature, Beta, StdScaling, PUIsotonic, ...")
    ] = "auto",
    output: Annotated[Path, Option("-o", "--output", metavar="FILE", help="The map, as JSON.")] = Path("map.json"),
    force: Force = False,
) -> None:
    """Fit a recalibration map and save it as JSON."""
    from calibrant.cli.maps import map_named

    require_writable(output, force=force, inputs=files)
    if not any("*" in name for name in columns.prob):  # else how many classes there are is known from the file
        map_named(method, columns.task)
    loaded = loaded_from(files, columns)
    recalibrator = map_named(method, _task(loaded.data, columns))
    with stage("Fitting"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recalibrator.fit(loaded.data)
    say(*dict.fromkeys(str(one.message) for one in told if issubclass(one.category, UserWarning)))
    with writing(output, force=force):
        recalibrator.save(output)
    _print_gains(recalibrator)
    print(f"Wrote {output}")


def _task(data: Any, columns: Columns) -> Any:
    """The task of the options; the data say whether a pattern names one column or many."""
    from calibrant.data.predictions import Multiclass

    return "multiclass" if isinstance(data, Multiclass) else columns.task


def _print_gains(recalibrator: Any) -> None:
    """What cross-validation found of each candidate, where several were tried."""
    rows = getattr(recalibrator, "results_", None)
    if rows is None:
        return
    name = str(getattr(recalibrator, "loss_", "log loss"))
    for row in rows:
        gain = f"improvement {row['gain']:+.5f} ± {row['gain_se']:.5f}"
        print(f"{row['name']:<28} {name} {row['loss']:.5f}  {gain}")
    if any(math.isinf(row["loss"]) for row in rows) and "brier_gain" in rows[0]:
        used = max(rows, key=lambda row: row["weight"])
        print(
            "The log loss is infinite where an outcome of predicted probability 0 was observed. By the Brier score, "
            f"the improvement of {used['name']} is {used['brier_gain']:+.5f} ± {used['brier_gain_se']:.5f}."
        )


@app.command(name="apply")
def apply_map(
    map_file: Annotated[Path, Argument(metavar="MAP", help="A map saved by `calibrant recalibrate`.")],
    file: Annotated[str | None, Argument(metavar="FILE", help=f"{KINDS} file; - for standard input.")] = None,
    *,
    prob: Annotated[
        list[str] | None, option("--prob", "COLUMN", 'Probabilities: column, or pattern ("p_*"); one per class.')
    ] = None,
    mean: Annotated[str | None, option("--mean", "COLUMN", "Column of predicted means.")] = None,
    std: Annotated[str | None, option("--std", "COLUMN", "Column of predicted standard deviations.")] = None,
    quantiles: Quantiles = None,
    members: Members = None,
    percent: Percent = False,
    logits: Logits = False,
    output: Annotated[
        Path, Option("-o", "--output", metavar="FILE", help="File to write: .parquet, .arrow, .csv or .jsonl.")
    ] = Path("fixed.parquet"),
    suffix: Annotated[str, option("--suffix", "TEXT", "Suffix of the names of new columns.")] = "_recalibrated",
    force: Force = False,
    sql: Annotated[bool, Option("--sql", help="Print the map as SQL on the columns --prob instead.")] = False,
    dialect: Annotated[str, option("--dialect", "NAME", "duckdb, sqlite, spark, postgres or ansi.")] = "duckdb",
) -> None:
    """Recalibrate the predictions of a file; all its columns are kept as they are, new ones end in `_recalibrated`."""
    from calibrant.cli.apply import apply_to_file, sql_of
    from calibrant.recalibrate.persistence import load

    inputs = columns_of(
        prob=prob, mean=mean, std=std, quantiles=quantiles, members=members, percent=percent, logits=logits
    )
    words = f"There is no map {str(map_file)!r}: make one with calibrant recalibrate FILES -o {map_file}."
    refuse(not map_file.is_file(), words)
    if sql:
        print("\n".join(sql_of(load(map_file), inputs, dialect)))
        return
    if file is None:
        message = "Name the file of predictions: calibrant apply map.json scores.parquet."
        raise UsageError(message)
    require_writable(output, force=force, inputs=[map_file, file])
    recalibrator = load(map_file)
    with stage("Recalibrating") as working, writing(output, force=force):
        notes = apply_to_file(recalibrator, file, output, inputs, suffix=suffix, done=working.done)
    say(*notes)
    print(f"Wrote {output}")
