"""Which columns of a file mean what: options, names, and patterns (``p_*``: all names that start with ``p_``)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from calibrant.cli.console import refuse, stop
from calibrant.scale.paths import DEFAULT, ReadOptions

#: What may stand on either side of the star; anything else is SQL.
_SIDE = re.compile(r"[\w.\- ]*")
_NUMBER = re.compile(r"[-+]? ?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def matching(name: str, header: Collection[str], option: str) -> dict[str, str] | None:
    """The columns that a pattern names, in the order of the file, and what its star stands for; None for other names.

    A column of that very name is no pattern, and neither is a product of columns or numbers.
    """
    before, star, after = name.partition("*")
    if name in header or not star or not (_SIDE.fullmatch(before) and _SIDE.fullmatch(after)):
        return None
    sides = before.strip(), after.strip()
    if all(sides) and all(side in header or _NUMBER.fullmatch(side) for side in sides):
        return None
    found = {
        column: column[len(before) : len(column) - len(after)]
        for column in header
        if len(column) > len(before) + len(after) and column.startswith(before) and column.endswith(after)
    }
    if not found and all(sides):
        return None  # SQL may know better
    refuse(not found, f"No column fits the pattern {option} {name!r}; the file has {', '.join(map(repr, header))}.")
    return found


def labels_of(names: Collection[str], header: Collection[str], option: str) -> dict[str, str]:
    """The columns that names and patterns name, each once, and what a star stands for, or else the name itself."""
    found: dict[str, str] = {}
    for name in names:
        for column, label in (matching(name, header, option) or {name: name}).items():
            found.setdefault(column, label)
    return found


def separated(text: str, header: Collection[str], option: str) -> tuple[str, ...]:
    """The names between the commas outside brackets and quotes, each once; a column of the whole name wins."""
    if text in header:
        return (text,)
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    names = [part.strip() for part in (*parts, text[start:])]
    refuse("" in names, f"{option} {text!r} has an empty name between its commas.")
    return tuple(dict.fromkeys(names))


#: Names that are taken for a column when none is given, in this order.
GUESSES = {
    "truth": ("y_true", "y", "truth", "label", "target", "outcome", "actual"),
    "prob": ("y_prob", "p", "prob", "probability", "score", "confidence"),
    "correct": ("correct", "is_correct", "right"),
    "confidence": ("confidence", "prob", "p"),
}

#: What the predictions are: binary or multiclass probabilities, means and standard deviations, quantiles, members of an
#: ensemble, or probabilities of an event of which only some positives are known.
Task = Literal["binary", "multiclass", "spread", "quantiles", "members", "unlabeled", "judged"]


@dataclass(frozen=True)
class Columns:
    """Which columns of a file mean what, and how its rows are taken, as far as the options (see `options.SHARED`) say.

    Every column may be an SQL expression of columns. `others` are further models that predict the same rows; of these
    only the columns of predictions count. `classes` are the labels of the columns of `prob`. For a `gate` no column is
    chosen of several whose names would do. Where `correct` or `confidence` is given, these become `truth` and `prob`.
    """

    truth: str | None = None
    prob: tuple[str, ...] = ()
    mean: str | None = None
    std: str | None = None
    quantiles: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    positive: str | None = None
    labelled: str | None = None
    prior: float | None = None
    single_sample: bool = False
    by: tuple[str, ...] = ()
    weight: str | None = None
    where: str | None = None
    percent: bool = False
    logits: bool = False
    drop_missing: bool = False
    reading: ReadOptions = DEFAULT
    classes: tuple[str, ...] = ()
    others: tuple[Columns, ...] = ()
    gate: bool = False
    correct: str | None = None
    confidence: str | None = None
    cluster: str | None = None
    model: str | None = None
    judge: tuple[str, ...] = ()
    label_weight: str | None = None

    @property
    def task(self) -> Task:
        """What the predictions are."""
        if self.mean is not None:
            return "spread"
        if self.quantiles:
            return "quantiles"
        if self.members:
            return "members"
        if self.labelled is not None:
            return "unlabeled"
        if self.judge:
            return "judged"
        return "multiclass" if len(self.prob) > 1 else "binary"

    @property
    def answers(self) -> bool:
        """Whether rows are answers with a confidence."""
        return self.correct is not None or self.confidence is not None

    @property
    def chosen(self) -> bool:
        """Whether an option names a column of outcomes or predictions."""
        forecast = self.mean is not None or self.std is not None or bool(self.quantiles or self.members)
        return self.truth is not None or bool(self.prob) or forecast

    @property
    def groupings(self) -> tuple[str, ...]:
        """The columns of groups, clusters and models."""
        return tuple(name for name in dict.fromkeys((*self.by, self.cluster, self.model)) if name is not None)

    @property
    def models(self) -> tuple[Columns, ...]:
        """The model of these columns and the others, each by itself."""
        return (replace(self, others=()), *self.others)

    @property
    def probabilities(self) -> tuple[str, ...]:
        """The columns of probabilities of all models."""
        return tuple(dict.fromkeys(name for model in self.models for name in model.prob))

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers, whatever the outcomes are."""
        found = [*self.judge, self.label_weight]
        for one in self.models:
            found += [*one.prob, one.mean, one.std, self.weight, *(column for _, column in one.levels), *one.members]
        return [name for name in dict.fromkeys(found) if name is not None]

    @property
    def roles(self) -> dict[str, str]:
        """The columns that make up the task, and the option that names each; groups are not among them."""
        score, truth = ("--confidence", "--correct") if self.answers else ("--prob", "--truth")
        found: dict[str | None, str] = {self.weight: "--weight", self.label_weight: "--label-weight"}
        found.update(dict.fromkeys(self.judge, "--judge"))
        for one in self.models:
            found.update({column: "--quantiles" for _, column in one.levels})
            found |= {one.std: "--std", one.mean: "--mean"}
            found.update(dict.fromkeys(one.members, "--members") | dict.fromkeys(one.prob, score))
        found[self.truth or ""] = truth
        return {name: option for name, option in found.items() if name is not None}

    @property
    def levels(self) -> list[tuple[float, str]]:
        """The predicted quantiles: level and column, in order."""
        return sorted(map(_level, self.quantiles))

    def guessed(self, header: Collection[str], notes: list[str]) -> Columns:
        """The same with the columns of patterns, and with those that no option names; every guess is noted."""
        columns = self if self.model in header else replace(self, model=None)  # a name to be shown
        taken = {*columns.judge, columns.label_weight, columns.weight, columns.truth, *columns.prob, *columns.groupings}
        free = [name for name in header if name not in taken]
        if columns.answers:
            correct = columns.correct or guessed_column("correct", free, notes, gate=self.gate)
            confidence = columns.confidence or guessed_column("confidence", free, notes, gate=self.gate)
            columns = replace(columns, correct=correct, confidence=confidence, truth=correct, prob=(confidence,))
        if columns.truth is None:
            columns = replace(columns, truth=guessed_column("truth", free, notes, gate=self.gate))
        if not (columns.prob or columns.mean is not None or columns.quantiles or columns.members):
            columns = replace(columns, prob=(guessed_column("prob", free, notes, gate=self.gate),))
        columns = columns.expanded(header)
        others = tuple(replace(other, truth=columns.truth).guessed(header, notes) for other in columns.others)
        columns = replace(columns, others=others)
        columns.require_consistent()
        return columns

    def expanded(self, header: Collection[str]) -> Columns:
        """The same with the columns that patterns name."""
        labels = labels_of(self.prob, header, "--prob")
        return replace(
            self,
            prob=tuple(labels),
            classes=self.classes or tuple(labels.values()),
            members=tuple(labels_of(self.members, header, "--members")),
            quantiles=expanded_levels(self.quantiles, header),
        )

    def require_consistent(self) -> None:
        """Refuse options that do not go together."""
        forecast = self.task in ("spread", "quantiles", "members")
        mean, std = self.mean is not None, self.std is not None
        kinds = (self.prob, mean or std, self.quantiles, self.members)
        labelled, positive = self.labelled is not None, self.positive is not None
        not_binary = len(self.prob) > 1 or forecast
        words = "--correct and --confidence are for answers: give them instead of --truth and --prob."
        refuse(self.answers and (self.chosen and self.truth != self.correct), words)
        judged = bool(self.judge)
        words = "--label-weight goes with --judge, the column of the judge's scores."
        refuse(self.label_weight is not None and not judged, words)
        words = "--judge is for answers with a confidence, --truth and --prob: not for multiclass data or forecasts."
        refuse(judged and (not_binary or labelled), words)
        words = "Judged answers have no row weights: --label-weight says how rows were chosen to be labelled."
        refuse(judged and self.weight is not None, words)
        words = "--drop-missing would drop the answers without a gold label, which --judge needs: leave it out."
        refuse(judged and self.drop_missing, words)
        words = "--cluster is not for positive-unlabeled data."
        refuse(self.cluster is not None and labelled, words)
        refuse(mean and not std, "--mean needs --std, the column of standard deviations.")
        refuse(std and not mean, "--std needs --mean, the column of predicted means.")
        words = "Give one kind of predictions: --prob, or --mean and --std, or --quantiles, or --members."
        refuse(sum(map(bool, kinds)) > 1, words)
        refuse(
            labelled and self.prior is None,
            "--labelled needs --prior, the share of positives in the population. If it is not known, try several, "
            "or estimate it in Python from a ranking score: calibrant.pu.estimate_prior(positive, unlabeled).",
        )
        words = "--prior goes with --labelled, the label of known positives among unlabeled rows."
        refuse(self.prior is not None and not labelled, words)
        words = "--single-sample goes with --labelled, the label of known positives."
        refuse(self.single_sample and not labelled, words)
        words = "--positive names the event's label; --labelled is for positive-unlabeled data. Give one of them."
        refuse(positive and labelled, words)
        refuse(positive and not_binary, "--positive is for binary predictions, not for multiclass ones or forecasts.")
        refuse(labelled and not_binary, "--labelled is for binary predictions, not for multiclass ones or forecasts.")
        refuse(self.percent and forecast, "--percent is for probabilities, not for forecasts.")
        refuse(self.logits and forecast, "--logits is for binary or multiclass scores, not for forecasts.")
        words = "--percent is for probabilities, --logits for scores that are not. Give one of them."
        refuse(self.percent and self.logits, words)


