"""`calibrant recalibrate`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.messages import require_writable, say
from calibrant.cli.options import TASK, Files, Force, takes
from calibrant.cli.progress import stage


@app.command()
@takes(*TASK)
def recalibrate(
    files: Files,
    columns: Columns,
    *,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="auto, or the name of a map: Temperature, Beta, StdScaling, PUIsotonic, ...",
        ),
    ] = "auto",
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The map, as JSON.")] = Path(
        "map.json"
    ),
    force: Force = False,
) -> None:
    """Fit a recalibration map and save it as JSON."""
    from calibrant.cli.named_maps import map_named

    require_writable(output, force=force)
    if not any("*" in name for name in columns.prob):  # else how many classes there are is known from the file
        map_named(method, columns.task)
    loaded = loaded_from(files, columns)
    recalibrator = map_named(method, _task(loaded.data, columns))
    with stage("Fitting"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recalibrator.fit(loaded.data)
    say(*dict.fromkeys(str(one.message) for one in told if issubclass(one.category, UserWarning)))
    recalibrator.save(output)
    _print_gains(recalibrator)
    print(f"Wrote {output}")


def _task(data: Any, columns: Columns) -> Any:
    """The task of the options; whether there are several classes, where a pattern names them, the data say."""
    from calibrant.data.predictions import Multiclass

    return "classes" if isinstance(data, Multiclass) else columns.task


def _print_gains(recalibrator: Any) -> None:
    """What cross-validation found of each candidate, where several were tried."""
    rows = getattr(recalibrator, "results_", None)
    if rows is None:
        return
    name = str(getattr(recalibrator, "loss_", "log loss"))
    for row in rows:
        gain = f"improvement {row['gain']:+.5f} ± {row['gain_se']:.5f}"
        print(f"{row['name']:<28} {name} {row['loss']:.5f}  {gain}")
