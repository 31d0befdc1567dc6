"""The sample behind an interval or a test: rows, cells, clusters, resamples, design effect, and its rate of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import fail
from calibrant.numerics.arrays import EXACT_ROWS, Floats
from calibrant.numerics.cells import FineSample, PooledCells, too_few_clusters
from calibrant.numerics.confidence_limits import mid_p_interval, mid_p_value
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import SUMS, Rows, all_alike, design_effects, effective_n
from calibrant.results.estimate import Estimate
from calibrant.table.binning import Distinct, EqualMass, HybridGrid
from calibrant.table.bintable import BinTable, require_fine
from calibrant.table.task import Unlabeled

Columns = Callable[[Floats], Floats]


def row_clusters(data: Predictions, rows: int) -> NDArray[np.intp] | None:
    """Cluster numbers of `rows` values; None if they are independent. The outputs of one row are a cluster."""
    if data.group is None and rows == len(data):
        return None
    labels = np.arange(len(data)) if data.group is None else np.unique(data.group, return_inverse=True)[1]
    return np.repeat(labels, rows // len(data))


def design_effect(residuals: Iterable[Floats], clusters: NDArray[np.intp] | None) -> float:
    """Variance of the sum of weighted residuals (of several columns) relative to independent rows; at least 1."""
    if clusters is None:
        return 1.0
    alone = together = 0.0
    for column in residuals:
        alone += float(column @ column)
        together += float((np.bincount(clusters, column) ** 2).sum())
    return max(together / alone, 1.0) if alone > 0 else 1.0


def sums_by(label: NDArray[np.intp], values: Floats, size: int = 0) -> Floats:
    """Sums over the rows of each label, column by column; `size` is the least number of labels."""
    return np.stack([np.bincount(label, column, size) for column in values.T], axis=1).astype(np.float64, copy=False)


def rows_that_count(
    weight: Floats | None, residuals: Iterable[Floats], clusters: NDArray[np.intp] | None, rows: int
) -> float:
    """Kish's number of rows, divided by the design effect of clusters."""
    weighted = (column if weight is None else weight * column for column in residuals)
    return effective_n(weight, rows) / design_effect(weighted, clusters)


#: Maximum number of cells of a resampled table, and of clusters that independent rows are divided into.
#: Test: tests/inference/test_sample.py.
MOST_CELLS, MOST_CLUSTERS = 512, 1024

#: Sums of shares closer to zero than this are zero. Derived: above the rounding of a million terms of at most 1.
_BALANCED = 1e-9

#: Resamples per matrix product.
#: Speed: a block of repeats of 1024 clusters takes half a megabyte; no result depends on it.
_BATCH = 64

#: Fewer clusters tell nothing about the spread between them.
#: Test: tests/inference/test_norm_bounds_noise.py::test_few_clusters_are_refused.
LEAST_CLUSTERS = 8

#: Fewer events or non-events among the rows of clusters that count are few.
#: Test: tests/inference/test_sample.py::test_rows_of_clusters_count_by_how_alike_they_look_if_few_have_events.
FEW_EVENTS = 10


