"""`calibrant recalibrate` and `calibrant apply`."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import Command, app, loaded_from
from calibrant.cli.console import refuse, require_writable, say, stage, stop, writing
from calibrant.cli.options import KINDS, TASK, Files, Force, one, option, several, takes, written

_MAPS = "Temperature, Beta, StdScaling, PUIsotonic"


@app.command(cls=Command)
@takes(*TASK)
def recalibrate(
    files: Files,
    columns: Columns,
    *,
    method: Annotated[str, option("NAME", f"auto, or the name of a map: {_MAPS}, ...")] = "auto",
    output: Annotated[Path, written("The map, as JSON.")] = Path("map.json"),
    force: Force = False,
) -> None:
    """Fit a recalibration map and save it as JSON."""
    from calibrant.cli.maps import map_named
    from calibrant.data.predictions import Multiclass

    require_writable(output, force=force, inputs=files)
    if not any("*" in name for name in columns.prob):  # else how many classes there are is known from the file
        map_named(method, columns.task)
    loaded = loaded_from(files, columns)
    recalibrator = map_named(method, "multiclass" if isinstance(loaded.data, Multiclass) else columns.task)
    with stage("Fitting"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recalibrator.fit(loaded.data)
    say(*dict.fromkeys(str(one.message) for one in told if issubclass(one.category, UserWarning)))
    with writing(output, force=force):
        recalibrator.save(output)
    _print_gains(recalibrator)
    print(f"Wrote {output}")


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


@app.command("apply", cls=Command)
@takes(
    *("quantiles", "members", "percent", "logits"),
    prob=several("COLUMN", 'Probabilities: column, or pattern ("p_*"); one per class.'),
    mean=one("COLUMN", "Column of predicted means."),
    std=one("COLUMN", "Column of predicted standard deviations."),
)
def apply_map(
    map_file: Annotated[Path, Argument(metavar="MAP", help="A map saved by `calibrant recalibrate`.")],
    file: Annotated[str | None, Argument(metavar="FILE", help=f"{KINDS} file; - for standard input.")] = None,
    *,
    columns: Columns,
    output: Annotated[Path, written("File to write: .parquet, .arrow, .csv or .jsonl.")] = Path("fixed.parquet"),
    suffix: Annotated[str, option("TEXT", "Suffix of the names of new columns.")] = "_recalibrated",
    force: Force = False,
    sql: Annotated[bool, Option("--sql", help="Print the map as SQL on the columns --prob instead.")] = False,
    dialect: Annotated[str, option("NAME", "duckdb, sqlite, spark, postgres or ansi.")] = "duckdb",
) -> None:
    """Recalibrate the predictions of a file; all its columns are kept as they are, new ones end in `_recalibrated`."""
    from calibrant.cli.apply import apply_to_file, sql_of
    from calibrant.recalibrate.persistence import load

    words = f"There is no map {str(map_file)!r}: make one with calibrant recalibrate FILES -o {map_file}."
    refuse(not map_file.is_file(), words)
    if sql:
        print("\n".join(sql_of(load(map_file), columns, dialect)))
        return
    if file is None:
        stop("Name the file of predictions: calibrant apply map.json scores.parquet.")
    require_writable(output, force=force, inputs=[map_file, file])
    recalibrator = load(map_file)
    with stage("Recalibrating") as working, writing(output, force=force):
        notes = apply_to_file(recalibrator, file, output, columns, suffix=suffix, done=working.done)
    say(*notes)
    print(f"Wrote {output}")
