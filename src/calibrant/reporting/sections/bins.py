"""Rows of similar score: mean prediction, observed frequency and its interval, of rows or of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary
from calibrant.inference.design_effect import design_effect, row_clusters
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.binomial_interval import mid_p_interval
from calibrant.reporting.contents import Bin, Value
from calibrant.reporting.part import Part
from calibrant.table.binning import Edges, EqualMass
from calibrant.table.bintable import BinTable

LEVEL = 0.95
#: Bins over which the dependence within clusters is averaged.
_CLUSTER_BINS = 10


@dataclass(frozen=True, eq=False)
class ScoreBins:
    r"""Bins of one part of the data.

    The interval of an observed frequency is mid-P with Kish's number of rows. Rows of clusters count less, by the
    design effect in the bin,

    .. math:: d = \frac{C}{C - 1} \frac{\sum_c (\sum_{i \in c} r_i)^2}{\sum_i r_i^2} \cdot \frac{t^2}{z^2} \ge 1,
              \qquad r_i = w_i (y_i - \bar y),

    with C clusters in the bin, t Student's quantile for C - 1 degrees of freedom and z the normal one. Where all
    outcomes are the same, nothing is known of the dependence, and each cluster counts as one row.
    """

    part: Part

    def between(self, edges: Floats) -> tuple[Bin, ...]:
        """Bins (low, high] with these edges, the first with its low edge; empty ones are left out."""
        return self._bins(self.part.cells.coarsen(Edges(edges)), edges[1:-1])

    def each_score(self) -> tuple[Bin, ...]:
        """One bin per distinct score."""
        cells = self.part.cells
        return self._bins(cells, cells.high[:-1])

    def inside(self, low: float, high: float) -> Bin | None:
        """The rows with low <= score <= high; None if there are none."""
        edges = [0.0, *([float(np.nextafter(low, 0.0))] if low > 0 else []), *([high] if high < 1 else []), 1.0]
        table = self.part.cells.coarsen(Edges(edges))
        wanted = int(low > 0)
        if not table.weight[wanted] > 0:
            return None
        before = int(np.count_nonzero(table.weight[:wanted] > 0))
        return replace(self._bins(table, np.array(edges[1:-1]))[before], low=low)

    def _bins(self, table: BinTable, inner: Floats) -> tuple[Bin, ...]:
        """The bins of a table that have rows; `inner` are the edges between its bins."""
        some = np.flatnonzero(table.weight > 0)
        rate, size = table.observed_mean[some], table.effective_count[some]
        if self._clustered is not None:
            size = self._clustered.sizes(np.searchsorted(inner, self._clustered.score, side="left"), some, rate, size)
        low, high = mid_p_interval(rate * size, size, LEVEL)
        mean, count = table.predicted_mean[some], table.count[some]
        events = np.where(table.weight[some] == count, table.observed[some], count * rate)
        return tuple(
            Bin(*ends, n, events, predicted, Value(*observed))
            for ends, n, events, predicted, observed in zip(
                zip(table.low[some].tolist(), table.high[some].tolist(), strict=True),
                count.tolist(),
                events.tolist(),
                mean.tolist(),
                zip(rate.tolist(), low.tolist(), high.tolist(), strict=True),
                strict=True,
            )
        )

    @cached_property
    def _clustered(self) -> ClusteredRows | None:
        data = self.part.data
        return ClusteredRows.of(data) if isinstance(data, Binary) and data.group is not None else None


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """Rows that depend on each other within clusters."""

    score: Floats
    outcome: Floats
    weight: Floats
    cluster: NDArray[np.intp]

    @classmethod
    def of(cls, data: Binary) -> ClusteredRows:
        """The rows of predictions that have a group."""
        weight = np.ones(len(data)) if data.weight is None else data.weight.astype(np.float64)
        return cls(
            data.y_prob.astype(np.float64), data.y_true.astype(np.float64), weight, cluster_labels(data, len(data))
        )

    def sizes(self, index: NDArray[np.intp], some: NDArray[np.intp], rate: Floats, size: Floats) -> Floats:
        """How many independent rows each of the bins `some` is worth; `index` is the bin of each row."""
        from scipy.special import ndtri, stdtrit

        means = np.zeros(int(max(index.max(), some.max())) + 1)
        means[some] = rate
        residual = self.weight * (self.outcome - means[index])
        pairs, pair = np.unique(index * (int(self.cluster.max()) + 1) + self.cluster, return_inverse=True)
        bin_of_pair = pairs // (int(self.cluster.max()) + 1)
        together = np.bincount(bin_of_pair, np.bincount(pair.reshape(-1), residual) ** 2, len(means))[some]
        alone = np.bincount(index, residual**2, len(means))[some]
        clusters = np.bincount(bin_of_pair, minlength=len(means))[some].astype(np.float64)
        free = np.maximum(clusters - 1, 1.0)
        student = (stdtrit(free, (1 + LEVEL) / 2) / float(ndtri((1 + LEVEL) / 2))) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            effect = np.maximum(clusters / free * together / alone * student, 1.0)
        known = (alone > 1e-9 * np.maximum(size, 1.0)) & (clusters > 1)
        return np.where(known, size / effect, np.minimum(size, clusters))


def average_design_effect(part: Part) -> float:
    """By how much dependence within clusters raises the variance of observed frequencies in tenths of the rows."""
    data = part.data
    if not isinstance(data, Binary) or data.group is None:
        return 1.0
    rows, table = ClusteredRows.of(data), part.cells.coarsen(EqualMass(_CLUSTER_BINS)).filled()
    index = np.searchsorted(table.high[:-1], rows.score, side="left")
    residual = rows.weight * (rows.outcome - table.observed_mean[index])
    return design_effect((residual * (index == k) for k in range(len(table))), row_clusters(data, len(data)))