@dataclass(frozen=True, eq=False)
class Sample:
    """Scores and outcomes of one task, in the form that intervals and tests need.

    `cluster` numbers the cluster of each row from 0; None: rows are independent, and only the fine `table` is needed.
    With clusters the table has one cell per distinct score, so that each of the `rows` has a `cell`.
    """

    source: Predictions | BinTable
    cluster: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, data: Predictions | BinTable, *, needed_by: str) -> Sample:
        """Binary predictions, or a fine table of them, with independent rows."""
        if isinstance(data, BinTable):
            require_fine(data, needed_by=needed_by)
            if isinstance(data.task, Unlabeled):
                fail(f"{needed_by} does not support positive-unlabeled data.")
        elif not isinstance(data, Binary):
            fail(f"{needed_by} needs binary predictions (Binary(y_true, y_prob), data.top_label()), not {data!r}.")
        return cls(data)

    @classmethod
    def with_clusters(cls, data: Predictions | BinTable, *, needed_by: str) -> Sample:
        """Binary predictions with their clusters if they have a group, or a fine table."""
        checked = cls.of(data, needed_by=needed_by)
        return cls.of_rows(data) if isinstance(data, Binary) and data.group is not None else checked

    @classmethod
    def of_rows(cls, data: Binary) -> Sample:
        """Binary rows with their clusters (one per row if there is no group); rows of zero weight are left out."""
        if data.weight is not None and not data.weight.all():
            data = data.take(data.weight > 0)
        return cls(data, np.arange(len(data)) if data.group is None else cluster_labels(data, len(data)))

    @classmethod
    def of_clusters(cls, data: Predictions, *, cluster: NDArray[np.intp] | None = None) -> Sample:
        """Rows to be resampled by cluster: those of `group`, or random clusters of independent rows."""
        return cls(data, cluster_labels(data, len(data.rows().key)) if cluster is None else cluster)

    @cached_property
    def rows(self) -> Rows:
        """The rows."""
        if isinstance(self.source, BinTable):
            fail("A table has no rows; pass the predictions.")
        return self.source.rows()

    @cached_property
    def table(self) -> BinTable:
        """The cells of the scores, in ascending order; cells are empty only if they hold rows of zero weight."""
        if isinstance(self.source, BinTable):
            return self.source.filled(in_rows=True)
        if self.cluster is not None:
            return BinTable.of(self.source, Distinct())
        cut = Distinct() if len(self.source) <= EXACT_ROWS else HybridGrid()
        return BinTable.of(self.source, cut).filled(in_rows=True)

    @cached_property
    def cell(self) -> NDArray[np.intp]:
        """The cell number of each row, if the sample has clusters."""
        key = self.rows.key.astype(np.float64)
        order = np.argsort(key)  # numbers looked up in their order are found in the cache
        cell = np.empty(len(key), np.intp)
        cell[order] = np.searchsorted(self.table.key, key[order])
        return cell

    @cached_property
    def effective_n(self) -> float:
        """Kish's effective number of rows."""
        return self.table.total**2 / float(self.table.weight_squares.sum())

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return 0 if self.cluster is None else int(self.cluster.max()) + 1

    @cached_property
    def row_share(self) -> Floats:
        """The share of each row in the total weight."""
        weight = np.ones(len(self.rows.key)) if self.rows.weight is None else self.rows.weight
        return weight / weight.sum()

    @cached_property
    def residual(self) -> Floats:
        """Score minus outcome of each row."""
        return np.asarray(self.rows.predicted.astype(np.float64) - self.rows.observed)

    def by_cluster(self, values: Floats) -> Floats:
        """Sums over the rows of each cluster, column by column."""
        if self.cluster is None or self.clusters == len(self.cluster):
            return values
        return sums_by(self.cluster, values, self.clusters)

    @property
    def independent(self) -> bool:
        """Whether there are no clusters of several rows."""
        return self.cluster is None or self.clusters == len(self.cluster)

    @cached_property
    def few_counting(self) -> float:
        """The rows that count if those of a cluster are as alike as they look; infinite if many of them have events.

        Whether events are few is seen from predictions made right on average: a gap that all rows share makes none
        alike.
        """
        rate, mean = (float(sums.sum()) / self.table.total for sums in (self.table.observed, self.table.predicted))
        if self.independent or isinstance(self.source, BinTable):
            return np.inf
        p = self.rows.predicted.astype(np.float64)
        centred = _by_factor(rate, mean, turned=self.turned)(p) if 0 < rate < 1 else p
        if self._counting(p, centred) * min(rate, 1 - rate) >= FEW_EVENTS:
            return np.inf
        return self._counting(p, p)

    def _counting(self, p: Floats, fitted: Floats) -> float:
        """Rows that count if those of a cluster are as alike as their residuals."""
        reach, own = self.row_share * np.sqrt(p * (1 - p)), self.row_share * (self.rows.observed - fitted)
        sums = self.by_cluster(np.stack([own**2, own * reach, reach**2, reach**4, reach], axis=1))
        *products, most = sums[sums[:, 2] > 0].T
        return self.effective_n / float(design_effects(np.array(products), most, np.zeros(len(most), np.intp), 1)[0])

    def pooled(self, size: int, *, facing: bool = False) -> PooledCells:
        """At most about `size` cells of neighbouring scores; for `facing`, see `fine`."""
        return PooledCells.of(self._facing if facing else self.table.sums, size)

    def fine(self, *, facing: bool = False) -> FineSample:
        """Fine cells and, of clusters of rows, what each has in them.

        With `facing` nothing depends on which outcome is called the event or on the names of clusters: events are
        exchanged for non-events where scores are above 1/2 on average, and clusters are numbered by what they hold.
        """
        sums = self._facing if facing else self.table.sums
        if self.cluster is None or self.independent:
            return FineSample.of_rows(sums)
        cell, label, predicted, observed = self.cell, self.cluster, self.rows.predicted, self.rows.observed
        predicted = predicted.astype(np.float64)
        if facing and self.turned:
            cell, predicted, observed = len(self.table) - 1 - cell, 1 - predicted, 1 - observed
        if facing:
            label = _by_contents(label, self.row_share, predicted, observed)
        return FineSample.of_clusters(sums, cell, self.row_share, predicted, observed, label)

    @cached_property
    def turned(self) -> bool:
        """Whether scores are above 1/2 on average; or else events are more than half; or else cubes of the scores."""
        share, p = self.table.share, self.table.predicted_mean - 0.5
        odd = float(share @ p)
        if abs(odd) <= _BALANCED:
            odd = float(self.table.observed.sum()) / self.table.total - 0.5
        if abs(odd) <= _BALANCED:
            odd = float(share @ p**3)
        return odd > _BALANCED

    @cached_property
    def _facing(self) -> Floats:
        """Sums of count, weight, squared weight, prediction and outcome, turned if they are to be."""
        sums = self.table.sums[:5]
        if not self.turned:
            return sums
        count, weight, squares, predicted, observed = sums[:, ::-1]
        return np.stack([count, weight, squares, weight - predicted, weight - observed])

    @cached_property
    def coarse(self) -> BinTable:
        """The table with at most 512 cells: itself, or neighbouring cells of about equal mass pooled."""
        if self.cluster is None:
            return coarse_cells(self.table)
        totals = np.stack([np.asarray(column.sum(axis=0), dtype=np.float64) for column in self._cluster_sums])
        return replace(coarse_cells(self.table), sums=totals)

    def resample(self, draws: int, rng: np.random.Generator) -> Iterator[BinTable]:
        """Tables of resamples: of cells and outcomes, or of whole clusters."""
        if self.cluster is None:
            yield from self._resampled_outcomes(draws, rng)
            return
        for start in range(0, draws, _BATCH):
            yield from self.repeated(cluster_repeats(self.clusters, min(_BATCH, draws - start), rng))

    def repeated(self, repeats: Floats) -> Iterator[BinTable]:
        """For each row of `repeats`, the table in which each cluster occurs that number of times."""
        often = np.ascontiguousarray(repeats.T)
        totals = np.stack([np.asarray(column.T @ often).T for column in self._cluster_sums], axis=1)
        for sums in totals:
            yield replace(self.coarse, sums=sums).filled()

    def repeated_outcomes(self, repeats: Floats) -> tuple[Floats, Floats]:
        """The weights of both outcomes (1 and 0) in the coarse cells of each of these tables, one per row."""
        often, sums = np.ascontiguousarray(repeats.T), dict(zip(SUMS, self._cluster_sums, strict=True))
        one, both = (np.asarray(sums[name].T @ often).T for name in ("observed", "weight"))
        return one, both - one

    def _resampled_outcomes(self, draws: int, rng: np.random.Generator) -> Iterator[BinTable]:
        """Counts of each cell and outcome of unweighted binary rows are multinomial."""
        table, cells = self.coarse, len(self.coarse)
        if not np.array_equal(table.weight, table.count):
            fail(
                "A table of weighted rows pools the weights of both outcomes, so it cannot be resampled; "
                "pass the predictions."
            )
        shares = np.maximum(np.concatenate([table.observed, table.count - table.observed]), 0.0)
        mean, square = table.predicted / table.weight, table.predicted_squares / table.weight
        for drawn in rng.multinomial(table.n, shares / shares.sum(), draws).astype(np.float64):
            hits, count = drawn[:cells], drawn[:cells] + drawn[cells:]
            sums = np.stack([count, count, count, count * mean, hits, count * square, hits * mean, hits])
            yield replace(table, sums=sums).filled()

    @cached_property
    def _cluster_sums(self) -> list[Any]:
        """For each column of sums a matrix of clusters by coarse cells."""
        table, coarse = self.table, coarse_cells(self.table)
        ends = np.cumsum(coarse.count) - 0.5
        into = np.minimum(np.searchsorted(ends, np.cumsum(table.count) - table.count / 2), len(coarse) - 1)
        labels = np.zeros(0, np.intp) if self.cluster is None else self.cluster
        return _cross_sums(labels, into[self.cell], self.rows.sums(), (self.clusters, len(coarse)))


