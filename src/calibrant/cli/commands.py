"""The commands. Each reads a file, calls the library, prints, and sets its exit code.

0: done. 1: a gate failed (the error is above --fail-above, or the test rejects with --fail) and nothing else. 2: usage
or bad data. 70: an error of calibrant itself. 130: interrupted.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from calibrant._version import __version__
from calibrant.cli.columns import Columns
from calibrant.cli.files import Loaded, load, load_models
from calibrant.cli.formats import UsageError
from calibrant.scale.paths import ReadOptions
from calibrant.table.bintable import BinTable

app = typer.Typer(
    name="calibrant",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Can a model's predicted uncertainty be trusted? Measure its calibration, with intervals, and recalibrate it.",
)

_KINDS = "CSV, Parquet, JSON or Arrow"
Files = Annotated[list[str], typer.Argument(help=f"{_KINDS} files, folders or patterns; - for standard input.")]
File = Annotated[str, typer.Argument(help=f"{_KINDS} file; - for standard input.")]
Truth = Annotated[str | None, typer.Option("--truth", help="Outcomes (0/1, yes/no, class or value): column or SQL.")]
Prob = Annotated[
    list[str] | None, typer.Option("--prob", help='Probabilities: column or SQL, e.g. "score / 100"; one per class.')
]
Mean = Annotated[str | None, typer.Option("--mean", help="Column of predicted means (regression).")]
Std = Annotated[str | None, typer.Option("--std", help="Column of predicted standard deviations.")]
Quantile = Annotated[list[str] | None, typer.Option("--quantiles", help="LEVEL=COLUMN, once per predicted quantile.")]
Positive = Annotated[
    str | None, typer.Option("--positive", help="Label of the event where labels are words, e.g. fraud.")
]
Labelled = Annotated[
    str | None,
    typer.Option("--labelled", help="Positive-unlabeled data: value of --truth of known positives (with --prior)."),
]
Prior = Annotated[float | None, typer.Option("--prior", help="Share of positives among all (with --labelled).")]
By = Annotated[
    list[str] | None,
    typer.Option("--by", help="Groups: column or SQL, e.g. month(day); a,b for their cross; once per grouping."),
]
Weight = Annotated[str | None, typer.Option("--weight", help="Row weights: column or SQL.")]
Where = Annotated[str | None, typer.Option("--where", help='SQL condition on the rows, e.g. "year = 2026".')]
Percent = Annotated[bool, typer.Option("--percent", help="Probabilities are in percent, 0 to 100.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values, and say so.")]
Hive = Annotated[bool, typer.Option("--hive", help="Take folders named key=value as columns.")]
DecimalComma = Annotated[bool, typer.Option("--decimal-comma", help="Numbers of CSV files have decimal commas.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output file.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of folds and resampling.")]


#: Exit codes; 70 is that of an internal software error in sysexits.h.
GATE_FAILED, BAD_INPUT, UNEXPECTED, INTERRUPTED = 1, 2, 70, 130


def run() -> None:
    """Run the command; errors are one sentence with the remedy, a traceback only with --debug."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        elif _is_said(error):
            _complain(str(error))
        else:
            kind = type(error).__name__
            _complain(f"{kind}: {error}. This is an error of calibrant itself; --debug shows where it is.")
        sys.exit(BAD_INPUT if _is_said(error) else UNEXPECTED)


