"""Rows of any task as three columns: the score they are binned by, what was predicted, what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats

Role = Literal["both", "population", "positives"]

#: The sums every table keeps per cell, in this order. Squares and product are weighted by w, not by w squared.
SUMS = (
    "count",
    "weight",
    "weight_squares",
    "predicted",
    "observed",
    "predicted_squares",
    "product",
    "observed_squares",
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a task as the table sees them: is the mean of `predicted` that of `observed` at each `key`?

    Attributes
    ----------
    key, predicted, observed : array
    weight : array, optional
        Multiplies both; None means one for each row.
    role : {"both", "population", "positives"}
        Labelled rows are both predicted and observed. Of positive-unlabeled data the unlabeled rows are the population:
        weighted and predicted but never observed; the labelled positives are observed but not part of it.
    counted : bool
        Whether they add to the number of rows. Labelled positives of a single sample do not: they are among its rows.
    """

    key: NDArray[Any]
    predicted: NDArray[Any]
    observed: NDArray[Any]
    weight: Floats | None = None
    role: Role = "both"
    counted: bool = True

    @property
    def plain(self) -> bool:
        """Whether these are unweighted probabilities, for which there are faster loops."""
        return self.weight is None and self.predicted is self.key

    @property
    def plain_binary(self) -> bool:
        """Whether these are unweighted probabilities with outcomes of 0 and 1."""
        return self.plain and self.role == "both" and self.observed.dtype == np.int8

    def take(self, rows: Any) -> Rows:
        """The given rows (a slice or an index array)."""
        key = self.key[rows]
        return Rows(
            key,
            key if self.predicted is self.key else self.predicted[rows],
            self.observed[rows],
            None if self.weight is None else self.weight[rows],
            self.role,
            self.counted,
        )

    def sums(self) -> Floats:
        """The columns of `SUMS` for each row, one row of the result per column."""
        predicted, observed = self.predicted.astype(np.float64), self.observed.astype(np.float64)
        weight = np.ones(len(predicted)) if self.weight is None else self.weight
        first, second = weight * predicted, weight * observed
        count, none = np.full(len(predicted), float(self.counted)), np.zeros(len(predicted))
        if self.role == "population":
            return np.stack([count, weight, weight * weight, first, none, first * predicted, none, none])
        if self.role == "positives":
            return np.stack([count, none, none, none, second, none, first * observed, second * second])
        return np.stack(
            [count, weight, weight * weight, first, second, first * predicted, first * observed, second * observed]
        )
