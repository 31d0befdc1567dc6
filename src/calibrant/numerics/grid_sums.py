"""Sums of rows per cell of a fixed grid, batch after batch, by compiled loops."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.binned_sums import exact_hybrid_index, hybrid_scale


class HybridSums:
    """Rows, positives, sums of p, p^2 and p y, lowest and highest p per cell of a hybrid grid without other edges.

    Rows that come too near to an edge for the fast logarithm are placed by the definition of the grid, so the cells are
    its own.
    """

    def __init__(self, fast: ModuleType, cells: int, limit: float) -> None:
        self._fast, self._cells, self._limit = fast, cells, limit
        self._table, self._totals = _empty(cells, sums=5), np.zeros((cells + 1) * 8)
        self._unsure = np.empty(CHUNK, np.int64)

    def take(self, y: NDArray[np.int8], p: NDArray[Any]) -> None:
        """Add valid rows."""
        scale = hybrid_scale(self._cells, self._limit)
        for start in range(0, len(p), CHUNK):
            score, label = (np.ascontiguousarray(part[start : start + CHUNK]) for part in (p, y))
            listed = self._fast.hybrid(score, label, self._cells, *scale, self._table, self._totals, self._unsure)
            if listed:
                self._place(score[self._unsure[:listed]], label[self._unsure[:listed]])

    def _place(self, score: NDArray[Any], label: NDArray[np.int8]) -> None:
        cell = exact_hybrid_index(score, self._cells, self._limit)
        v, w = score.astype(np.float64), label.astype(np.float64)
        _add_rows(self._table, self._totals, cell, [np.ones(len(v)), w, v, v * v, v * w], v)

    def columns(self) -> tuple[Floats, ...]:
        """The seven columns, one number per cell."""
        return _columns(self._table, self._totals, self._cells, sums=5)


class LogSums:
    """Rows, sums of u, v, u^2, u v and v^2 (predicted u, observed v), lowest and highest key per cell of its logarithm.

    The cells are floor(per_fold ln key), from `first` on.
    """

    def __init__(self, fast: ModuleType, per_fold: int, first: int, cells: int) -> None:
        self._fast, self._per_fold, self._first, self._cells = fast, per_fold, first, cells
        self._table, self._totals = _empty(cells, sums=6), np.zeros((cells + 1) * 8)
        self._unsure = np.empty(CHUNK, np.int64)

    def take(self, key: NDArray[Any], predicted: NDArray[Any], observed: NDArray[Any]) -> None:
        """Add rows, whose cells must all be there."""
        scale = float(self._per_fold), float(self._first)
        for start in range(0, len(key), CHUNK):
            rows = [np.ascontiguousarray(part[start : start + CHUNK]) for part in (key, predicted, observed)]
            listed = self._fast.log_grid(*rows, *scale, self._table, self._totals, self._unsure)
            if listed:
                self._place(*(part[self._unsure[:listed]].astype(np.float64) for part in rows))

    def _place(self, key: Floats, u: Floats, v: Floats) -> None:
        cell = np.floor(np.log(key) * self._per_fold).astype(np.intp) - self._first
        _add_rows(self._table, self._totals, cell, [np.ones(len(key)), u, v, u * u, u * v, v * v], key)

    def columns(self) -> tuple[Floats, ...]:
        """The eight columns, one number per cell."""
        return _columns(self._table, self._totals, self._cells, sums=6)


def _empty(cells: int, *, sums: int) -> Floats:
    """A table of eight columns per cell, with a cell to spare: sums, then the lowest and the highest key."""
    table = np.zeros((cells + 1, 8))
    table[:, sums], table[:, sums + 1] = np.inf, -np.inf
    return table.ravel()


def _add_rows(table: Floats, totals: Floats, cell: NDArray[np.intp], columns: list[Floats], key: Floats) -> None:
    for j, values in enumerate(columns):
        np.add.at(totals, cell * 8 + j, values)
    np.minimum.at(table, cell * 8 + len(columns), key)
    np.maximum.at(table, cell * 8 + len(columns) + 1, key)


def _columns(table: Floats, totals: Floats, cells: int, *, sums: int) -> tuple[Floats, ...]:
    both, extremes = (table + totals).reshape(-1, 8)[:cells], table.reshape(-1, 8)[:cells]
    return (*both[:, :sums].T, extremes[:, sums], extremes[:, sums + 1])
