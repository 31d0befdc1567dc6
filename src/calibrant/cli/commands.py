"""The commands. Each reads a file, calls the library, prints, and sets its exit code.

0: done. 1: the error is above --fail-above, or the test rejects with --fail. 2: usage or bad data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from calibrant._version import __version__
from calibrant.cli.columns import Columns, guessed_column, require_columns
from calibrant.cli.files import Loaded, load, load_models, read_columns
from calibrant.cli.formats import UsageError, write_table
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


def run() -> None:
    """Run the command; errors are one sentence with the remedy, a traceback only with --debug."""
    from calibrant.data.validation import InvalidPredictions

    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments, standalone_mode=True)
    except (UsageError, InvalidPredictions, ValueError, TypeError, OSError, ImportError) as error:
        if debug:
            raise
        Console(stderr=True, highlight=False).print(f"[red]Error:[/red] {_escaped(str(error))}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


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
    title: Annotated[str | None, typer.Option("--title")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="report.html, .json or .md")] = None,
    force: Force = False, as_json: Json = False, seed: Seed = 0,
) -> None:  # fmt: skip
    """A full report: verdict, estimates with intervals, tests, groups, repairs; as text, HTML, JSON or Markdown."""
    from calibrant.reporting import report as build

    _writable(output, force=force)
    loaded = _load(
        files, truth=truth, prob=prob, mean=mean, std=std, quantiles=quantiles, positive=positive, labelled=labelled,
        prior=prior, by=by, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    with _busy("Measuring"):
        found = build(loaded.data, by=loaded.by, title=title or _title(files), seed=seed)
    if output is not None:
        found.save(output)
        _say(f"Wrote {output}")
    print(found.to_json() if as_json else found.verdict if output is not None else str(found))


@app.command()
def measure(
    files: Files, truth: Truth = None, prob: Prob = None, positive: Positive = None, by: By = None,
    weight: Weight = None, where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    norm: Annotated[float, typer.Option("--norm", help="Exponent of the error, at least 1.")] = 1.0,
    fail_above: Annotated[float | None, typer.Option("--fail-above", help="Exit with 1 above this error.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """The calibration error by several estimators, with an interval; a gate for CI with --fail-above."""
    import calibrant as cal
    from calibrant.reporting.probabilities import group_tables

    loaded = _load(
        files, truth=truth, prob=prob, positive=positive, by=by, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    data: Any = loaded.data.top_label() if isinstance(loaded.data, cal.Multiclass) else loaded.data
    error = partial(cal.averaged_error, norm=norm)
    with _busy("Measuring"):
        headline = cal.interval(error, data)
        others = [estimator(data, norm=norm) for estimator in (cal.ece, cal.debiased_ece, cal.sweep_ece)]
        groups = {name: cal.interval(error, part) for name, part in group_tables(data, loaded.by).items()}
    estimates = [headline, *others]
    if as_json:
        lines = [{"group": name, **estimate.to_dict()} for name, estimate in groups.items()]
        print(json.dumps([*(estimate.to_dict() for estimate in estimates), *lines], indent=2))
    else:
        parts = (
            (name if by is None or len(by) > 1 else f"{by[0]} = {name}", estimate) for name, estimate in groups.items()
        )
        for name, estimate in [*((estimate.name, estimate) for estimate in estimates), *parts]:
            print(f"{name:<22} {estimate:>9.5f}  {estimate.interval or ''!s:<20} {estimate.method}")
    if fail_above is not None and headline > fail_above:
        _say(f"{headline.name} {headline:.5f} is above {fail_above:g}.")
        raise typer.Exit(1)


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

    loaded = _load(
        files, truth=truth, prob=prob, mean=mean, std=std, quantiles=quantiles, positive=positive, labelled=labelled,
        prior=prior, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    data = loaded.data.top_label() if isinstance(loaded.data, cal.Multiclass) else loaded.data
    with _busy("Testing"):
        found = cal.calibration_test(data)
    rejected = found.p_value < alpha
    if as_json:
        print(json.dumps({**found.to_dict(), "rejected": rejected}, indent=2))
    else:
        word = "rejected" if rejected else "not rejected"
        print(f"{found.method}: statistic {found.statistic:.4g}, p = {found.p_value:.4g}; calibration is {word}.")
    if fail and rejected:
        raise typer.Exit(1)


@app.command()
def recalibrate(
    files: Files, truth: Truth = None, prob: Prob = None, positive: Positive = None, weight: Weight = None,
    where: Where = None,
    percent: Percent = False, drop_missing: DropMissing = False, hive: Hive = False,
    decimal_comma: DecimalComma = False,
    method: Annotated[str, typer.Option("--method", help="auto, or a map: Temperature, Beta, ...")] = "auto",
    output: Annotated[Path, typer.Option("-o", "--output", help="The map, as JSON.")] = Path("map.json"),
    force: Force = False,
) -> None:  # fmt: skip
    """Fit a recalibration map and save it as JSON."""
    import calibrant as cal

    _writable(output, force=force)
    recalibrator = _map_named(method)
    loaded = _load(
        files, truth=truth, prob=prob, positive=positive, weight=weight, where=where,
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
    file: File, prob: Prob = None,
    output: Annotated[Path, typer.Option("-o", "--output", help=".parquet, .csv or .jsonl")] = Path("fixed.parquet"),
    force: Force = False,
) -> None:  # fmt: skip
    """Recalibrate the probabilities of a file; all its columns are kept, new ones end in `_recalibrated`."""
    import numpy as np

    import calibrant as cal

    _writable(output, force=force)
    recalibrator = cal.recalibrate.load(map_file)
    columns = read_columns(file)
    notes: list[str] = []
    names = prob or [guessed_column("prob", columns, notes)]
    require_columns(names, columns)
    _say(*notes)
    scores = columns[names[0]] if len(names) == 1 else np.stack([columns[name] for name in names], axis=1)
    fixed = recalibrator.predict_proba(scores)
    kept = fixed[:, 1:] if len(names) == 1 else fixed
    columns.update({f"{name}_recalibrated": kept[:, k] for k, name in enumerate(names)})
    write_table(output, columns)
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
    port: Annotated[int, typer.Option("--port")] = 8765, seed: Seed = 0,
) -> None:  # fmt: skip
    """Open the report in the browser, served on this machine only."""
    from calibrant.cli.serve import serve_page
    from calibrant.reporting import report as build

    loaded = _load(
        files, truth=truth, prob=prob, positive=positive, by=by, weight=weight, where=where,
        percent=percent, drop_missing=drop_missing, hive=hive, decimal_comma=decimal_comma,
    )  # fmt: skip
    with _busy("Measuring"):
        found = build(loaded.data, by=loaded.by, title=_title(files), seed=seed)
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


def _map_named(method: str) -> Any:
    from calibrant import recalibrate as maps

    known = {name.lower(): name for name in dir(maps) if name[0].isupper()}
    name = known.get(method.lower())
    if name is None:
        message = f"--method must be auto or one of {', '.join(sorted(known.values()))}; got {method!r}."
        raise UsageError(message)
    return getattr(maps, name)()


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
    for line in lines:
        print(line, file=sys.stderr)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
