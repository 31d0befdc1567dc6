"""The commands. Each reads a file, calls the library, prints, and sets its exit code.

0: done, and a gate has passed. 1: a gate failed (--fail-above, --limit, or a test that rejects with --fail) and nothing
else, or a monitor raised an alarm. 2: usage or bad data. 3: too few rows for a gate or a monitor to decide. 70: an
error of calibrant itself. 130: interrupted.
"""

from __future__ import annotations

import copy
import json
import math
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from calibrant.cli.application import Command, app, loaded_from, run
from calibrant.cli.columns import Columns
from calibrant.cli.console import leave_with, over_lines, refuse, require_writable, say, stage, stop, title_of, writing
from calibrant.cli.options import APPLIED, KINDS, Files, Force, Json, MaxMissing, Seed, Several, option, takes, written

if TYPE_CHECKING:
    from calibrant.monitor.monitoring import Monitor

__all__ = ["app", "run"]

_RANGES = "Divide --by columns of numbers into NUMBER ranges of equal size."
_CONFIRM = "Find groups on one half of the rows, and test them on the other."
_AUDIT = 'Features to audit by: columns, also "age,device", or patterns ("*").'


@app.command(cls=Command)
@takes("task", "judged", "by")
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
@takes("task", "judged", "by")
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


_LIMIT = (
    "Gate: error=0.02, relative=0.25 (to the base rate), oe=0.8:1.25, slope=0.8:1.2, coverage:0.9=0.87:0.93 or "
    "ence=0.1; repeatable. Exit codes: 0 passed, 1 failed, 3 too few rows to decide."
)
_MODEL = "Answers: column of the model; one row per model and question."


@app.command(cls=Command)
@takes("task", "judged", "by")
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
@takes("task", "judged")
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
@takes("truth", "answers", "labels", "weight", "reading")
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
@takes("truth", "prob", "positive", "reading")
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


_FEATURES = 'Features: columns, also "age,device", or patterns ("*": all other columns).'


@app.command(cls=Command)
@takes("task", without=("labelled", "prior", "single_sample", "members"))
def audit(
    files: Files,
    columns: Columns,
    *,
    features: Annotated[Several, option("COLUMN", _FEATURES)] = None,
    alpha: Annotated[float, option("SHARE", "Probability that any segment shown is false.")] = 0.05,
    most: Annotated[int, option("NUMBER", "Largest number of segments to search for in each half of the rows.")] = 8,
    repair: Annotated[Path | None, option("FILE", "Write the map with features, as JSON.")] = None,
    output: Annotated[Path | None, written("Page to write (.html).")] = None,
    force: Force = False,
    as_json: Json = False,
    seed: Seed = 0,
) -> None:
    """Find segments in which the model is wrong, and by how much; fit a repair, a map that `apply` reads."""
    from calibrant.cli.files import load
    from calibrant.data.predictions import Binary
    from calibrant.inference.feature_audit import audit as audited
    from calibrant.reporting.audit_page import save_page, to_json

    for path in (output, repair):
        require_writable(path, force=force, inputs=files)
    with stage("Reading"):
        loaded = load(files, columns, features=features or ["*"], sample=seed)
    say(*loaded.notes)
    rows: Any = loaded.data  # with a seed, never a table
    binary = isinstance(rows, Binary)
    one = """--repair needs binary probabilities; of several classes, audit one: --truth "y = 'cat'" --prob p_cat."""
    refuse(repair is not None and not binary, one)
    with stage("Auditing"):
        found = audited(rows, loaded.features, alpha=alpha, seed=seed, most=most)
        text = to_json(found) if as_json else str(found)
    if repair is not None:
        with stage("Fitting"), writing(repair, force=force):
            found.repair().save(repair)
        say(f"Wrote {repair}")
    if output is not None:
        with stage("Writing"), writing(output, force=force):
            added = ["--repair", "map.json"] if binary and repair is None else []
            call = over_lines(shlex.join(["calibrant", *sys.argv[1:], *added]))
            save_page(found, output, source=title_of(files), call=call, note=" ".join(loaded.notes))
        say(f"Wrote {output}")
    print(text)


