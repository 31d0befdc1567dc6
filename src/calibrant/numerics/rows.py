"""Rows of any task as three columns (key, predicted, observed), their weights, effective number, sums and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats

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

    The weight multiplies both; None means one for each row. Labelled rows have both roles, predicted and observed. Of
    positive-unlabeled data the unlabeled rows are the population: weighted and predicted but never observed; the
    labelled positives are observed but not part of it, and not `counted` where they are among the unlabeled rows.
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


def half_columns(rows: Rows, count: NDArray[Any], sums: Floats, squared: Floats | None = None) -> Floats:
    """The columns of `SUMS` from rows and sums of p by bin, of the population or of the positives."""
    none = np.zeros(len(count))
    squared = none * np.nan if squared is None else squared
    if rows.role == "population":
        return np.stack([count, count, count, sums, none, squared, none, none])
    return np.stack([count * rows.counted, none, none, none, count, none, sums, count])


class Mass(NamedTuple):
    """Sum of weights and of squared weights of one sample."""

    total: float
    squares: float

    @property
    def effective_n(self) -> float:
        """Kish's effective number of rows, (sum w)² / sum w²; zero if all weights are zero."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    @classmethod
    def of(cls, weight: Floats | None, n: int) -> Mass:
        """The mass of `n` rows; without weights each row weighs one."""
        return cls(float(n), float(n)) if weight is None else cls(float(weight.sum()), float(weight @ weight))


def all_alike(weight: Floats | None) -> bool:
    """Whether all rows have the same weight, which is equivalent to no weights."""
    return weight is None or bool((weight == weight[0]).all())


def effective_n(weight: Floats | None, n: int) -> float:
    """Kish's effective number of rows, (sum w)² / sum w²; `n` itself without weights."""
    return Mass.of(weight, n).effective_n


def weighted_rows(weight: Floats) -> NDArray[np.intp]:
    """The rows that have weight: more than 0, and more than rounds to 0 next to the largest."""
    return np.flatnonzero(weight / weight.max())


def importance_weights(weight: Floats | None, total: float | None = None) -> Floats | None:
    """Weights without their unit: scaled to add up to Kish's effective number of rows, or to `total`.

    None where all weights are the same, up to rounding. All weights are positive: see `weighted_rows`. `total` is what
    they add up to where entries stand for several rows each; then None means no weights only.
    """
    if weight is None:
        return None
    if total is not None and abs(float(weight.sum()) - total) <= 1e-12 * total:
        return weight
    relative: Floats = weight / weight.max()
    if total is None:
        if relative.min() > 1 - 1e-12:
            return None
        total = effective_n(relative, len(relative))
    return relative * (total / float(relative.sum()))


def variance_of_mean(mean: Floats, mean_square: Floats, effective_n: Floats) -> Floats:
    """Estimated variance of means of (effectively) this many rows each; NaN for one row or none."""
    several = np.where(effective_n > 1, effective_n, np.nan)
    return np.maximum(mean_square - mean**2, 0.0) / (several - 1)


def mean_and_error(values: Floats, weight: Floats, cluster: NDArray[Any] | None = None) -> tuple[float, float]:
    """The weighted mean and its standard error, with clusters (if there are any) as units."""
    total = float(weight.sum())
    mean = float(weight @ values) / total
    parts = weight * (values - mean)
    if cluster is not None:
        unit = np.unique(cluster, return_inverse=True)[1]
        parts = np.bincount(unit, parts).astype(np.float64)
    return mean, float(np.sqrt(parts @ parts)) / total


def design_effects(products: Floats, reach: Floats, group: NDArray[np.intp], groups: int) -> Floats:
    """By how much the variance of calibrated outcomes is that of independent ones, as alike as rows of clusters look.

    Of each cluster, `products` are the sums of a², a b, b² and b⁴, with a the weighted residuals of its rows and b the
    standard deviations that they would have if the predictions were true, and `reach` is the sum of b; `group` says
    which group it belongs to. The likeness of the rows of a cluster is the share of their squared residuals that goes
    along with b. Outcomes that were not seen to differ within clusters count as alike: in clusters without an event,
    events may well be rare and come together.
    """

    def total(values: Floats) -> Floats:
        return np.bincount(group, values, groups).astype(np.float64, copy=False)  # of no clusters, too

    def ratio(part: Floats, whole: Floats, none: float) -> Floats:
        return np.divide(part, whole, out=np.full_like(whole, none), where=whole > 0)

    squares, along, noise, fourth = products
    alone = ratio(fourth, noise**2, 1.0)  # 1 of a cluster of one row
    within, most = total(squares - ratio(along**2, noise, 0.0)), total(squares * (1 - alone))
    alike = 1 - np.clip(ratio(within, most, 1.0), 0.0, 1.0)
    return np.asarray(1 + alike * (ratio(total(reach**2), total(noise), 1.0) - 1))


#: Numbers of a matrix that are worked on at once. Speed: 16 MB, so that temporary arrays stay small beside the matrix;
#: no result depends on it.
_BLOCK = 2_000_000


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Consecutive slices of the rows of a matrix that hold about two million numbers each."""
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def extremes(values: NDArray[Any]) -> tuple[Any, Any]:
    """The smallest and the largest of an array, in one read of it."""
    chunks = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    ends = [(chunk.min(), chunk.max()) for chunk in chunks]
    return min(low for low, _ in ends), max(high for _, high in ends)


def accumulate_rows(values: Floats) -> Floats:
    """Running sums down the rows, in place: faster than `np.cumsum`, which goes along the columns one by one."""
    for before, here in pairwise(values):
        here += before
    return values
