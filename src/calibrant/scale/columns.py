"""What the columns of a source mean: one small class per task, turning columns into expressions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import narwhals.stable.v2 as nw

from calibrant.data import validation
from calibrant.data.forecasts import LARGEST_SPREAD, SMALLEST_SPREAD
from calibrant.data.positive_unlabeled import Scenario
from calibrant.data.validation import SUM_TOLERANCE, fail
from calibrant.scale import checks
from calibrant.scale.checks import Check, NamedFrame

BEST, CODE, LARGEST, TOTAL = "_calibrant_best", "_calibrant_code", "_calibrant_largest", "_calibrant_total"


@dataclass(frozen=True)
class RowExpressions:
    """The rows of a task as the table sees them; compare `calibrant.numerics.rows.Rows`."""

    columns: NamedFrame
    score: nw.Expr
    observed: nw.Expr
    checks: tuple[Check, ...]
    predicted: nw.Expr | None = None  # the score itself
    mass: nw.Expr | None = None  # what a row adds to the weight of its cell: its weight
    zero_or_one: bool = True  # whether outcomes equal their squares


@dataclass(frozen=True)
class EventColumns:
    """`y_true` says whether an event occurred, `y_prob` is one column: its predicted probability.

    Labels are 0 and 1, booleans, or one of the pairs yes/no, true/false, y/n, t/f in any case. With `positive` they are
    any two values, of which `positive` is the event; a third one is refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibrant.scale import bin_table
    >>> log = pd.DataFrame({"label": ["legit", "fraud", "fraud"], "score": [0.2, 0.6, 0.9]})
    >>> bin_table(log, y_true="label", y_prob="score", task=EventColumns(positive="fraud")).observed
    array([0., 1., 1.])
    """

    positive: Any = None

    def rows(self, columns: NamedFrame, y_true: str, y_prob: tuple[str, ...]) -> RowExpressions:
        """Score and prediction are the probability, the outcome is the label."""
        score, held = checks.probability(columns, _only(y_prob, "EventColumns()"))
        occurred, rules = checks.outcome(columns, y_true, self.positive)
        return RowExpressions(columns, score, occurred, (*held, *rules))


@dataclass(frozen=True)
class OneClass:
    """One class of many against the rest: `y_prob` is its column, `y_true` the observed class."""

    label: Any
    classes: tuple[Hashable, ...]

    def rows(self, columns: NamedFrame, y_true: str, y_prob: tuple[str, ...]) -> RowExpressions:
        """The outcome is whether the class was observed."""
        score, held = checks.probability(columns, _only(y_prob, "OneClass"))
        observed = checks.label_column(columns[y_true], columns.kind(y_true, "y_true"), self.classes, name=y_true)
        known = Check("y_true", checks.NO_CLASS, observed.is_in(self.classes), y_true)
        held = (*held, *checks.present(columns, y_true, "y_true", implied=False), known)
        return RowExpressions(columns, score, (observed == self.label).cast(nw.Float64), held)


@dataclass(frozen=True)
class OneVsRestColumns:
    """One table per class: `y_prob` has one column per class, `y_true` holds the observed class.

    `classes` are the labels of the columns. Without it these are the numbers in their names (``p2, p0, p1``), or else
    column numbers from 0. Rows whose label is none of them are invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibrant.scale import bin_tables
    >>> log = pd.DataFrame({"animal": ["cat", "dog"], "cat": [0.7, 0.4], "dog": [0.3, 0.6]})
    >>> task = OneVsRestColumns(("cat", "dog"))
    >>> bin_tables(log, y_true="animal", y_prob=["cat", "dog"], task=task)["dog"].observed
    array([0., 1.])
    """

    classes: tuple[Hashable, ...] | None = None

    def labels(self, y_prob: Sequence[str]) -> tuple[Hashable, ...]:
        """The label of each column."""
        return checks.labels_of_columns(self.classes, y_prob)


@dataclass(frozen=True)
class TopLabelColumns:
    """The confidence of the predicted class and whether it was right; columns and `classes` as in `OneVsRestColumns`.

    The largest probability and its column are found in the engine; of equal ones the first counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibrant.scale import bin_table
    >>> log = pd.DataFrame({"animal": ["cat", "cat"], "cat": [0.7, 0.4], "dog": [0.3, 0.6]})
    >>> table = bin_table(log, y_true="animal", y_prob=["cat", "dog"], task=TopLabelColumns(("cat", "dog")))
    >>> table.predicted, table.observed
    (array([0.6, 0.7]), array([0., 1.]))
    """

    classes: tuple[Hashable, ...] | None = None

    def rows(self, columns: NamedFrame, y_true: str, y_prob: tuple[str, ...]) -> RowExpressions:
        """Score and prediction are the largest probability, the outcome is whether its class was observed."""
        labels = checks.labels_of_columns(self.classes, y_prob)
        observed = checks.label_column(columns[y_true], columns.kind(y_true, "y_true"), labels, name=y_true)
        size, each = len(y_prob), [columns.number(name, "y_prob").cast(nw.Float64) for name in y_prob]
        code = (nw.when(observed == label).then(nw.lit(k)).otherwise(nw.lit(size)) for k, label in enumerate(labels))
        largest = nw.col(LARGEST)
        best = (nw.when(column == largest).then(nw.lit(k)).otherwise(nw.lit(size)) for k, column in enumerate(each))
        found = columns.with_columns(
            **{LARGEST: nw.max_horizontal(*each), TOTAL: nw.sum_horizontal(*each), CODE: nw.min_horizontal(*code)}
        ).with_columns(**{BEST: nw.min_horizontal(*best)})
        inside = nw.all_horizontal(*((column >= 0) & (column <= 1) for column in each), ignore_nulls=False)
        held = (
            *(check for name in y_prob for check in checks.present(columns, name, "y_prob")),
            Check("y_prob", checks.OUTSIDE, inside),
            Check("y_prob", "does not sum to 1", (nw.col(TOTAL) - 1).abs() <= SUM_TOLERANCE),
            *checks.present(columns, y_true, "y_true"),
            Check("y_true", checks.NO_CLASS, nw.col(CODE) < size, y_true),
        )
        return RowExpressions(found, largest, (nw.col(CODE) == nw.col(BEST)).cast(nw.Float64), held)


@dataclass(frozen=True)
class GaussianColumns:
    """`y_true` is a number; the columns `mean` and `std` give its predicted normal distribution.

    Spreads outside [1e-72, 1e72] and errors beyond 1e72 are invalid: tables hold their fourth powers.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibrant.scale import bin_table
    >>> log = pd.DataFrame({"y": [1.0, -3.0], "mu": [0.0, 0.0], "sigma": [1.0, 2.0]})
    >>> bin_table(log, y_true="y", task=GaussianColumns("mu", "sigma")).observed
    array([1., 9.])
    """

    mean: str
    std: str

    def rows(self, columns: NamedFrame, y_true: str, y_prob: tuple[str, ...]) -> RowExpressions:
        """The score is sigma; predicted and observed are the squares of sigma and of the error."""
        if y_prob:
            fail("GaussianColumns(mean, std) takes no y_prob.", TypeError)
        roles = {"y_true": y_true, "mean": self.mean, "std": self.std}
        each = [checks.finite_number(columns, name, role) for role, name in roles.items()]
        (y, _), (mean, _), (std, _) = each
        error = y - mean
        held = (
            *(check for _, rules in each for check in rules),
            Check("std", "not positive", std > 0, self.std, implied=True),
            Check("std", "outside [1e-72, 1e72]", (std >= SMALLEST_SPREAD) & (std <= LARGEST_SPREAD), self.std),
            Check("y_true - mean", "beyond 1e72", (error >= -LARGEST_SPREAD) & (error <= LARGEST_SPREAD)),
        )
        return RowExpressions(columns, std, error * error, held, predicted=std * std, zero_or_one=False)


@dataclass(frozen=True)
class UnlabeledColumns:
    """Positive-unlabeled data: `y_true` is `positive` for known positives, `unlabeled` for the other rows.

    `prior` is the share of positives in the population. With ``scenario="single-sample"`` all rows are one sample, some
    of whose positives were labelled, and `label_frequency`, the share of them that were, may stand in for `prior`. See
    `calibrant.PositiveUnlabeled`.

    Examples
    --------
    >>> import pandas
    >>> import calibrant as cal
    >>> rows = pandas.DataFrame({"known": [1, 1, 0, 0, 0], "p": [0.9, 0.7, 0.2, 0.6, 0.1]})
    >>> cal.scale.bin_table(rows, y_true="known", y_prob="p", task=UnlabeledColumns(prior=0.3)).n
    5
    """

    prior: float | None = None
    positive: Any = 1
    unlabeled: Any = 0
    scenario: Scenario = "case-control"
    label_frequency: float | None = None

    def __post_init__(self) -> None:
        if self.scenario not in get_args(Scenario):
            fail(f"scenario must be 'case-control' or 'single-sample', got {self.scenario!r}.")
        known = self.label_frequency is not None
        if (self.prior is None) != known or (known and not self.nested):
            fail("Give the prior, or for scenario='single-sample' either the prior or the label_frequency.")
        if self.prior is not None:
            validation.fraction("prior", self.prior)
        if self.label_frequency is not None and self.label_frequency != 1:
            validation.fraction("label_frequency", self.label_frequency)

    @property
    def nested(self) -> bool:
        """Whether the labelled rows belong to the sample of the population."""
        return self.scenario == "single-sample"

    def rows(self, columns: NamedFrame, y_true: str, y_prob: tuple[str, ...]) -> RowExpressions:
        """The population sample has weights and predictions, the positives have outcomes."""
        score, held = checks.probability(columns, _only(y_prob, "UnlabeledColumns(prior)"))
        positive, unlabeled = columns[y_true] == self.positive, columns[y_true] == self.unlabeled
        population = (positive | unlabeled) if self.nested else unlabeled
        mass = population.cast(nw.Float64)
        known = Check("y_true", "neither positive nor unlabeled", positive | unlabeled, y_true)
        held = (*held, *checks.present(columns, y_true, "y_true"), known)
        predicted = score.cast(nw.Float64) * mass
        return RowExpressions(columns, score, positive.cast(nw.Float64), held, predicted=predicted, mass=mass)


OneTable = EventColumns | OneClass | TopLabelColumns | GaussianColumns | UnlabeledColumns
"""Meanings of columns that give one table."""
ColumnMeaning = OneTable | OneVsRestColumns
"""What the columns of a source mean."""


def _only(y_prob: tuple[str, ...], task: str) -> str:
    if len(y_prob) != 1:
        several = "for several use TopLabelColumns() or OneVsRestColumns()"
        fail(f"task={task} needs one column as y_prob, got {len(y_prob)}; {several}.", TypeError)
    return y_prob[0]
