"""Sums of rows per cell of a fixed grid, batch after batch, by compiled loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.binned_sums import exact_hybrid_index, hybrid_scale

#: Columns of a cell: three sums, the lowest key, three sums, the highest key.
COLUMNS, LOW, HIGH = 8, 3, 7
_SUMS = (0, 1, 2, 4, 5, 6)


def _lines(cells: int) -> Floats:
    """A table of zeros, each of whose cells is one line of the cache and not parts of two."""
    room = np.zeros((cells + 1) * COLUMNS)
    first = -room.ctypes.data % (8 * COLUMNS) // 8
    return room[first : first + cells * COLUMNS].reshape(cells, COLUMNS)


class _GridSums(ABC):
    """The table of a grid: running sums, their totals, and a cell to spare.

    `slope` is the number of cells per unit of the logarithm.
    """

    def __init__(self, fast: ModuleType, cells: int, slope: float) -> None:
        self._fast, self._cells = fast, cells
        self._far = 0.5 - fast.NEAR_EDGE - fast.LOG_ERROR * slope  # from the middle of a cell; beyond, rows are unsure
        self._table, self._totals = _lines(cells + 1), _lines(cells + 1)
        self._table[:, LOW], self._table[:, HIGH] = np.inf, -np.inf
        self._unsure = np.empty(0, np.int64)

    def _add(self, loop: Any, rows: tuple[NDArray[Any], ...], *scale: float) -> None:
        """Add rows by a compiled loop, chunk after chunk, and those that it lists by `_place`."""
        size = len(rows[0])
        if len(self._unsure) < min(size, CHUNK):
            self._unsure = np.empty(min(size, CHUNK), np.int64)
        table, totals = self._table.reshape(-1), self._totals.reshape(-1)
        for start in range(0, size, CHUNK):
            chunk = [np.ascontiguousarray(part[start : start + CHUNK]) for part in rows]
            listed = loop(*chunk, self._cells, *scale, self._far, table, totals, self._unsure)
            if listed:
                self._place(*(part[self._unsure[:listed]].astype(np.float64) for part in chunk))

    @abstractmethod
    def _place(self, *rows: Floats) -> None:
        """Add rows to the cells of the formula."""

    def _add_placed(self, cell: NDArray[np.intp], key: Floats, columns: dict[int, Floats]) -> None:
        for j, values in columns.items():
            np.add.at(self._totals[:, j], cell, values)
        np.minimum.at(self._table[:, LOW], cell, key)
        np.maximum.at(self._table[:, HIGH], cell, key)

    def _columns(self) -> tuple[NDArray[np.intp], list[Floats], Floats, Floats]:
        """The cells that hold rows, their six sums, lowest and highest key."""
        both = self._table[:-1] + self._totals[:-1]
        some = np.flatnonzero((both[:, 0] > 0) | (both[:, 4] > 0))
        both = both[some]
        return some, [both[:, j] for j in _SUMS], both[:, LOW], both[:, HIGH]


class HybridSums(_GridSums):
    """Sums of binary rows per cell of a hybrid grid without other edges."""

    def __init__(self, fast: ModuleType, cells: int, limit: float) -> None:
        self._limit, self._scale = limit, hybrid_scale(cells, limit)
        super().__init__(fast, cells, self._scale[1])

    def take(self, y: NDArray[Any], p: NDArray[Any]) -> None:
        """Add valid rows."""
        self._add(self._fast.hybrid, (p, y), *self._scale)

    def _place(self, *rows: Floats) -> None:
        p, y = rows
        columns = {j: values * y for j, values in enumerate((np.ones(len(p)), p, p * p), start=4)}
        columns |= {j: values * (1 - y) for j, values in enumerate((np.ones(len(p)), p, p * p))}
        self._add_placed(exact_hybrid_index(p, self._cells, self._limit), p, columns)

    def cells(self) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
        """The cells that hold rows, their lowest and highest score, and the columns of `SUMS`."""
        some, (zeros, p0, q0, ones, p1, q1), low, high = self._columns()
        count = zeros + ones
        return some, low, high, np.stack([count, count, count, p0 + p1, ones, q0 + q1, p1, ones])


class LogSums(_GridSums):
    """Sums of rows with predicted u and observed v per cell of the logarithm of a key.

    The cells are floor(per_fold ln key), from `first` on.
    """

    def __init__(self, fast: ModuleType, per_fold: int, first: int, cells: int) -> None:
        self._per_fold, self._first = per_fold, first
        super().__init__(fast, cells, per_fold)

    def take(self, key: NDArray[Any], predicted: NDArray[Any], observed: NDArray[Any]) -> None:
        """Add rows, whose cells must all be there."""
        self._add(self._fast.log_grid, (key, predicted, observed), float(self._per_fold), float(self._first))

    def _place(self, *rows: Floats) -> None:
        key, u, v = rows
        cell = np.floor(np.log(key) * self._per_fold).astype(np.intp) - self._first
        self._add_placed(cell, key, dict(zip(_SUMS, (np.ones(len(key)), u, v, u * u, u * v, v * v), strict=True)))

    def cells(self) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
        """The cells that hold rows, counted from `first`, their lowest and highest key, and the columns of `SUMS`."""
        some, (count, u, v, uu, uv, vv), low, high = self._columns()
        return some, low, high, np.stack([count, count, count, u, v, uu, uv, vv])