@app.command(cls=Command)
@takes("task", "by", without=("cluster", "labelled", "prior", "single_sample"))
def monitor(
    files: Files,
    columns: Columns,
    *,
    state: Annotated[Path, option("FILE", "The state (JSON); created if missing.")],
    time: Annotated[str | None, option("COLUMN", "Date or number of the period of each row: column or SQL.")] = None,
    cluster: Annotated[str | None, option("COLUMN", "Rows that belong together: column or SQL.")] = None,
    alpha: Annotated[float | None, option("SHARE", "Probability of ever raising a false alarm [0.05].")] = None,
    arl: Annotated[float | None, option("PERIODS", "Instead: mean periods to a false alarm.")] = None,
    tolerance: Annotated[float | None, option("SHARE", "Tolerated relative error of the odds [0.1].")] = None,
    points: Annotated[float | None, option("SHARE", "Tolerated error of a probability [0].")] = None,
    horizon: Annotated[int | None, option("PERIODS", "Periods until an outcome is final [0].")] = None,
    today: Annotated[str | None, option("DATE", "For --horizon; the date of today by default.")] = None,
    batch: Annotated[str | None, option("TEXT", "Name of this delivery; by default its contents.")] = None,
    html: Annotated[Path | None, option("FILE", "Page to write: evidence, curve, groups, what to do.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Monitor calibration: add rows with known outcomes. Exit codes: 0 no alarm, 1 alarm, 3 not enough rows yet."""
    from calibrant._atomic_write import folder_locked
    from calibrant.cli.reports import by_and_time

    refuse(len(columns.by) > 1, "Give one --by; several columns in it, separated by commas, are crossed.")
    require_writable(html, force=force, inputs=[*files, state])
    settings = {"alpha": alpha, "arl": arl, "tolerance": tolerance, "points": points, "horizon": horizon}
    given = {name: value for name, value in settings.items() if value is not None}
    by = [*columns.by, *([] if cluster is None else [cluster])]
    loaded = loaded_from(files, replace(columns, by=tuple(dict.fromkeys([*by, *([] if time is None else [time])]))))
    groups, times = by_and_time(loaded.by, by, time)
    with stage("Watching"), folder_locked(state):
        watched = _opened(state, given, _names(columns, time, cluster))
        today = today or (datetime.now(UTC).date().isoformat() if watched.horizon else None)
        named = {"batch": batch or _digest(loaded.data, groups, times), "today": _number_or_text(today), "force": force}
        for rows in _deliveries(loaded.data, groups, times, columns.by, time, cluster):
            found = watched.update(**rows, **named)
            named["batch"] = f"{named['batch']}, next"
        watched.save(state)
    if html is not None:
        from calibrant.reporting.monitor_page import save_page

        with stage("Writing"), writing(html, force=force):
            save_page(watched, found, html, state=str(state))
        say(f"Wrote {html}")
    print(json.dumps(found.to_dict(), indent=2) if as_json else found)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _opened(state: Path, given: dict[str, Any], names: dict[str, str]) -> Monitor:
    """The monitor in a file, whose settings and columns must be those given; a new one if there is no file."""
    from calibrant.monitor.monitoring import Monitor

    if not state.exists():
        made = Monitor(**given)
        made.columns = names
        return made
    found = Monitor.load(state)
    for name, value in given.items():
        if getattr(found, name) != value:
            stop(f"{state} watches with {name} {getattr(found, name)}, not {value}: use another --state.")
    if found.columns != names:
        both = (found.columns, names)
        before, now = (", ".join(f"--{option} {name}" for option, name in one.items()) for one in both)
        stop(f"{state} watches {before}; this is {now}. Use another --state for another model.")
    return found


def _names(columns: Columns, time: str | None, cluster: str | None) -> dict[str, str]:
    """The columns that make a model what it is; the others may change from file to file."""
    options: dict[str, Any] = {
        name: getattr(columns, name) for name in ("truth", "prob", "mean", "std", "quantiles", "members")
    }
    options |= {"time": time, "by": columns.by, "cluster": cluster}
    return {option: name if isinstance(name, str) else ", ".join(name) for option, name in options.items() if name}


def _deliveries(
    data: Any, groups: Any, times: Any, by: tuple[str, ...], time: str | None, cluster: str | None
) -> Iterator[dict[str, Any]]:
    """What `update` takes: all rows at once or, where they came as tables, the table of each period."""
    from calibrant.data.groups import groups as cluster_names
    from calibrant.table.bintable import BinTable

    if isinstance(data, BinTable):
        if groups:
            stop("More than two million rows with --by or --cluster: give them in parts, e.g. a file for each day.")
        yield from ({"y_true": table, "time": _number_or_text(name)} for name, table in (times or {None: data}).items())
        return
    if cluster is not None:
        data = copy.copy(data)
        data.group = cluster_names("--cluster", groups[cluster], length=len(data))
    yield {"y_true": data, "time": None if time is None else times[time], "group": groups[by[0]] if by else None}


def _number_or_text(text: str | None) -> Any:
    return int(text) if text is not None and text.lstrip("-").isdigit() else text


def _digest(data: Any, *others: Any) -> str:
    """A name for the delivery that is made of its contents."""
    found = sha256()
    for name, values in sorted(vars(data).items()):
        if hasattr(values, "tobytes"):
            text = repr(values.tolist()).encode() if values.dtype == object else values.tobytes()
            found.update(name.encode() + text)
    for some in others:
        lists = {name: getattr(values, "tolist", lambda: "")() for name, values in (some or {}).items()}
        found.update(repr(lists).encode())
    return found.hexdigest()


_MAPS = "Temperature, Beta, StdScaling, PUIsotonic"


@app.command(cls=Command)
@takes("task")
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
@takes("quantiles", "members", "percent", "logits", **APPLIED)
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
