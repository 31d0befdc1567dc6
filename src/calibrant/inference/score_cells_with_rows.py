"""Score cells together with the rows in them: what clusters of rows and pairs of models need."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary
from calibrant.inference.gap_fit import GapFit
from calibrant.inference.resampling import cluster_labels
from calibrant.inference.score_cells import ScoreCells
from calibrant.numerics.arrays import Floats
from calibrant.table.binning import Distinct
from calibrant.table.bintable import BinTable


@dataclass(frozen=True, eq=False)
class RowCells:
    """The cell, the share of the weight and the score less the outcome of each row, and the cluster it belongs to."""

    cells: ScoreCells
    index: NDArray[np.intp]
    share: Floats
    residual: Floats
    labels: NDArray[np.intp]
    clusters: int

    @classmethod
    def of(cls, data: Binary) -> RowCells:
        """Rows are clusters of their own where the data have no group; those without weight are left out."""
        if data.weight is not None and not data.weight.all():
            data = data.take(data.weight > 0)
        table = BinTable.of(data, Distinct())
        cells, number = ScoreCells.of_table(table)
        p = data.y_prob.astype(np.float64)
        weight = np.ones(len(data)) if data.weight is None else data.weight
        labels = np.arange(len(data)) if data.group is None else cluster_labels(data, len(data))
        index = number[np.searchsorted(table.key, p)]
        return cls(cells, index, weight / weight.sum(), p - data.y_true, labels, int(labels.max()) + 1)

    def influence(self, fit: GapFit) -> Floats:
        """What each cluster adds to the coordinates of the fit beyond its share of the fitted gap, one line each."""
        noise = self.share * (self.residual - fit.gap[self.index])
        return self.by_cluster(noise[:, None] * fit.half[self.index])

    def by_cluster(self, values: Floats) -> Floats:
        """Sums over the rows of each cluster, column by column."""
        if self.clusters == len(self.labels):
            return values
        return np.stack([np.bincount(self.labels, column, self.clusters) for column in values.T], axis=1)

    def thinned(self) -> ScoreCells:
        """The cells with as many rows as independent ones would need to be as noisy: Kish's design effect.

        Outcomes and scores of a cluster are alike to different degrees, so that each has an effect of its own.
        """
        if self.clusters == len(self.labels):
            return self.cells
        fit = GapFit.of(self.cells)
        alone = replace(self, labels=np.arange(len(self.labels)), clusters=len(self.labels))
        of_outcomes = float((self.influence(fit) ** 2).sum() / max((alone.influence(fit) ** 2).sum(), 1e-300))
        pair = np.unique(self.labels * len(self.cells.share) + self.index, return_inverse=True)[1].reshape(-1)
        of_scores = float((np.bincount(pair, self.share) ** 2).sum() / (self.share**2).sum())
        kept, count = self.cells.n / max(of_scores, 1.0), self.cells.count / max(of_outcomes, 1.0)
        return replace(self.cells, n=kept, count=count)