#: Shares of alpha that a statement has in the family of statements about one sample, whatever the others say: about the
#: level of independent rows, and of clusters (whose other tests are weaker), and about the slope.
#: Test: tests/inference/test_sample.py::test_shares_of_the_error_budget.
LEVEL_SHARE, CLUSTERED_LEVEL_SHARE, SLOPE_SHARE = 1 / 4, 1 / 2, 1 / 10


@dataclass(frozen=True)
class EventRate:
    r"""The rate of events and the mean prediction, with the variance of their distance: all that is said of the level.

    O:E, the intercept, the test of calibration and the lower ends of errors rest on the same limits and so cannot
    contradict each other: the mid-P limits of a binomial share with

    .. math:: n^\star = \frac{\bar y (1 - \bar y)}{V}, \qquad
              V = \max_m \frac{1}{W^2}\sum_i w_i^2 (y_i - m_i)^2,

    where m is the prediction made right on average, by a shift and by a factor (of 1 - p where scores are above 1/2 on
    average), and V at least what outcomes of these probabilities would have (`by_model`). Of clusters the sum is over
    their sums, each divided by :math:`\sqrt{1 - \text{its share}}` since it pulls the mean towards itself, with
    Student's quantile for as many degrees of freedom as clusters carry the variance (`freedom`, None for independent
    rows); where fewer than ten events or non-events count, no more rows count than `most`. `size` rows (or clusters)
    count where only one outcome was seen. Fewer than five clusters, or than two effective ones, say nothing.
    """

    rate: float
    mean: float
    variance: float
    by_model: float
    size: float
    freedom: float | None = None
    silent: bool = False
    most: float = np.inf

    @classmethod
    def of(cls, sample: Sample, *, fitted: Columns | None = None, certain: bool = True) -> EventRate:
        """Of a sample, perhaps without rows predicted 0 or 1; `fitted` is used instead of shift and factor."""
        table = sample.table if certain else sample.table.take(uncertain(sample.table.predicted_mean))
        rate = float(np.clip(table.observed.sum() / table.total, 0.0, 1.0))
        mean = float(table.predicted.sum()) / table.total
        fits = [lambda p: p + (rate - mean), _by_factor(rate, mean, turned=sample.turned)]
        fits = fits if fitted is None else [fitted]
        chance, unit = np.clip(fits[-1](table.predicted_mean), 0.0, 1.0), table.weight_squares / table.total**2
        by_model, size = float(unit @ (chance * (1 - chance))), 1 / float(unit.sum())
        if sample.independent:
            y, at = table.observed_mean, [fit(table.predicted_mean) for fit in fits]
            squares = [float(unit @ (y * (1 - m) ** 2 + (1 - y) * m**2)) for m in at]
            return cls(rate, mean, max(squares) * size / max(size - 1, 1.0), by_model, size)
        p = sample.rows.predicted.astype(np.float64)
        share = sample.row_share if certain else sample.row_share * uncertain(p)
        share = share / share.sum()
        part = sample.by_cluster(share[:, None])[:, 0]
        if too_few_clusters(part):
            return cls(rate, mean, np.inf, by_model, 0.0, 1.0, silent=True)
        columns = np.stack([share * (sample.rows.observed - fit(p)) for fit in fits], axis=1)
        sums = sample.by_cluster(columns) / np.sqrt(np.maximum(1 - part, _BALANCED))[:, None]
        own = max(sums.T, key=lambda column: float(column @ column))
        counting = sample.few_counting
        size = min(size, float(sample.clusters), counting)
        return cls(rate, mean, float(own @ own), by_model, size, carrying(own**2), most=counting)

    def rows(self, alpha: float) -> float:
        """The number of independent rows whose rate would vary as much."""
        if not 0 < self.rate < 1:
            return self.size  # nothing is known of the spread within clusters
        variance, alone = self.variance * student_inflation(self.freedom, 1 - alpha), self.rate * (1 - self.rate)
        variance = max(variance, self.by_model, _BALANCED * alone / self.size)  # 0 and 1 may be right
        return min(alone / variance, self.most)

    def limits(self, alpha: float) -> tuple[float, float]:
        """Both ends of the interval of the rate at level 1 - alpha."""
        if self.silent:
            return 0.0, 1.0
        size = self.rows(alpha)
        low, high = map(float, mid_p_interval(self.rate * size, size, 1 - alpha))
        return low, high

    def least_gap(self, alpha: float) -> float:
        """The lower limit of the size of the mean gap: 0 if the interval at level 1 - alpha contains the prediction."""
        low, high = self.limits(alpha)
        return max(self.mean - high, low - self.mean, 0.0)

    @cached_property
    def p_value(self) -> float:
        """The smallest alpha at which the limits exclude the mean prediction."""

        def at(alpha: float) -> float:
            size = self.rows(alpha)
            return float(mid_p_value(self.rate * size, size, self.mean))

        if self.silent:
            return 1.0
        if self.freedom is None or not 0 < self.rate < 1:
            return at(0.5)
        low, high = -700.0, 0.0  # the logarithm of the smallest number
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if at(float(np.exp(middle))) <= np.exp(middle) else (middle, high)
        return float(np.exp(high))

    @property
    def share(self) -> float:
        """Its share of alpha."""
        return LEVEL_SHARE if self.freedom is None else CLUSTERED_LEVEL_SHARE

    @property
    def direction(self) -> Literal[-1, 0, 1]:
        """1 if predictions are above the outcomes on average, -1 if below."""
        return 1 if self.mean > self.rate else -1 if self.mean < self.rate else 0


