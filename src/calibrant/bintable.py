"""Sums per bin, and nothing else.

Sums add up: a table made by a warehouse from a billion rows, or merged from a thousand shards, is the same
object as one made by NumPy on a laptop, and every estimator that needs only sums works on either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.binning import Binning, Cells, Distinct, Edges, EqualMass, HybridGrid, LogGrid
from calibrant.kernels import SUMS, Floats, Pairs, SortedRows, sorted_rows, sums_by_index

if TYPE_CHECKING:
    from calibrant.predictions import Predictions


@dataclass(frozen=True, eq=False, repr=False)
class BinTable:
    """Per bin or cell: lowest and highest score, and the sums of `SUMS`.

    Tables of bins (`EqualWidth`, `EqualMass`, `Edges`) keep empty bins. Fine tables (`Distinct`, `HybridGrid`,
    `LogGrid`) hold only cells that have rows, and `coarsen` turns them into bins.

    Attributes
    ----------
    cut : Edges, Distinct, HybridGrid or LogGrid
        How the rows were divided. Only tables with equal cuts can be added.
    key : array
        Bin or cell number; the score itself for `Distinct`.
    low, high : array
        Bounds of the scores in the cell: the bin's edges, or the lowest and highest score seen.
    sums : array of shape (8, cells)
        The columns `count`, `weight`, `weight_squares`, `predicted`, `observed`, `predicted_squares`, `product`,
        `observed_squares`; each is also an attribute. Counts are whole unless an edge had to cut a cell.
    prior : float or None
        Positive-unlabeled tables only: the share of positives to which the observed column is scaled.

    Examples
    --------
    >>> import calibrant as cal
    >>> table = BinTable.of(cal.Binary([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8]), cal.EqualWidth(2))
    >>> table
    <BinTable of 2 bins, n=4, Edges>
    >>> table.predicted_mean, table.observed_mean
    (array([0.2, 0.7]), array([0., 1.]))
    """

    cut: Edges | Distinct | HybridGrid | LogGrid
    key: NDArray[Any]
    low: Floats
    high: Floats
    sums: Floats
    prior: float | None = None

    @classmethod
    def of(cls, data: Predictions | Pairs, binning: Binning | Cells) -> BinTable:
        """The table of `data` cut by `binning`."""
        pairs = data if isinstance(data, Pairs) else data.pairs()
        prior = None if isinstance(data, Pairs) else data.prior
        if isinstance(binning, EqualMass) and (pairs.plain_binary or pairs.weighted):
            return replace(equal_mass_table(sorted_rows(pairs), binning.n), prior=prior)
        if isinstance(binning, EqualMass):  # sorting the key alone is several times cheaper than ordering whole rows
            binning = Edges(equal_count_edges(np.sort(pairs.key), binning.n))
        if isinstance(binning, Distinct):
            key, sums = sorted_rows(pairs).distinct()
            return cls(Distinct(), key, key, key, sums, prior)
        if isinstance(binning, HybridGrid | LogGrid):
            return replace(_on_grid(pairs, binning), prior=prior)
        edges = binning.edges
        if pairs.predicted is not pairs.key or edges[0] > 0 or edges[-1] < 1:  # probabilities are known to fit
            _require_inside(pairs.key, edges)
        sums = sums_by_index(pairs, binning.index, len(edges) - 1, squares=False)
        return replace(_of_bins(edges, sums), prior=prior)

    def __len__(self) -> int:
        return len(self.key)

    def __repr__(self) -> str:
        kind = "cells" if self.fine else "bins"
        return f"<BinTable of {len(self):_} {kind}, n={self.n:_}, {type(self.cut).__name__}>"

    def __add__(self, other: BinTable) -> BinTable:
        if not isinstance(other, BinTable):
            return NotImplemented
        if self.cut != other.cut or self.prior != other.prior:
            message = "Only tables that were cut alike can be added (equal edges or grid, equal prior)."
            raise ValueError(message)
        return merge([self, other])

    @property
    def fine(self) -> bool:
        """Whether this is a table of cells, from which any bins can be made."""
        return not isinstance(self.cut, Edges)

    @property
    def edges(self) -> Floats:
        """The edges of a table of bins."""
        if not isinstance(self.cut, Edges):
            message = "A fine table has cells, not edges; coarsen it first, e.g. table.coarsen(EqualMass(15))."
            raise AttributeError(message)
        return self.cut.edges

    @property
    def n(self) -> int:
        """Number of rows."""
        return round(float(self.count.sum()))

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    @property
    def share(self) -> Floats:
        """The part of the total weight in each bin."""
        return self.weight / self.total

    @property
    def observed_scale(self) -> float:
        """Factor of the observed column: 1, but for positive-unlabeled tables, whose positives stand for `prior`."""
        if self.prior is None:
            return 1.0
        return self.prior * self.total / float(self.observed.sum())

    @property
    def predicted_mean(self) -> Floats:
        """Mean prediction per bin; NaN where the bin is empty."""
        return self._per_weight(self.predicted)

    @property
    def observed_mean(self) -> Floats:
        """Mean outcome per bin; NaN where the bin is empty."""
        return self._per_weight(self.observed * self.observed_scale)

    @property
    def effective_count(self) -> Floats:
        """Kish's effective number of rows per bin, (sum w)^2 / sum w^2: the count itself without weights."""
        squares = self.weight_squares
        return np.divide(self.weight**2, squares, out=np.zeros_like(squares), where=squares > 0)

    def filled(self) -> BinTable:
        """The bins that have weight. The edges are kept whole."""
        return self.take(self.weight > 0)

    def take(self, which: Any) -> BinTable:
        """Some of the bins, by mask or index."""
        return replace(self, key=self.key[which], low=self.low[which], high=self.high[which], sums=self.sums[:, which])

    def coarsen(self, binning: Binning) -> BinTable:
        """A fine table regrouped into bins.

        A cell of several scores that an edge falls into is cut proportionally; a cell of one score never is.
        """
        if not self.fine:
            message = "Only a fine table can be coarsened; this one has bins already."
            raise ValueError(message)
        if isinstance(binning, EqualMass):
            at = equal_mass_cuts(np.cumsum(self.weight), binning.n, atom=self.low == self.high)
            edges = np.concatenate([self.low[:1], self._score_at(at[1:-1]), self.high[-1:]])
        else:
            edges = binning.edges
            _require_inside(np.array([self.low[0], self.high[-1]]), edges)
            at = places_of(edges, self.low, self.high)
        return replace(_of_bins(edges, self._sums_between(at)), prior=self.prior)

    def _per_weight(self, column: Floats) -> Floats:
        return np.divide(column, self.weight, out=np.full(len(self), np.nan), where=self.weight > 0)

    def _score_at(self, at: Floats) -> Floats:
        """The highest score to the left of each place."""
        cell = np.ceil(at).astype(np.intp) - 1
        part = at - cell
        return np.where(part == 1.0, self.high[cell], self.low[cell] + part * (self.high[cell] - self.low[cell]))

    def _sums_between(self, at: Floats) -> Floats:
        """Sums between neighbouring places: whole cells, less the part of a cut cell before, plus that at the end."""
        whole = np.floor(at).astype(np.intp)
        padded = np.concatenate([self.sums, np.zeros((len(SUMS), 1))], axis=1)
        part = padded[:, whole] * (at - whole)
        totals = np.diff(part, axis=1)
        some = np.flatnonzero(whole[:-1] < whole[1:])
        bounds = np.stack([whole[some], whole[some + 1]], axis=1).ravel()
        totals[:, some] += np.add.reduceat(padded, bounds, axis=1)[:, ::2]
        return totals

    @property
    def count(self) -> Floats:
        """Rows."""
        return self.sums[0]

    @property
    def weight(self) -> Floats:
        """Sum of weights."""
        return self.sums[1]

    @property
    def weight_squares(self) -> Floats:
        """Sum of squared weights."""
        return self.sums[2]

    @property
    def predicted(self) -> Floats:
        """Weighted sum of predictions."""
        return self.sums[3]

    @property
    def observed(self) -> Floats:
        """Weighted sum of outcomes (of labelled positives, where the table has a prior)."""
        return self.sums[4]

    @property
    def predicted_squares(self) -> Floats:
        """Weighted sum of squared predictions; NaN in bins of fixed edges made from unweighted probabilities."""
        return self.sums[5]

    @property
    def product(self) -> Floats:
        """Weighted sum of prediction times outcome."""
        return self.sums[6]

    @property
    def observed_squares(self) -> Floats:
        """Weighted sum of squared outcomes."""
        return self.sums[7]


