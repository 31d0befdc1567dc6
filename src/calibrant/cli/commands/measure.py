"""`calibrant measure`, `test`, `compare` and `simulate`: how far is a model off, by chance, and which is better?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

from typer import Argument, Option

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import Command, app, loaded_from
from calibrant.cli.console import leave_with, refuse, say, stage, stop
from calibrant.cli.options import (
    ANSWERS,
    JUDGED,
    LABELS,
    READING,
    TASK,
    Files,
    Json,
    MaxMissing,
    Seed,
    Several,
    option,
    takes,
)

_LIMIT = (
    "Gate: error=0.02, relative=0.25 (to the base rate), oe=0.8:1.25, slope=0.8:1.2, coverage:0.9=0.87:0.93 or "
    "ence=0.1; repeatable. Exit codes: 0 passed, 1 failed, 3 too few rows to decide."
)
_MODEL = "Answers: column of the model; one row per model and question."


@app.command(cls=Command)
@takes(*TASK, *JUDGED, "by")
def measure(
    files: Files,
    columns: Columns,
    *,
    norm: Annotated[float, option("NUMBER", "Exponent of the error, at least 1.")] = 1.0,
    level: Annotated[float, option("SHARE", "Confidence of the intervals.")] = 0.95,
    fail_above: Annotated[float | None, option("ERROR", "Short for --limit error=ERROR.")] = None,
    limit: Annotated[Several, option("NAME=LIMIT", _LIMIT)] = None,
    gate: Annotated[str, option("END", "What decides: the interval (lower or upper), or estimate alone.")] = "lower",
    per_group: Annotated[bool, Option("--per-group", help="Every group of --by must pass as well.")] = False,
    max_missing: MaxMissing = 0.05,
    as_json: Json = False,
) -> None:
    """The calibration error by several estimators, with an interval; a gate for CI with --fail-above or --limit."""
    from calibrant.cli.measures import Measuring, gates_of
    from calibrant.data.validation import fraction
    from calibrant.reporting.model import finite
    from calibrant.results.estimate import printable

    gates = gates_of(fail_above, limit or (), gate)
    measuring = Measuring(norm, fraction("--level", level), gates, per_group, max_missing, all_groups=as_json)
    loaded = loaded_from(files, columns, gate=bool(gates))
    with stage("Measuring"):
        found = measuring.of(loaded.data, loaded.by, loaded.left_out)
    if as_json:
        lines = [{"group": name, **estimate.to_dict()} for name, estimate in found.groups.items()]
        decided = [] if found.decision is None else [{"gate": found.decision.to_dict()}]
        print(json.dumps(finite([*(estimate.to_dict() for estimate in found.whole), *lines, *decided]), indent=2))
    else:
        prefix = f"{columns.by[0]} = " if len(columns.by) == 1 else ""
        parts = [(printable(f"{prefix}{name}"), estimate) for name, estimate in found.groups.items()]
        for name, estimate in [*((estimate.name, estimate) for estimate in found.whole), *parts]:
            print(f"{name:<22} {estimate:>9.5f}  {estimate.interval or ''!s:<20} {estimate.method}")
        if found.not_shown:
            print(f"{found.not_shown:,} smaller groups are not shown; --json has all groups.")
    if found.decision is not None:
        leave_with(found.decision)


@app.command("test", cls=Command)
@takes(*TASK, *JUDGED)
def check(
    files: Files,
    columns: Columns,
    *,
    alpha: Annotated[float, option("P-VALUE", "Reject below this p-value.")] = 0.05,
    fail: Annotated[bool, Option("--fail", help="Exit with 1 when calibration is rejected.")] = False,
    max_missing: MaxMissing = 0.05,
    as_json: Json = False,
) -> None:
    """Test whether the predictions are calibrated; for multiclass data, the whole vector, then each class."""
    from calibrant.cli.measures import missing_check
    from calibrant.data.predictions import Multiclass
    from calibrant.data.validation import fraction
    from calibrant.inference.calibration_tests import calibration_test
    from calibrant.inference.gates import Decision, Gate
    from calibrant.inference.multiclass_tests import by_class

    gate = Gate(fraction("--alpha", alpha))
    loaded = loaded_from(files, columns, gate=fail)
    with stage("Testing"):
        found, classes, top = calibration_test(loaded.data), None, None
        if isinstance(loaded.data, Multiclass):
            classes, top = by_class(loaded.data), calibration_test(loaded.data.top_label())
    tested = gate.decide(found)
    rejected = tested.result == "failed"
    decision = Decision((*missing_check(loaded.left_out, max_missing, gate.by), *tested.checks))
    if as_json:
        known: dict[str, Any] = {}
        if classes is not None and top is not None:
            known = {"classes": classes.to_dict()["classes"], "top_label": top.to_dict()}
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


@app.command(cls=Command)
@takes("truth", *ANSWERS, *LABELS, "weight", *READING)
def compare(
    files: Files,
    columns: Columns,
    *,
    prob: Annotated[Several, option("COLUMN", 'Twice, once per model; multiclass: "a_*" or a0,a1,a2.')] = None,
    mean: Annotated[Several, option("COLUMN", "Twice: predicted means of each model.")] = None,
    std: Annotated[Several, option("COLUMN", "Twice: predicted standard deviations of each model.")] = None,
    quantiles: Annotated[Several, option("LEVEL=COLUMN", 'Twice: "a_*", or 0.1=a10,0.9=a90, of each model.')] = None,
    members: Annotated[Several, option("COLUMN", 'Twice: "a_*", or a1,a2,a3, the ensemble of each model.')] = None,
    model: Annotated[str | None, option("COLUMN", _MODEL)] = None,
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

        loaded = loaded_from(files, replace(columns, model=model))
        several = compared_answers(loaded, drop_missing=columns.drop_missing)
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


@app.command(cls=Command)
@takes("truth", "prob", "positive", *READING)
def simulate(
    columns: Columns,
    *,
    files: Annotated[list[str] | None, Argument(metavar="FILES", help="Files of predictions.")] = None,
    scores: Annotated[str | None, option("FILE", "Files of predictions, as an option.")] = None,
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
        stop("Simulation is for binary predictions: give --prob once.")
    with stage("Simulating"):
        advice = advise(data, seed=seed)
    print(json.dumps(advice.to_dict(), indent=2) if as_json else str(advice))


def _p(value: float) -> str:
    return "p ≤ 0.001" if value <= 0.001 else f"p = {value:.3g}"