def _by_factor(rate: float, mean: float, *, turned: bool) -> Columns:
    """Predictions of this mean times what makes them right on average, or those of the other outcome."""
    found, wanted = (1 - mean, 1 - rate) if turned else (mean, rate)
    part = wanted / found if found > 0 else 1.0
    return lambda p: np.clip(1 - part * (1 - p) if turned else part * p, 0.0, 1.0)


def uncertain(p: Floats) -> NDArray[np.bool_]:
    """Which predictions are neither 0 nor 1."""
    return np.asarray((p > 0) & (p < 1))


def carrying(squares: Floats) -> float:
    """The number of clusters that carry a variance, of which these are the parts; at least 1."""
    return max(float(squares.sum()) ** 2 / float(squares @ squares), 1.0) if squares.any() else 1.0


def student_inflation(freedom: float | None, level: float) -> float:
    """Square of Student's quantile over the normal one, of a two-sided interval; 1 if the variance is known."""
    if freedom is None:
        return 1.0
    probability = (1 + level) / 2
    return float(stdtrit(freedom, probability) / ndtri(probability)) ** 2 if 0.5 < probability < 1 else 1.0


def pooled(table: BinTable, size: int) -> BinTable:
    """The table itself, or at most `size` bins of neighbouring scores of about equal mass."""
    return table if len(table) <= size else table.coarsen(EqualMass(size)).filled()