def merge(tables: list[BinTable]) -> BinTable:
    """The table of all rows behind `tables`, which must be cut alike."""
    first = tables[0]
    key = np.concatenate([table.key for table in tables])
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))

    def gathered(name: str) -> Floats:
        return np.concatenate([getattr(table, name) for table in tables], axis=-1)[..., order]

    return replace(
        first,
        key=key[order][starts],
        low=np.minimum.reduceat(gathered("low"), starts),
        high=np.maximum.reduceat(gathered("high"), starts),
        sums=np.add.reduceat(gathered("sums"), starts, axis=1),
    )


def equal_mass_cuts(running: Floats, n: int, *, atom: NDArray[np.bool_] | None = None) -> Floats:
    """Places in the list of cells that divide the running weight into `n` bins of equal mass.

    A place within a cell that is no atom is a fraction of it; an atom is passed whole. Places that coincide are
    given once, so ties leave fewer bins.
    """
    total = running[-1]
    target = total * np.arange(1, n) / n * (1 - 1e-12)  # running sums of real weights carry rounding
    if total < 2**53 / n and total == np.floor(total):
        target = (int(total) * np.arange(1, n) // n).astype(np.float64)
    target = target[target > 0]
    cell = np.searchsorted(running, target, side="left")
    place = cell + 1.0
    if atom is not None and not atom.all():
        before = np.where(cell > 0, running[cell - 1], 0.0)
        place = np.where(atom[cell], place, cell + (target - before) / (running[cell] - before))
    return np.unique(np.concatenate([[0.0], place, [float(len(running))]]))


def places_of(edges: Floats, low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """Edges as places in the list of cells with these bounds: 3.25 is a quarter into the fourth cell."""
    inner, size = edges[1:-1], len(high)
    whole = np.searchsorted(high, inner, side="right")
    cell = np.minimum(whole, size - 1)
    inside = (whole < size) & (inner > low[cell])
    width = np.where(inside, high[cell] - low[cell], 1.0)
    part = np.where(inside, (inner - low[cell]) / width, 0.0)
    return np.concatenate([[0.0], whole + part, [float(size)]])


def _of_bins(edges: Floats, sums: Floats) -> BinTable:
    return BinTable(Edges(edges), np.arange(sums.shape[1]), edges[:-1], edges[1:], sums)


def equal_mass_table(rows: SortedRows, n: int) -> BinTable:
    """The table of `n` bins of equal mass of rows that are sorted already."""
    pairs = rows.pairs
    mass = pairs.weight if pairs.mass is None else pairs.mass
    if mass is None:
        cuts = equal_mass_rows(rows, n)
    else:
        ends = rows.run_ends
        at = equal_mass_cuts(np.cumsum(mass)[ends - 1], n)[1:-1].astype(np.intp)
        cuts = np.concatenate([[0], ends[at - 1], [len(rows)]])
    edges = np.concatenate([pairs.key[:1], pairs.key[cuts[1:] - 1]]).astype(np.float64)
    return _of_bins(edges, rows.between(cuts))


def equal_mass_rows(rows: SortedRows, n: int) -> NDArray[np.intp]:
    """Cuts of unweighted rows into `n` bins: rank floor(rows * b / n), past any ties; equal cuts are given once."""
    ranks = len(rows) * np.arange(n + 1) // n
    if rows.ends is None and n <= len(rows):
        return ranks
    return np.unique(np.concatenate([[0], rows.after_ties(ranks[ranks > 0])]))


def equal_count_edges(key: NDArray[Any], n: int) -> Floats:
    """Edges of `n` bins of sorted keys: order statistics of rank floor(rows * b / n), equal ones given once."""
    ranks = len(key) * np.arange(1, n) // n
    inner = key[ranks[ranks > 0] - 1]
    inner = np.unique(inner[inner < key[-1]])
    return np.concatenate([key[:1], inner, key[-1:]]).astype(np.float64)


def _on_grid(pairs: Pairs, grid: HybridGrid | LogGrid) -> BinTable:
    index = grid.index(pairs.key)
    first = int(index.min())
    size = int(index.max()) - first + 1
    sums = sums_by_index(pairs, lambda key: grid.index(key) - first, size)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    key = pairs.key.astype(np.float64)
    np.minimum.at(low, index - first, key)
    np.maximum.at(high, index - first, key)
    cell = np.flatnonzero(sums[0])
    return BinTable(grid, cell + first, low[cell], high[cell], sums[:, cell])


def _require_inside(key: NDArray[Any], edges: Floats) -> None:
    low, high = key.min(), key.max()
    if low < edges[0] or high > edges[-1]:
        message = f"The scores lie in [{low:g}, {high:g}], outside the edges [{edges[0]:g}, {edges[-1]:g}]."
        raise ValueError(message)