def _is_said(error: Exception) -> bool:
    """Whether the message of an error is meant for the user: of our own types, or raised by our own checks."""
    from calibrant.data.saved_files import InvalidFile
    from calibrant.data.validation import InvalidPredictions

    if isinstance(error, (UsageError, InvalidPredictions, InvalidFile, OSError, ImportError)):
        return True
    if not isinstance(error, (ValueError, TypeError)) or error.__traceback__ is None:
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith("calibrant.")


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def report(
    files: Files, truth: Truth = None, prob: Prob = None, mean: Mean = None, std: Std = None,
    quantiles: Quantile = None, positive: Positive = None, labelled: Labelled = None, prior: Prior = None,
    by: By = None, weight: Weight = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    time: Annotated[str | None, typer.Option("--time", help="Time of each row: column or SQL.")] = None,
    threshold: Annotated[float | None, typer.Option("--threshold", help="Score at which decisions are taken.")] = None,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", help="Largest error that is accepted, e.g. 0.01 for one point.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of the model, to be shown.")] = None,
    event: Annotated[str | None, typer.Option("--event", help="What one event is called, e.g. fraud.")] = None,
    row: Annotated[str | None, typer.Option("--row", help="What one row is called, e.g. payment.")] = None,
    title: Annotated[str | None, typer.Option("--title")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="report.html, .json or .md")] = None,
    force: Force = False, as_json: Json = False, seed: Seed = 0,
) -> None:  # fmt: skip
    """A full report: verdict, how sure, what to do, groups, time, recalibration; as text, HTML, JSON or Markdown."""
    from calibrant.cli.report_columns import by_and_time
    from calibrant.reporting import report as build

    _writable(output, force=force)
    loaded = _load(
        files, truth=truth, prob=prob, mean=mean, std=std, quantiles=quantiles, positive=positive, labelled=labelled,
        prior=prior, by=[*(by or ()), *([time] if time else ())], weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    groups, times = by_and_time(loaded.by, by, time)
    with _busy("Measuring"):
        found = build(
            loaded.data, by=groups, time=times, threshold=threshold, tolerance=tolerance, model=model, event=event,
            row=row, title=title or _title(files), source=_title(files), seed=seed,
        )  # fmt: skip
    if output is not None:
        found.save(output)
        _say(f"Wrote {output}")
    print(found.to_json() if as_json else found.verdict if output is not None else str(found))


@app.command()
def measure(
    files: Files, truth: Truth = None, prob: Prob = None, mean: Mean = None, std: Std = None,
    quantiles: Quantile = None, positive: Positive = None, labelled: Labelled = None, prior: Prior = None,
    by: By = None, weight: Weight = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    norm: Annotated[float, typer.Option("--norm", help="Exponent of the error, at least 1.")] = 1.0,
    level: Annotated[float, typer.Option("--level", help="Confidence of the intervals.")] = 0.95,
    fail_above: Annotated[float | None, typer.Option("--fail-above", help="Exit with 1 above this error.")] = None,
    gate: Annotated[str, typer.Option("--gate", help="What is compared: lower or upper end, or estimate.")] = "lower",
    per_group: Annotated[bool, typer.Option("--per-group", help="Every group of --by must pass as well.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The calibration error by several estimators, with an interval; a gate for CI with --fail-above."""
    from calibrant.cli.measuring import Measuring
    from calibrant.data.validation import fraction
    from calibrant.inference.gates import Gate
    from calibrant.reporting.model import finite
    from calibrant.results.printable import printable

    rule = None if fail_above is None else Gate(fail_above, by=gate)  # type: ignore[arg-type]  # which it checks
    measuring = Measuring(norm, fraction("--level", level), rule, per_group)
    loaded = _load(
        files, truth=truth, prob=prob, mean=mean, std=std, quantiles=quantiles, positive=positive, labelled=labelled,
        prior=prior, by=by, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    with _busy("Measuring"):
        found = measuring.of(loaded.data, loaded.by)
    if as_json:
        lines = [{"group": name, **estimate.to_dict()} for name, estimate in found.groups.items()]
        print(json.dumps(finite([*(estimate.to_dict() for estimate in found.whole), *lines]), indent=2))
    else:
        parts = (
            (printable(name if by is None or len(by) > 1 else f"{by[0]} = {name}"), estimate)
            for name, estimate in found.groups.items()
        )
        for name, estimate in [*((estimate.name, estimate) for estimate in found.whole), *parts]:
            print(f"{name:<22} {estimate:>9.5f}  {estimate.interval or ''!s:<20} {estimate.method}")
    _leave_if_failed(measuring.failures(found))


@app.command(name="test")
def check(
    files: Files, truth: Truth = None, prob: Prob = None, mean: Mean = None, std: Std = None,
    quantiles: Quantile = None, positive: Positive = None, labelled: Labelled = None, prior: Prior = None,
    weight: Weight = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    alpha: Annotated[float, typer.Option("--alpha", help="Reject below this p-value.")] = 0.05,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 when calibration is rejected.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Test whether the predictions are calibrated."""
    import calibrant as cal
    from calibrant.data.validation import fraction
    from calibrant.inference.gates import Gate

    gate = Gate(fraction("--alpha", alpha))
    loaded = _load(
        files, truth=truth, prob=prob, mean=mean, std=std, quantiles=quantiles, positive=positive, labelled=labelled,
        prior=prior, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    data = loaded.data.top_label() if isinstance(loaded.data, cal.Multiclass) else loaded.data
    with _busy("Testing"):
        found = cal.calibration_test(data)
    failed = gate.failures({"calibration test": found})
    if as_json:
        print(json.dumps({**found.to_dict(), "rejected": bool(failed)}, indent=2))
    else:
        word = "rejected" if failed else "not rejected"
        print(f"{found.method}: statistic {found.statistic:.4g}, p = {found.p_value:.4g}; calibration is {word}.")
    _leave_if_failed(failed if fail else [])


@app.command()
def recalibrate(
    files: Files, truth: Truth = None, prob: Prob = None, mean: Mean = None, std: Std = None,
    quantiles: Quantile = None, positive: Positive = None, weight: Weight = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    method: Annotated[str, typer.Option("--method", help="auto, or a map: Temperature, Beta, ...")] = "auto",
    output: Annotated[Path, typer.Option("-o", "--output", help="The map, as JSON.")] = Path("map.json"),
    force: Force = False,
) -> None:  # fmt: skip
    """Fit a recalibration map and save it as JSON."""
    import calibrant as cal
    from calibrant.cli.named_maps import map_named

    _writable(output, force=force)
    recalibrator = map_named(method, spread=mean is not None, quantiles=bool(quantiles))
    loaded = _load(
        files, truth=truth, prob=prob, mean=mean, std=std, quantiles=quantiles, positive=positive, weight=weight,
        where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    with _busy("Fitting"):
        recalibrator.fit(loaded.data)
    recalibrator.save(output)
    if isinstance(recalibrator, cal.recalibrate.Auto):
        for row in recalibrator.results_:
            print(f"{row['name']:<28} loss {row['loss']:.5f}  gain {row['gain']:+.5f} ± {row['gain_se']:.5f}")
    print(f"Wrote {output}")


@app.command(name="apply")
def apply_map(
    map_file: Annotated[Path, typer.Argument(metavar="MAP", help="A map saved by `calibrant recalibrate`.")],
    file: Annotated[str | None, typer.Argument(help=f"{_KINDS} file; - for standard input.")] = None,
    prob: Prob = None, mean: Mean = None, std: Std = None, quantiles: Quantile = None,
    output: Annotated[Path, typer.Option("-o", "--output", help=".parquet, .arrow, .csv or .jsonl")] = Path(
        "fixed.parquet"
    ),
    suffix: Annotated[str, typer.Option("--suffix", help="What the names of new columns end in.")] = "_recalibrated",
    force: Force = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print the map as SQL on the columns --prob instead.")] = False,
    dialect: Annotated[str, typer.Option("--dialect", help="duckdb, sqlite, spark, postgres or ansi.")] = "duckdb",
) -> None:  # fmt: skip
    """Recalibrate the predictions of a file; all its columns are kept as they are, new ones end in `_recalibrated`."""
    import calibrant as cal
    from calibrant.cli.apply import apply_to_file, sql_of
    from calibrant.cli.new_columns import Inputs

    inputs = Inputs(tuple(prob or ()), mean, std, tuple(quantiles or ()))
    if sql:
        print("\n".join(sql_of(cal.recalibrate.load(map_file), inputs, dialect)))
        return
    if file is None:
        message = "Name the file of predictions: calibrant apply map.json scores.parquet."
        raise UsageError(message)
    _writable(output, force=force)
    recalibrator = cal.recalibrate.load(map_file)
    with _busy("Recalibrating"):
        notes = apply_to_file(recalibrator, file, output, inputs, suffix=suffix)
    _say(*notes)
    print(f"Wrote {output}")


@app.command()
def simulate(
    files: Annotated[list[str] | None, typer.Argument(help="Files of predictions.")] = None,
    scores: Annotated[str | None, typer.Option("--scores", help="The same, as an option.")] = None,
    truth: Truth = None, prob: Prob = None, positive: Positive = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False, seed: Seed = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """How biased is each estimator at my sample size, and how small an error can I see?"""
    from calibrant.simulate import advise

    named = [*(files or []), *([scores] if scores else [])]
    if not named:
        message = "Name a file of predictions: calibrant simulate scores.parquet."
        raise UsageError(message)
    loaded = _load(
        named, truth=truth, prob=prob, positive=positive, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    if isinstance(loaded.data, BinTable):
        message = 'Simulation needs the rows; take a sample, e.g. with --where "random() < 0.1".'
        raise UsageError(message)
    with _busy("Simulating"):
        advice = advise(loaded.data, seed=seed)
    print(json.dumps(advice.to_dict(), indent=2) if as_json else str(advice))


@app.command()
def compare(
    files: Files, truth: Truth = None,
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Twice: the columns of the two models.")] = None,
    positive: Positive = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Which of two models is better calibrated on the same rows?"""
    import calibrant as cal

    if prob is None or len(prob) != 2:
        message = "Name the two models' columns: --prob a --prob b."
        raise UsageError(message)
    with _busy("Reading"):
        (first, second), notes = load_models(
            files,
            _columns(truth=truth, prob=prob, positive=positive, where=where, percent=percent, models=True,
                     drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma),
        )  # fmt: skip
    _say(*notes)
    with _busy("Comparing"):
        found: Any = cal.compare(partial(cal.debiased_ece, norm=1), first, second)
    print(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


@app.command()
def serve(
    files: Files, truth: Truth = None, prob: Prob = None, positive: Positive = None, by: By = None,
    weight: Weight = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535)] = 8765, seed: Seed = 0,
) -> None:  # fmt: skip
    """Open the report in the browser, served on this machine only."""
    from calibrant.cli.report_columns import by_and_time
    from calibrant.cli.serve import serve_page
    from calibrant.reporting import report as build

    loaded = _load(
        files, truth=truth, prob=prob, positive=positive, by=by, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    groups, _ = by_and_time(loaded.by, by, None)
    with _busy("Measuring"):
        found = build(loaded.data, by=groups, title=_title(files), seed=seed)
    serve_page(found.to_html(), port)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where predictions and reports go.")] = Path(
        "calibrant-demo"
    ),
) -> None:
    """Train real models, write their predictions, and report on them: what you would do with your own file."""
    from calibrant.cli.demo import run_demo

    run_demo(folder, say=print)


def _load(files: list[str], **options: Any) -> Loaded:
    """The predictions of the files; `options` as for `_columns`."""
    with _busy("Reading"):
        loaded = load(files, _columns(**options))
    _say(*loaded.notes)
    return loaded


def _columns(
    *, prob: list[str] | None, hive: bool, decimal_comma: bool, by: list[str] | None = None,
    quantiles: list[str] | None = None, **others: Any,
) -> Columns:  # fmt: skip
    """The columns that the options name; `others` are further fields of `Columns`."""
    reading = ReadOptions(hive, "," if decimal_comma else ".")
    return Columns(
        prob=tuple(prob or ()), quantiles=tuple(quantiles or ()), by=tuple(by or ()), reading=reading, **others
    )


def _leave_if_failed(reasons: list[str]) -> None:
    if reasons:
        _say(*(f"Gate failed: {reason}." for reason in reasons))
        raise typer.Exit(GATE_FAILED)


def _writable(output: Path | None, *, force: bool) -> None:
    """Refuse to overwrite before any work is done."""
    if output is None:
        return
    if output.exists() and not force:
        message = f"{output} exists already; give another name or --force."
        raise UsageError(message)
    if not output.resolve().parent.is_dir():
        message = f"There is no folder {output.resolve().parent} to write {output.name} to."
        raise UsageError(message)


def _title(files: list[str]) -> str:
    return "Standard input" if files == ["-"] else ", ".join(Path(name).name for name in files)


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """A spinner on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


def _say(*lines: str) -> None:
    from calibrant.results.printable import printable

    for line in lines:
        print(printable(line), file=sys.stderr)


def _complain(text: str) -> None:
    from rich.markup import escape

    from calibrant.results.printable import printable

    Console(stderr=True, highlight=False).print(f"[red]Error:[/red] {escape(printable(text))}", soft_wrap=True)