def coarse_cells(table: BinTable, size: int = MOST_CELLS) -> BinTable:
    """The same as a table of cells, each at its mean score."""
    bins = pooled(table, size)
    if bins is table:
        return table
    key = bins.predicted / bins.weight
    return replace(bins, cut=Distinct(), key=key, low=key, high=key)


def cluster_repeats(clusters: int, draws: int, rng: np.random.Generator) -> Floats:
    """Number of times each cluster occurs in a resample, one resample per row."""
    repeats = np.empty((draws, clusters))
    for start in range(0, draws, _BATCH):  # clusters are drawn one by one: faster than a multinomial of their numbers
        rows = repeats[start : start + _BATCH]
        drawn = rng.integers(0, clusters, rows.shape) + clusters * np.arange(len(rows))[:, None]
        rows[:] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
    return repeats


#: More independent binary rows are resampled as a table, which takes the same time for any number of them.
#: Test: tests/inference/test_bootstrap.py::test_very_many_rows_are_resampled_as_a_table.
MOST_ROWS = 1 << 20


def require_two_rows(data: Predictions | BinTable) -> None:
    """Raise an error if fewer than two rows (or groups) count, by their weights: resamples of one show no noise."""
    if isinstance(data, BinTable):
        size, unit = data.population.effective_n, "rows"
    else:
        labels, unit = row_clusters(data, len(data)), "rows" if data.group is None else "groups"
        mass = data.weight if labels is None else np.bincount(labels, data.weight).astype(np.float64)
        size = effective_n(mass, len(data))
    if size < 2 * (1 - 1e-9):
        fail(f"A bootstrap interval needs at least two {unit} that count; by their weights, these are {size:.3g}.")


