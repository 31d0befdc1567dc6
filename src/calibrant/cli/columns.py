"""Which columns of a file mean what: as the options say, or by their names where these say nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from calibrant.cli.formats import UsageError
from calibrant.scale.paths import DEFAULT, ReadOptions

#: Names that are taken for a column when none is given, in this order.
GUESSES = {
    "truth": ("y_true", "y", "truth", "label", "target", "outcome", "actual"),
    "prob": ("y_prob", "p", "prob", "probability", "score", "confidence"),
}


@dataclass(frozen=True)
class Columns:
    """Which columns of a file mean what, and how its rows are taken, as far as the options say.

    Every column may be an SQL expression of columns. Each entry of `by` is a grouping of its own; several columns in
    one, separated by commas, are crossed. With `models` each column of `prob` is another model's probability of the
    same event, otherwise several are those of several classes.
    """

    truth: str | None = None
    prob: tuple[str, ...] = ()
    mean: str | None = None
    std: str | None = None
    quantiles: tuple[str, ...] = ()
    positive: str | None = None
    labelled: str | None = None
    prior: float | None = None
    by: tuple[str, ...] = ()
    weight: str | None = None
    where: str | None = None
    percent: bool = False
    drop_missing: bool = False
    models: bool = False
    reading: ReadOptions = DEFAULT

    @property
    def one_event(self) -> bool:
        """Whether the task is the probability of one event, all of whose rows have a label."""
        one = len(self.prob) == 1 or self.models
        return one and self.labelled is None and self.mean is None and not self.quantiles

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers, whatever the outcomes are."""
        single = [name for name in (self.mean, self.std, self.weight) if name is not None]
        return [*self.prob, *single, *(column for _, column in self.levels)]

    @property
    def roles(self) -> dict[str, str]:
        """The columns that make up the task, and the option that names each; groups are not among them."""
        levels = {column: "--quantiles" for _, column in self.levels}
        single = {"--weight": self.weight, "--std": self.std, "--mean": self.mean}
        named = {name: option for option, name in single.items() if name is not None}
        return levels | named | dict.fromkeys(self.prob, "--prob") | {self.truth or "": "--truth"}

    @property
    def levels(self) -> list[tuple[float, str]]:
        """The predicted quantiles: level and column, in order."""
        return levels_and_columns(self.quantiles)

    def guessed(self, header: Collection[str], notes: list[str]) -> Columns:
        """The same with the columns that no option names, by their names; every guess is noted."""
        columns = self
        if columns.truth is None:
            columns = replace(columns, truth=guessed_column("truth", header, notes))
        if not columns.prob and columns.mean is None and not columns.quantiles:
            columns = replace(columns, prob=(guessed_column("prob", header, notes),))
        return columns

    def require_consistent(self) -> None:
        """Refuse options that do not go together."""
        rules = {
            "--mean needs --std, the column of standard deviations.": self.mean is not None and self.std is None,
            "--labelled needs --prior, the share of positives in the population.": self.labelled is not None
            and self.prior is None,
            "--prior goes with --labelled, the label of known positives among unlabeled rows.": self.prior is not None
            and self.labelled is None,
            "--positive names the event's label; --labelled is for positive-unlabeled data. Give one of them.": None
            not in (self.positive, self.labelled),
            "--positive is for the probability of one event, not for several classes or for forecasts.": self.positive
            is not None
            and (len(self.prob) > 1 or self.mean is not None or bool(self.quantiles))
            and not self.models,
            "--percent is for probabilities, not for forecasts.": self.percent
            and (self.mean is not None or bool(self.quantiles)),
        }
        for message, broken in rules.items():
            if broken:
                raise UsageError(message)


def guessed_column(what: str, header: Collection[str], notes: list[str]) -> str:
    """The column that by its name is the truth or the probability; the guess is noted."""
    lower = {name.lower(): name for name in header}
    found = next((lower[name] for name in GUESSES[what] if name in lower), None)
    if found is None:
        message = f"Which column is --{what}? Say --{what} NAME; the file has {_listed(header)}."
        raise UsageError(message)
    notes.append(f"Taking column {found!r} as --{what}.")
    return found


def require_columns(names: Sequence[str], header: Collection[str]) -> None:
    """Raise unless every name is that of a column."""
    for name in names:
        if name not in header:
            message = f"There is no column {name!r}; the file has {_listed(header)}."
            raise UsageError(message)


def crossed(by: str, header: Collection[str]) -> tuple[str, ...]:
    """The columns or expressions that a grouping crosses: those between commas, unless a column has the whole name."""
    if by in header:
        return (by,)
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(by):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(by[start:place])
            start = place + 1
    names = [part.strip() for part in (*parts, by[start:])]
    if "" in names:
        message = f"--by {by!r} has an empty name between its commas."
        raise UsageError(message)
    return tuple(dict.fromkeys(names))


def levels_and_columns(quantiles: Iterable[str]) -> list[tuple[float, str]]:
    """The level and the column of each LEVEL=COLUMN, in the order of the levels."""
    return sorted(map(_level, quantiles))


def _level(item: str) -> tuple[float, str]:
    level, _, name = item.partition("=")
    try:
        return float(level), name
    except ValueError:
        message = f"--quantiles takes LEVEL=COLUMN, e.g. 0.05=q05, got {item!r}."
        raise UsageError(message) from None


def _listed(header: Collection[str]) -> str:
    return ", ".join(map(repr, header))
