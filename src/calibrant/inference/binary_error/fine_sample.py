"""A sample in fine cells, with what each cluster of rows adds to them: what intervals of the true error need."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Binary, Predictions
from calibrant.inference.binary_error.cell_noise import CellNoise, ClusterNoise, RowNoise
from calibrant.inference.binary_error.pooled_cells import PooledCells
from calibrant.inference.sample import Sample
from calibrant.numerics.arrays import Floats
from calibrant.table.bintable import BinTable

#: More clusters are united at random: sums of independent clusters are independent.
MOST_CLUSTERS = 512

#: A cluster of a twentieth of all rows or more counts as correlated, even if its residuals do not show it.
LEAST_DESIGN_EFFECT = 1 / 20


@dataclass(frozen=True, eq=False)
class FineSample:
    """Fine cells and, if rows come in clusters, the share of each cluster in the weight and the events of each cell."""

    cells: PooledCells
    weight: Floats | None = None
    events: Floats | None = None

    @classmethod
    def of(cls, data: Predictions | BinTable, *, needed_by: str) -> FineSample:
        """Binary predictions or a fine table of them."""
        checked = Sample.of(data, needed_by=needed_by)
        grouped = isinstance(data, Binary) and data.group is not None
        return cls.of_sample(Sample.of_rows(data) if grouped else checked)  # type: ignore[arg-type]

    @classmethod
    def of_sample(cls, sample: Sample) -> FineSample:
        """A sample of independent rows, or of clusters of them."""
        label, clusters = sample.cluster, sample.clusters
        if label is None or clusters == len(label):
            return cls(PooledCells.fine(sample.table.sums))
        if clusters > MOST_CLUSTERS:
            clusters = MOST_CLUSTERS
            label = np.random.default_rng(0).integers(0, clusters, sample.clusters)[label]
        share = sample.row_share
        residual = share * (sample.residual - float(share @ sample.residual))
        effect = max(
            1.0,
            _ratio(label, residual),
            LEAST_DESIGN_EFFECT * _ratio(label, share),
        )
        cells = PooledCells.fine(sample.table.sums, design_effect=effect)
        size = len(cells.share)
        pair, observed = label * size + cells.number[sample.cell], sample.rows.observed
        weight, events = (
            np.bincount(pair, values, clusters * size).astype(np.float64).reshape(clusters, size)
            for values in (share, share * observed)
        )
        present = weight.any(axis=1)
        return cls(cells, weight[present], events[present])

    @property
    def clusters(self) -> int | None:
        """The number of clusters; None if rows are independent."""
        return None if self.weight is None else len(self.weight)

    def noise(self, draws: int, seed: int) -> CellNoise:
        """The noise of this many simulated samples."""
        if self.weight is None or self.events is None:
            return RowNoise(self.cells, draws, seed)
        return ClusterNoise(self.cells, draws, seed, self.weight, self.events)

    def merged(self, size: int) -> FineSample:
        """The sample in at most about `size` cells, for what varies slowly."""
        cells = self.cells.merged(size)
        if cells is self.cells:
            return self
        if self.weight is None or self.events is None:
            return replace(self, cells=cells)
        starts = np.flatnonzero(np.diff(cells.number, prepend=-1))
        return FineSample(
            cells, np.add.reduceat(self.weight, starts, axis=1), np.add.reduceat(self.events, starts, axis=1)
        )


def _ratio(label: NDArray[np.intp], by_row: Floats) -> float:
    """The variance of sums over clusters relative to that of independent rows."""
    return float((np.bincount(label, by_row) ** 2).sum()) / max(float((by_row**2).sum()), 1e-300)