def require_clusters(number: int, *, needed_by: str) -> None:
    """Refuse so few clusters that the spread between them is not known."""
    if number < LEAST_CLUSTERS:
        fail(
            f"{needed_by} needs at least {LEAST_CLUSTERS} groups of rows to know the spread between them, got {number}."
        )


def row_losses(found: float, data: Predictions, *, finite: bool = True) -> Floats | None:
    """The losses whose mean an estimate is, or None; infinite ones raise an error, unless they need not be `finite`."""
    target = found.target if isinstance(found, Estimate) else None
    if target is None or target.losses is None or not isinstance(data, Forecast | Binary | Multiclass):
        return None
    if isinstance(data, Binary) and data.group is None and all_alike(data.weight) and len(data) > MOST_ROWS:
        return None
    losses = np.asarray(target.losses(data), dtype=np.float64)
    if finite and not np.isfinite(losses).all():
        first = int(np.flatnonzero(~np.isfinite(losses))[0])
        fail(
            f"The loss of {int((~np.isfinite(losses)).sum())} rows is infinite (first at row {first}), so their mean "
            "has no interval; bound it by a floor, e.g. functools.partial(log_loss, floor=1e-6)."
        )
    return losses


def cluster_labels(data: Any, rows: int) -> NDArray[np.intp]:
    """Cluster numbers from 0: those of `group`, or random ones with a fixed seed (up to 1024 rows, one per row)."""
    if data.group is not None:
        labels = np.unique(data.group, return_inverse=True)[1]
        return np.repeat(labels, rows // len(labels))  # several outputs per row belong to one cluster
    if rows <= MOST_CLUSTERS:
        return np.arange(rows)
    return generator(0, "random clusters").permutation(np.arange(rows) % MOST_CLUSTERS)


def _by_contents(label: NDArray[np.intp], share: Floats, p: Floats, y: Floats) -> NDArray[np.intp]:
    """Clusters numbered by size, mean score, mean outcome, ..., whatever they were called."""
    columns = (share, share * p, share * y, share * p**2, share * p * y, share * p**3)
    sums = [np.round(np.bincount(label, column), 12) for column in columns]
    rank = np.empty(len(sums[0]), np.intp)
    rank[np.lexsort(sums[::-1])] = np.arange(len(rank))
    return rank[label]


def _cross_sums(labels: NDArray[np.intp], cell: NDArray[np.intp], sums: Floats, shape: tuple[int, int]) -> list[Any]:
    """Sums per label and cell, a matrix for each row of `sums`; sparse if most of it would be empty."""
    if 4 * len(labels) < shape[0] * shape[1]:
        from scipy.sparse import coo_array

        return [coo_array((values, (labels, cell)), shape=shape).tocsr() for values in sums]
    flat, size = labels * shape[1] + cell, shape[0] * shape[1]
    return [np.bincount(flat, values, size).astype(np.float64).reshape(shape) for values in sums]