def guessed_column(what: str, header: Collection[str], notes: list[str], *, gate: bool = False) -> str:
    """The column that by its name is the truth or the probability; the guess is noted, with what it could be too."""
    lower = {name.lower(): name for name in header}
    likely = [lower[name] for name in GUESSES[what] if name in lower]
    if not likely:
        more = ", --mean and --std, --quantiles or --members" if what == "prob" else ""
        stop(f"Which column is --{what}? Say --{what} NAME{more}; the file has {_listed(header)}.")
    found, *others = likely
    refuse(others and gate, f"Columns {_listed(likely)} could each be --{what}: a gate needs --{what} NAME.")
    also = f"; {_listed(others)} would fit too: say --{what} NAME" if others else ""
    note = f"Taking column {found!r} as --{what}{also}."
    if note not in notes:
        notes.append(note)
    return found


def require_columns(names: Sequence[str], header: Collection[str]) -> None:
    """Raise unless every name is that of a column."""
    for name in names:
        refuse(name not in header, f"There is no column {name!r}; the file has {_listed(header)}.")


def expanded_levels(quantiles: Iterable[str], header: Collection[str]) -> tuple[str, ...]:
    """LEVEL=COLUMN for every quantile; the star of a pattern stands for the level."""
    found: list[str] = []
    for item in quantiles:
        columns = None if "=" in item else matching(item, header, "--quantiles")
        found += [item] if columns is None else [f"{level}={column}" for column, level in columns.items()]
    return tuple(found)


def _level(item: str) -> tuple[float, str]:
    level, _, name = item.partition("=")
    try:
        return float(level), name
    except ValueError:
        stop(
            f"--quantiles takes LEVEL=COLUMN, e.g. 0.05=q05, or a pattern whose * is the level, e.g. q_*; got {item!r}."
        )


def _listed(header: Collection[str]) -> str:
    return ", ".join(map(repr, header))
