"""`calibrant test`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import app, loaded_from
from calibrant.cli.console import leave_with, stage
from calibrant.cli.options import TASK, Files, Json, MaxMissing, takes


@app.command(name="test")
@takes(*TASK)
def check(
    files: Files,
    columns: Columns,
    *,
    alpha: Annotated[float, typer.Option("--alpha", metavar="P-VALUE", help="Reject below this p-value.")] = 0.05,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 when calibration is rejected.")] = False,
    max_missing: MaxMissing = 0.05,
    as_json: Json = False,
) -> None:
    """Test whether the predictions are calibrated; of several classes the whole vector, then each class."""
    from calibrant.cli.measures import missing_check
    from calibrant.data.validation import fraction
    from calibrant.inference.calibration_tests import calibration_test
    from calibrant.inference.gates import Decision, Gate

    gate = Gate(fraction("--alpha", alpha))
    loaded = loaded_from(files, columns, gate=fail)
    with stage("Testing"):
        found = calibration_test(loaded.data)
        classes, top = _of_classes(loaded.data)
    tested = gate.decide(found)
    rejected = tested.result == "failed"
    decision = Decision((*missing_check(loaded.left_out, max_missing, gate.by), *tested.checks))
    if as_json:
        more = {} if classes is None else classes.to_dict()
        parts = {"classes": more.get("classes"), "top_label": None if top is None else top.to_dict()}
        known = {name: part for name, part in parts.items() if part is not None}
        known |= {"gate": decision.to_dict()} if fail else {}
        print(json.dumps({**found.to_dict(), "rejected": rejected, **known}, indent=2))
    else:
        word = "rejected" if rejected else "not rejected"
        print(f"{found.method}: statistic {found.statistic:.4g}, {_p(found.p_value)}; calibration is {word}.")
        for part in (None if top is None else f"Top label: {_p(top.p_value)}.", classes):
            if part is not None:
                print(part)
    if fail:
        leave_with(decision)


def _of_classes(data: Any) -> tuple[Any, Any]:
    """For several classes: the tests of each class, strongest evidence first, and of the top label; else None."""
    from calibrant.data.predictions import Multiclass
    from calibrant.inference.calibration_tests import calibration_test
    from calibrant.inference.multiclass_tests import by_class

    return (by_class(data), calibration_test(data.top_label())) if isinstance(data, Multiclass) else (None, None)


def _p(value: float) -> str:
    return "p ≤ 0.001" if value <= 0.001 else f"p = {value:.3g}"
