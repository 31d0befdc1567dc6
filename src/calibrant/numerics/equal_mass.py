"""Equal-mass bins of sorted cells. An edge is a fractional position: 3.25 is a quarter into the fourth cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.sorting import SortedRows

Rank = Literal["floor", "ceil"]
"""How the rank of an edge that falls between two rows is rounded."""


def mass_ranks(rows: int, at: NDArray[np.intp], n: int, rank: Rank = "floor") -> NDArray[np.intp]:
    """Ranks of the edges `at` of `n` bins of equal mass: rows * at / n, rounded in whole numbers."""
    return rows * at // n if rank == "floor" else -(-rows * at // n)


@dataclass(frozen=True, eq=False)
class RunningWeight:
    """The cumulative weight of sorted cells, and where to cut it into bins of equal mass.

    Edge b of n follows the cell at which the cumulative weight first reaches b / n of the total; if all rows have the
    same weight, it follows the row of rank floor(rows * b / n) and its ties. Neither depends on the unit of weight.

    Attributes
    ----------
    running : array
        Weight up to and including each cell; the number of rows if all have the same weight.
    counts : bool
        Whether `running` holds numbers of rows.
    atom : array of bool
        Whether a cell is a single score, which is never split.
    """

    running: Floats
    counts: bool
    atom: NDArray[np.bool_]

    @classmethod
    def of(
        cls, weight: Floats, squares: Floats | None = None, *, atom: NDArray[np.bool_] | None = None
    ) -> RunningWeight:
        """From weights of cells and their sums of squares; without squares, integer weights are counts of rows."""
        row = 1.0 if squares is None else float(squares.sum()) / float(weight.sum())
        count = np.rint(weight / row)
        counts = np.allclose(count * row, weight, rtol=1e-9, atol=0)
        if squares is not None:
            counts = counts and np.allclose(row * weight, squares, rtol=1e-9, atol=0)
        return cls(
            np.cumsum(count if counts else weight), counts, np.ones(len(weight), np.bool_) if atom is None else atom
        )

    def cuts(self, n: int, rank: Rank = "floor") -> Floats:
        """Positions among the cells that divide the weight into `n` bins of equal mass.

        A cell that is not an atom may be cut at a fraction of it. Duplicate positions are dropped, so ties leave fewer
        bins.
        """
        running, total = self.running, self.running[-1]
        target = total * np.arange(1, n) / n * (1 - 1e-12)  # running sums of real weights carry rounding
        if self.counts and total < 2**53 / n:
            target = mass_ranks(int(total), np.arange(1, n), n, rank).astype(np.float64)
        target = target[target > 0]
        cell = np.searchsorted(running, target, side="left")
        position = cell + 1.0
        if not self.atom.all():
            before = np.where(cell > 0, running[cell - 1], 0.0)
            position = np.where(self.atom[cell], position, cell + (target - before) / (running[cell] - before))
        return np.unique(np.concatenate([[0.0], position, [float(len(running))]]))


def positions_of(edges: Floats, low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """Edges as positions among the cells with these bounds: 3.25 is a quarter of the way into the fourth cell."""
    inner, size = edges[1:-1], len(high)
    whole = np.searchsorted(high, inner, side="right")
    cell = np.minimum(whole, size - 1)
    inside = (whole < size) & (inner > low[cell])
    width = np.where(inside, high[cell] - low[cell], 1.0)
    part = np.where(inside, (inner - low[cell]) / width, 0.0)
    return np.concatenate([[0.0], whole + part, [float(size)]])


def scores_at(positions: Floats, low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """The highest score to the left of each position."""
    cell = np.ceil(positions).astype(np.intp) - 1
    part = positions - cell
    return np.where(part == 1.0, high[cell], low[cell] + part * (high[cell] - low[cell]))


def sums_between(sums: Floats, positions: Floats) -> Floats:
    """Sums between consecutive positions; a cut cell is divided in proportion."""
    whole = np.floor(positions).astype(np.intp)
    padded = np.concatenate([sums, np.zeros((len(sums), 1))], axis=1)
    part = padded[:, whole] * (positions - whole)
    totals = np.diff(part, axis=1)
    some = np.flatnonzero(whole[:-1] < whole[1:])
    bounds = np.stack([whole[some], whole[some + 1]], axis=1).ravel()
    totals[:, some] += np.add.reduceat(padded, bounds, axis=1)[:, ::2]
    return totals


def equal_count_edges(key: NDArray[Any], n: int, rank: Rank = "floor") -> Floats:
    """Edges of `n` bins of sorted keys: order statistics of rank rows * b / n, rounded, without duplicates."""
    ranks = mass_ranks(len(key), np.arange(1, n), n, rank)
    inner = key[ranks[ranks > 0] - 1]
    inner = np.unique(inner[inner < key[-1]])
    return np.concatenate([key[:1], inner, key[-1:]]).astype(np.float64)


def equal_mass_rows(rows: SortedRows, n: int, rank: Rank = "floor") -> NDArray[np.intp]:
    """Cuts of unweighted rows into `n` bins: rank rows * b / n, rounded, past any ties, without duplicates."""
    ranks = mass_ranks(len(rows), np.arange(n + 1), n, rank)
    if not rows.tied and n <= len(rows):
        return ranks
    return np.unique(np.concatenate([[0], rows.after_ties(ranks[ranks > 0])]))


def require_inside(key: NDArray[Any], edges: Floats) -> None:
    """Raise unless every key lies between the first and the last edge."""
    low, high = key.min(), key.max()
    if low < edges[0] or high > edges[-1]:
        message = f"The scores lie in [{low:g}, {high:g}], outside the edges [{edges[0]:g}, {edges[-1]:g}]."
        raise ValueError(message)
