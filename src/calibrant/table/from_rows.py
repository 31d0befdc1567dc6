"""From rows, or from many sorted samples at once, to the sums of their bins or cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import SORTED_ROWS_PER_CELL, Floats, extremes
from calibrant.numerics.binned_sums import LogSums, equal_width_sums, sums_by_index
from calibrant.numerics.equal_mass import (
    Rank,
    Ranks,
    RunningWeight,
    SortedSamples,
    equal_count_edges,
    equal_mass_rows,
    require_inside,
)
from calibrant.numerics.rows import SUMS, Rows, variance_of_mean
from calibrant.numerics.sorting import SortedRows, distinct_sums, equal_mass_sums, selection_is_faster, sorted_rows
from calibrant.table.batch_sums import GridCells, grid_sums
from calibrant.table.binning import (
    Binning,
    BoundBins,
    Cells,
    Cut,
    Distinct,
    Edges,
    EqualMass,
    EqualWidth,
    Grid,
    HybridGrid,
    LogGrid,
    PaperBins,
    as_binning,
)


class CellSums(NamedTuple):
    """What a table is made of: how it was cut, and number, bounds and sums of its bins or cells."""

    cut: Edges | Distinct | Grid
    key: NDArray[Any]
    low: Floats
    high: Floats
    sums: Floats


def added(parts: list[CellSums]) -> CellSums:
    """The sums of all rows behind `parts`, which must be cut alike."""
    key = np.concatenate([part.key for part in parts])
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0])[: len(key)])

    def gathered(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)[..., order]

    return CellSums(
        parts[0].cut,
        key[order][starts],
        np.minimum.reduceat(gathered("low"), starts),
        np.maximum.reduceat(gathered("high"), starts),
        np.add.reduceat(gathered("sums"), starts, axis=1),
    )


def cut_rows(parts: tuple[Rows, ...], binning: Cut | Cells, *, squares: bool = True) -> CellSums:
    """The sums of rows that come in one part, or in two that are summed apart: unlabeled rows, then positives."""
    if isinstance(binning, Distinct | HybridGrid | LogGrid):
        tables = [_distinct(part) if isinstance(binning, Distinct) else _on_grid(part, binning) for part in parts]
        return tables[0] if len(tables) == 1 else added(tables)
    first = parts[0]
    if isinstance(binning, EqualMass) and not first.plain and first.weight is None:
        # far cheaper than ordering whole rows
        binning = Edges(equal_count_edges(np.sort(first.key), binning.n_bins, binning.rank))
    if isinstance(binning, EqualMass):
        if binning.rank == "floor" and selection_is_faster(first, binning.n_bins):
            return of_bins(*equal_mass_sums(first, binning.n_bins, squares=squares))
        table = equal_mass_table(sorted_rows(first), binning.n_bins, binning.rank)
        if len(parts) == 1:
            return table
        edges, parts, sums = np.append(table.low, table.high[-1]), parts[1:], table.sums
        edges[0] = min(edges[0], *(part.key.min() for part in parts))
        edges[-1] = max(edges[-1], *(part.key.max() for part in parts))
        binning = Edges(edges)
    else:
        edges = binning.edges
        sums = np.zeros((len(SUMS), len(edges) - 1))
    for part in parts:
        if part.predicted is not part.key or edges[0] > 0 or edges[-1] < 1:  # probabilities are known to fit
            require_inside(part.key, edges)
        wanted = squares and part.role != "both"
        if isinstance(binning, EqualWidth):
            sums = sums + equal_width_sums(part, edges, squares=wanted)
        else:
            sums = sums + sums_by_index(part, binning.index, len(edges) - 1, squares=wanted)
    return of_bins(edges, sums)


def _distinct(rows: Rows) -> CellSums:
    key, sums = distinct_sums(rows)
    return CellSums(Distinct(), key, key, key, sums)


def of_bins(edges: Floats, sums: Floats) -> CellSums:
    """The table of bins with these edges and sums."""
    return CellSums(Edges(edges), np.arange(sums.shape[1]), edges[:-1], edges[1:], sums)


def equal_mass_table(ordered: SortedRows, n: int, rank: Rank = "floor") -> CellSums:
    """The table of `n` bins of equal mass of rows that are sorted already."""
    rows = ordered.rows
    if rows.weight is None:
        cuts = equal_mass_rows(ordered, n, rank)
    else:
        ends = ordered.run_ends
        starts = np.concatenate([[0], ends[:-1]])
        weight, squares = (np.add.reduceat(values, starts) for values in (rows.weight, rows.weight**2))
        at = RunningWeight.of(weight, squares).cuts(n, rank)[1:-1].astype(np.intp)
        cuts = np.concatenate([[0], ends[at - 1], [len(ordered)]])
    edges = np.concatenate([rows.key[:1], rows.key[cuts[1:] - 1]]).astype(np.float64)
    return of_bins(edges, ordered.between(cuts))


def _on_grid(rows: Rows, grid: Grid) -> CellSums:
    dense = isinstance(grid, HybridGrid) and len(rows.key) >= SORTED_ROWS_PER_CELL * grid.cells
    if isinstance(grid, HybridGrid) and dense and (rows.plain_binary or (rows.plain and rows.role != "both")):
        return CellSums(grid, *_by_sorting(rows, grid))
    if isinstance(grid, LogGrid) and (spreads := _spreads(rows, grid)) is not None:
        return spreads
    first, last = grid.index(np.array(extremes(rows.key)))  # cells rise with the key
    size = int(last - first) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)

    def index(key: NDArray[Any]) -> NDArray[np.intp]:
        where = grid.index(key)
        where -= first
        key = key.astype(np.float64, copy=False)
        np.minimum.at(low, where, key)
        np.maximum.at(high, where, key)
        return where

    sums = sums_by_index(rows, index, size)
    cell = np.flatnonzero(np.isfinite(low))
    return CellSums(grid, cell + first, low[cell], high[cell], sums[:, cell])


def _by_sorting(rows: Rows, grid: HybridGrid) -> GridCells:
    """The cells of plain rows: sorted in batches along with the edges of the cells, no row needs a logarithm."""
    summed = grid_sums(grid, rows.key.dtype, rows=len(rows.key))
    alike = np.broadcast_to(np.int8(rows.role == "positives"), rows.key.shape)
    outcomes = rows.observed if rows.role == "both" else alike
    summed.take(outcomes, rows.key)
    cells = summed.cells()
    if rows.role == "population":
        cells.sums[[4, 6, 7]] = 0.0
    elif rows.role == "positives":
        cells.sums[0] *= rows.counted
        cells.sums[[1, 2, 3, 5]] = 0.0
    return cells


def _spreads(rows: Rows, grid: LogGrid) -> CellSums | None:
    """The cells of unweighted rows, such as spreads and squared errors, by compiled loops, where these are at hand."""
    floats = all(column.dtype == np.float64 for column in (rows.key, rows.predicted, rows.observed))
    fast = compiled(len(rows.key), saves=40.0) if floats and rows.weight is None and rows.role == "both" else None
    if fast is None:
        return None
    summed = LogSums(fast, grid.per_fold)
    return CellSums(grid, *summed.cells()) if summed.take(rows.key, rows.predicted, rows.observed) else None


@dataclass(frozen=True, eq=False)
class SampleBins:
    """Sums per bin of samples of `n` unweighted rows, of shape (samples, bins); equal counts may have shape (bins,)."""

    count: Floats
    predicted: Floats
    observed: Floats
    n: int

    @property
    def share(self) -> Floats:
        """The part of the rows in each bin."""
        return self.count / self.n

    @property
    def mass(self) -> Floats:
        """Error mass: the share of each bin times its mean prediction less mean outcome."""
        return (self.predicted - self.observed) / self.n

    @property
    def mass_variance(self) -> Floats:
        """Estimated variance of the error mass; NaN where the bin has a single row or none."""
        rate = self.observed / np.maximum(self.count, 1.0)
        return variance_of_mean(rate, rate, self.count) * self.share**2


def bin_samples(samples: SortedSamples | SampleBins, binning: Binning, which: Ranks | None = None) -> SampleBins:
    """The bins of all samples, or of those with the numbers `which`; samples that have bins are taken as they are."""
    if isinstance(samples, SampleBins):
        return samples
    cut = as_binning(binning)
    if isinstance(cut, PaperBins | BoundBins):
        cut = cut.resolve(1 / samples.n, samples.n)
    if isinstance(cut, EqualMass):
        cuts = samples.equal_mass_cuts(cut.n_bins, which, cut.rank)
    else:
        edges = cut.edges
        require_inside(samples.key[:, [0, -1]], edges)
        cuts = samples.cuts_at(edges, which)
    count = (cuts[..., 1:] - cuts[..., :-1]).astype(np.float64)
    observed = samples.observed(cuts, which).astype(np.float64)
    return SampleBins(count, samples.predicted(cuts, which), observed, samples.n)
