"""Edges as places in a sorted list of cells: 3.25 is a quarter into the fourth cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.sorting import SortedRows


@dataclass(frozen=True, eq=False)
class RunningWeight:
    """The weight of sorted cells from the left, and where it divides into bins of equal mass.

    Edge b of n goes behind the cell where the running weight first reaches b / n of the total; for rows that all have
    the same weight, behind the row of rank floor(rows * b / n), past its ties. Neither depends on the unit.

    Attributes
    ----------
    running : array
        Weight up to and with each cell; the number of rows where all have the same weight.
    counts : bool
        Whether these are numbers of rows.
    atom : array of bool
        Whether a cell is a single score, which no edge divides.
    """

    running: Floats
    counts: bool
    atom: NDArray[np.bool_]

    @classmethod
    def of(
        cls, weight: Floats, squares: Floats | None = None, *, atom: NDArray[np.bool_] | None = None
    ) -> RunningWeight:
        """From the weights of the cells and their sums of squares; without these, whole weights are counts of rows."""
        row = 1.0 if squares is None else float(squares.sum()) / float(weight.sum())
        count = np.rint(weight / row)
        counts = np.allclose(count * row, weight, rtol=1e-9, atol=0)
        if squares is not None:
            counts = counts and np.allclose(row * weight, squares, rtol=1e-9, atol=0)
        return cls(
            np.cumsum(count if counts else weight), counts, np.ones(len(weight), np.bool_) if atom is None else atom
        )

    def cuts(self, n: int) -> Floats:
        """Places in the list of cells that divide the weight into `n` bins of equal mass.

        A place within a cell that is no atom is a fraction of it. Places that coincide are given once, so ties leave
        fewer bins.
        """
        running, total = self.running, self.running[-1]
        target = total * np.arange(1, n) / n * (1 - 1e-12)  # running sums of real weights carry rounding
        if self.counts and total < 2**53 / n:
            target = (int(total) * np.arange(1, n) // n).astype(np.float64)
        target = target[target > 0]
        cell = np.searchsorted(running, target, side="left")
        place = cell + 1.0
        if not self.atom.all():
            before = np.where(cell > 0, running[cell - 1], 0.0)
            place = np.where(self.atom[cell], place, cell + (target - before) / (running[cell] - before))
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


def scores_at(places: Floats, low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """The highest score to the left of each place."""
    cell = np.ceil(places).astype(np.intp) - 1
    part = places - cell
    return np.where(part == 1.0, high[cell], low[cell] + part * (high[cell] - low[cell]))


def sums_between(sums: Floats, places: Floats) -> Floats:
    """Sums between neighbouring places: whole cells, less the part of a cut cell before, plus that at the end."""
    whole = np.floor(places).astype(np.intp)
    padded = np.concatenate([sums, np.zeros((len(sums), 1))], axis=1)
    part = padded[:, whole] * (places - whole)
    totals = np.diff(part, axis=1)
    some = np.flatnonzero(whole[:-1] < whole[1:])
    bounds = np.stack([whole[some], whole[some + 1]], axis=1).ravel()
    totals[:, some] += np.add.reduceat(padded, bounds, axis=1)[:, ::2]
    return totals


def equal_count_edges(key: NDArray[Any], n: int) -> Floats:
    """Edges of `n` bins of sorted keys: order statistics of rank floor(rows * b / n), equal ones given once."""
    ranks = len(key) * np.arange(1, n) // n
    inner = key[ranks[ranks > 0] - 1]
    inner = np.unique(inner[inner < key[-1]])
    return np.concatenate([key[:1], inner, key[-1:]]).astype(np.float64)


def equal_mass_rows(rows: SortedRows, n: int) -> NDArray[np.intp]:
    """Cuts of unweighted rows into `n` bins: rank floor(rows * b / n), past any ties; equal cuts are given once."""
    ranks = len(rows) * np.arange(n + 1) // n
    if rows.ends is None and n <= len(rows):
        return ranks
    return np.unique(np.concatenate([[0], rows.after_ties(ranks[ranks > 0])]))


def require_inside(key: NDArray[Any], edges: Floats) -> None:
    """Raise unless every key lies between the first and the last edge."""
    low, high = key.min(), key.max()
    if low < edges[0] or high > edges[-1]:
        message = f"The scores lie in [{low:g}, {high:g}], outside the edges [{edges[0]:g}, {edges[-1]:g}]."
        raise ValueError(message)
