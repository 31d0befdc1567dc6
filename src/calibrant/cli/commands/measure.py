"""`calibrant measure`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.console import leave_if_failed, stage
from calibrant.cli.options import TASK, Files, Json, takes


@app.command()
@takes(*TASK, "by")
def measure(
    files: Files,
    columns: Columns,
    *,
    norm: Annotated[float, typer.Option("--norm", metavar="NUMBER", help="Exponent of the error, at least 1.")] = 1.0,
    level: Annotated[float, typer.Option("--level", metavar="SHARE", help="Confidence of the intervals.")] = 0.95,
    fail_above: Annotated[
        float | None, typer.Option("--fail-above", metavar="ERROR", help="Exit with 1 above this error.")
    ] = None,
    gate: Annotated[
        str, typer.Option("--gate", metavar="END", help="What is compared: lower or upper end, or estimate.")
    ] = "lower",
    per_group: Annotated[bool, typer.Option("--per-group", help="Every group of --by must pass as well.")] = False,
    as_json: Json = False,
) -> None:
    """The calibration error by several estimators, with an interval; a gate for CI with --fail-above."""
    from calibrant.cli.measures import Measuring
    from calibrant.data.validation import fraction
    from calibrant.inference.gates import Gate
    from calibrant.reporting.model import finite
    from calibrant.results.estimate import printable

    rule = None if fail_above is None else Gate(fail_above, by=gate)  # type: ignore[arg-type]  # which it checks
    measuring = Measuring(norm, fraction("--level", level), rule, per_group)
    loaded = loaded_from(files, columns, gate=rule is not None)
    with stage("Measuring"):
        found = measuring.of(loaded.data, loaded.by)
    if as_json:
        lines = [{"group": name, **estimate.to_dict()} for name, estimate in found.groups.items()]
        print(json.dumps(finite([*(estimate.to_dict() for estimate in found.whole), *lines]), indent=2))
    else:
        by = columns.by
        parts = (
            (printable(name if len(by) != 1 else f"{by[0]} = {name}"), estimate)
            for name, estimate in found.groups.items()
        )
        for name, estimate in [*((estimate.name, estimate) for estimate in found.whole), *parts]:
            print(f"{name:<22} {estimate:>9.5f}  {estimate.interval or ''!s:<20} {estimate.method}")
    leave_if_failed(measuring.failures(found))
