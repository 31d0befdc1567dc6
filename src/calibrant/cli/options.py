"""The options that several commands share, and how they become `Columns`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from typer import Argument, Option

from calibrant.cli.columns import Columns
from calibrant.cli.console import in_shell
from calibrant.scale.paths import ReadOptions


def option(metavar: str, words: str) -> Any:
    """An option with a value, called as its parameter: what stands for the value in the help, and the help."""
    return Option(metavar=metavar, help=words)


def written(words: str) -> Any:
    """The file that is written."""
    return Option("-o", "--output", metavar="FILE", help=words)


KINDS = "CSV, Parquet, JSON, Arrow or NumPy"
Files = Annotated[
    list[str], Argument(metavar="FILES", help=f"{KINDS} files, folders or patterns; - for standard input.")
]
Json = Annotated[bool, Option("--json", help="Print JSON for machines.")]
MaxMissing = Annotated[
    float, option("SHARE", "A gate fails if --drop-missing leaves out more than this share of the rows.")
]
Force = Annotated[bool, Option("--force", help="Overwrite the output file.")]
Seed = Annotated[int, option("NUMBER", "Seed of folds and resampling.")]
Several = list[str] | None


def one(metavar: str, words: str, kind: Any = str) -> tuple[Any, Any]:
    """The type of an option with a value that may be left out, and its default."""
    return Annotated[kind | None, option(metavar, words)], None


def several(metavar: str, words: str) -> tuple[Any, Any]:
    """The same for an option that may be given several times."""
    return one(metavar, words, list[str])


def _flag(flag: str, words: str) -> tuple[Any, Any]:
    return Annotated[bool, Option(flag, help=words)], False


#: The shared options: type and default of each, in the order of the help.
SHARED: dict[str, tuple[Any, Any]] = {
    "truth": one("COLUMN", "Outcomes (0/1, yes/no, class or number): column or SQL."),
    "prob": several("COLUMN", 'Probabilities: column, SQL ("score / 100") or pattern ("p_*"); one per class.'),
    "correct": one("COLUMN", "Answers: whether each is right (0/1); for a log, its metric or scorer."),
    "confidence": one("COLUMN", "Answers: how sure the model was, 0 to 1 (with --correct)."),
    "judge": several("COLUMN", "Judged answers: a judge's score (--truth may be mostly empty); once per judge."),
    "label_weight": one("COLUMN", "Judged answers: 1 / the probability of being labelled, up to a factor."),
    "mean": one("COLUMN", "Predicted means: column or SQL (with --std)."),
    "std": one("COLUMN", "Predicted standard deviations: column or SQL."),
    "quantiles": several("LEVEL=COLUMN", 'Predicted quantiles: LEVEL=COLUMN each, or a pattern of levels ("q_*").'),
    "members": several("COLUMN", 'Members of an ensemble: columns, or a pattern ("m_*").'),
    "positive": one("VALUE", "Label of the event where labels are words, e.g. fraud."),
    "labelled": one("VALUE", "Positive-unlabeled data: label of known positives in --truth (with --prior)."),
    "prior": one("SHARE", "Share of positives in the population (with --labelled).", float),
    "single_sample": _flag("--single-sample", "Known positives were labelled within the sample of unlabeled rows."),
    "by": several("COLUMN", "Groups: column or SQL, e.g. month(day); a,b for their cross; once per grouping."),
    "weight": one("COLUMN", "Row weights: column or SQL."),
    "cluster": one("COLUMN", "Ids of rows that belong together, e.g. the question: column or SQL."),
    "where": one("CONDITION", 'SQL condition on the rows, e.g. "year = 2026".'),
    "percent": _flag("--percent", "Probabilities are in percent, 0 to 100."),
    "logits": _flag("--logits", "Scores are log odds (binary) or logits (multiclass), not probabilities."),
    "drop_missing": _flag("--drop-missing", "Leave out rows with missing values, and say so."),
    "hive": _flag("--hive", "Take folders named key=value as columns."),
    "decimal_comma": _flag("--decimal-comma", "Numbers of CSV files have decimal commas."),
}

#: The predictions of rows without outcomes, in the words of `apply`.
APPLIED: dict[str, tuple[Any, Any]] = {
    "prob": several("COLUMN", 'Probabilities: column, or pattern ("p_*"); one per class.'),
    "mean": one("COLUMN", "Column of predicted means."),
    "std": one("COLUMN", "Column of predicted standard deviations."),
}

#: Groups of options, to be named together.
ANSWERS = ("correct", "confidence", "cluster")
JUDGED = ("judge", "label_weight")
PREDICTIONS = ("prob", "mean", "std", "quantiles", "members")
LABELS = ("positive", "labelled", "prior", "single_sample")
READING = ("where", "percent", "logits", "drop_missing", "hive", "decimal_comma")
#: What makes up a task.
TASK = ("truth", *ANSWERS, *PREDICTIONS, *LABELS, "weight", *READING)
GROUPS = {"answers": ANSWERS, "judged": JUDGED, "labels": LABELS, "reading": READING, "task": TASK}


def takes(
    *names: str, without: Sequence[str] = (), **own: tuple[Any, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that has shared options, in place of its parameter `columns`, which becomes what they say.

    `names` are those of options and of groups of them. Options that have other words here are given as in `SHARED`.
    """
    wanted = [one for name in names for one in GROUPS.get(name, (name,)) if one not in without] + list(own)

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters: list[inspect.Parameter] = []
        for given in inspect.signature(function, eval_str=True).parameters.values():
            if given.name != "columns":
                parameters.append(given.replace(kind=keyword))
                continue
            for name, (kind, default) in (SHARED | own).items():
                if name in wanted:
                    parameters.append(inspect.Parameter(name, keyword, default=default, annotation=kind))

        def command(**values: Any) -> None:
            function(columns=columns_of(**{name: values.pop(name) for name in wanted}), **values)

        command.__name__, command.__doc__, command.__module__ = function.__name__, function.__doc__, function.__module__
        command.__annotations__ = {given.name: given.annotation for given in parameters}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorated


def columns_of(*, hive: bool = False, decimal_comma: bool = False, **options: Any) -> Columns:
    """What the options say; lists become tuples."""
    lists = ("prob", "quantiles", "members", "by", "judge")
    given: dict[str, Any] = {name: tuple(value or ()) if name in lists else value for name, value in options.items()}
    return Columns(reading=ReadOptions(hive, "," if decimal_comma else "."), **given)


def in_words(columns: Columns, names: Sequence[str] = TASK) -> str:
    """The options that give these columns, as one would type them in a shell."""
    reading = {"hive": columns.reading.hive, "decimal_comma": columns.reading.decimal == ","}
    said = []
    for name in (name for name in SHARED if name in names):
        value, flag = reading.get(name, getattr(columns, name, None)), f"--{name.replace('_', '-')}"
        if isinstance(value, tuple):
            said += [f"{flag} {in_shell(part)}" for part in value]
        elif value is True:
            said.append(flag)
        elif value is not None and value is not False:
            said.append(f"{flag} {in_shell(str(value))}")
    return " ".join(said)
