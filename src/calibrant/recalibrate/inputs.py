"""Scores as the maps see them: checked once, then read as probabilities, log odds or log probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.validation import class_probabilities, fail
from calibrant.numerics.arrays import LOG_FLOOR, Floats, clipped_log_odds, expit, floored_log, softmax
from calibrant.numerics.rows import Rows
from calibrant.numerics.sorting import sorted_rows
from calibrant.table.bintable import BinTable, require_rows

Input = Literal["probabilities", "logits"]


#: Logits beyond this count as this: certain by any measure, and their squares stay finite.
#: Derived: exp(-1e6) is 0 in double precision, and the square, 1e12, is far below the largest double.
LARGEST_LOGIT = 1e6


@dataclass(frozen=True, eq=False)
class Scores:
    """Validated scores, float32 or float64 as given: (n,) for binary outcomes, or (n, K) for K classes.

    Logits are log odds of the event, or unnormalised log probabilities of the classes.
    """

    values: NDArray[Any]
    logits: bool

    @classmethod
    def of(cls, values: ArrayLike, *, input: Input, clip: bool = False) -> Scores:
        """Validated scores from those of the user."""
        if input not in ("probabilities", "logits"):
            fail(f"input must be 'probabilities' or 'logits', got {input!r}.", ValueError)
        array = validation.as_array("scores", values)
        wide = array.ndim == 2 and array.shape[1] > 1
        if input == "logits":
            checked = validation.matrix("scores", array) if wide else validation.column("scores", array)
            if max(float(checked.max()), -float(checked.min())) > LARGEST_LOGIT:
                checked = np.clip(checked, -LARGEST_LOGIT, LARGEST_LOGIT)
        elif wide:
            checked = class_probabilities("scores", array, clip=clip, logits="input='logits'")
        else:
            checked = validation.probabilities("scores", array, clip=clip)
        return cls(checked, input == "logits")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def columns(self) -> int:
        """Number of columns as given: 1 for the probability of an event."""
        return 1 if self.values.ndim == 1 else int(self.values.shape[1])

    @property
    def classes(self) -> int:
        """Number of classes: two for a single column."""
        return max(self.columns, 2)

    def take(self, rows: Any) -> Scores:
        """Some of the rows."""
        return Scores(self.values[rows], self.logits)

    @cached_property
    def log_odds(self) -> Floats:
        """Log odds of the second class, finite (binary scores only)."""
        values = self.values.astype(np.float64, copy=False)
        if self.logits:
            return values if values.ndim == 1 else values[:, 1] - values[:, 0]
        if values.ndim == 1:
            return clipped_log_odds(values)
        return floored_log(values[:, 1]) - floored_log(values[:, 0])

    @cached_property
    def probability(self) -> NDArray[Any]:
        """Probability of the second class (binary scores only)."""
        if self.logits:
            return expit(self.log_odds)
        if self.values.ndim == 1:
            return self.values
        values = self.values.astype(np.float64, copy=False)
        return values[:, 1] / (values[:, 0] + values[:, 1])

    @cached_property
    def log_probabilities(self) -> Floats:
        """Logarithms of the class probabilities, (n, K), finite; logits as they are (unnormalised)."""
        values = self.values.astype(np.float64, copy=False)
        if self.logits:
            return values if values.ndim == 2 else np.stack([np.zeros(len(values)), values], axis=1)
        if values.ndim == 1:
            with np.errstate(divide="ignore"):
                return np.stack([np.maximum(np.log1p(-values), LOG_FLOOR), floored_log(values)], axis=1)
        return floored_log(values)

    @cached_property
    def probabilities(self) -> Floats:
        """Probabilities of all classes, (n, K), whose rows sum to 1."""
        if self.classes == 2:
            p = self.probability.astype(np.float64)
            return np.stack([expit(-self.log_odds) if self.logits else 1 - p, p], axis=1)
        values = self.values.astype(np.float64)
        return softmax(values) if self.logits else values / values.sum(axis=1, keepdims=True)

    def one_vs_rest(self, k: int) -> Scores:
        """The event that the class is `k`, as one column."""
        if self.classes == 2:
            if self.logits:
                return Scores(self.log_odds if k == 1 else -self.log_odds, logits=True)
            return Scores(self.probability if k == 1 else self.probabilities[:, 0], logits=False)
        if not self.logits:
            return Scores(np.ascontiguousarray(self.probabilities[:, k]), logits=False)
        values = self.log_probabilities
        others = np.delete(values, k, axis=1)
        top = others.max(axis=1)
        rest = top + np.log(np.exp(others - top[:, None]).sum(axis=1))
        return Scores(values[:, k] - rest, logits=True)


@dataclass(frozen=True, eq=False)
class BinomialCells:
    """Scores (one column) and the weight there of all rows and of the positives, in effective numbers of rows.

    Cells are single rows, distinct scores, or the cells of a table. Unlike the rows of `calibrant.numerics` a cell has
    one weight per outcome, and logits stay logits, whose tails probabilities would lose.
    """

    scores: Scores
    weight: Floats
    positive: Floats

    @classmethod
    def of_rows(cls, scores: Scores, outcome: NDArray[Any], weight: Floats | None) -> BinomialCells:
        """One cell per row."""
        positive = outcome.astype(np.float64)
        if weight is None:
            return cls(scores, np.ones(len(scores)), positive)
        return cls(scores, weight, weight * positive)

    @classmethod
    def of_distinct(cls, scores: Scores, outcome: NDArray[Any], weight: Floats | None) -> BinomialCells:
        """One cell per distinct probability, rising."""
        p = scores.probability
        rows = sorted_rows(Rows(p, p, outcome.astype(np.int8), weight))
        ends, ordered = rows.run_ends, rows.rows
        count = np.diff(ends, prepend=0)
        starts = ends - count
        key = Scores(ordered.key[starts], logits=False)
        if ordered.weight is None:
            positive = ordered.observed
            if rows.ends is not None:
                positive = np.add.reduceat(positive, starts, dtype=np.intp)
            return cls(key, count.astype(np.float64), positive.astype(np.float64))
        total = np.add.reduceat(ordered.weight, starts)
        return cls(key, total, np.add.reduceat(ordered.weight * ordered.observed, starts))

    @classmethod
    def of_table(cls, table: BinTable) -> BinomialCells:
        """The cells of a table that have weight, at their mean score. Weights add up to the effective n."""
        require_rows(table)
        some = table.filled(in_rows=True)
        p = np.clip(some.predicted_mean, some.low, some.high)  # a mean of equal scores is that score
        weight, positive = some.weight, some.observed * some.observed_scale
        row = some.population.squares / some.total
        if abs(row - 1) > 1e-12:
            weight, positive = weight / row, positive / row
        return cls(Scores(p, logits=False), weight, positive)

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def probability(self) -> NDArray[Any]:
        """Scores as probabilities."""
        return self.scores.probability

    @property
    def log_odds(self) -> Floats:
        """Scores as log odds."""
        return self.scores.log_odds

    @property
    def total(self) -> float:
        """Weight of all cells."""
        return float(self.weight.sum())

    @property
    def rate(self) -> float:
        """Share of positives."""
        return float(self.positive.sum()) / self.total


def pooled_log_odds(x: Floats, weight: Floats, positive: Floats, *, groups: int) -> tuple[Floats, Floats, Floats]:
    """Rising log odds in at most `groups` groups of equal weight, at their mean; distinct values if they are few.

    Equal values never split, so that rows and a table of them give the same groups.
    """
    order = np.argsort(x)  # equal values are added up, in whatever order: a stable sort takes several times as long
    x = x[order]
    x, weight, positive = _summed(x, weight[order], positive[order], np.diff(x) > 0)
    if len(x) > groups:
        group = np.floor((np.cumsum(weight) - weight / 2) / weight.sum() * groups)
        x, weight, positive = _summed(x, weight, positive, np.diff(group) > 0)
    return x, weight, positive


def _summed(x: Floats, weight: Floats, positive: Floats, new: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Mean of x and sums of the others over runs; `new` says where the next run begins."""
    starts = np.flatnonzero(np.concatenate([[True], new]))
    if len(starts) == len(x):
        return x, weight, positive
    total = np.add.reduceat(weight, starts)
    mean = np.clip(np.add.reduceat(weight * x, starts) / total, x[starts], np.maximum.reduceat(x, starts))
    return mean, total, np.add.reduceat(positive, starts)
