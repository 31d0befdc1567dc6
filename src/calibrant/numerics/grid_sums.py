"""Sums of rows per cell of a fixed grid, batch after batch, by compiled loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK, Floats
from calibrant.numerics.binned_sums import exact_hybrid_index, hybrid_scale
from calibrant.numerics.switch import CHUNK_ROWS

#: Columns of a cell: three sums, the lowest key, three sums, the highest key.
COLUMNS, LOW, HIGH = 8, 3, 7
_SUMS = (0, 1, 2, 4, 5, 6)

#: A table of logarithms with more cells would take more memory than it is worth: such keys are left to NumPy.
MOST_CELLS = 1 << 24


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
        self._fast = fast
        self._far = 0.5 - fast.NEAR_EDGE - fast.LOG_ERROR * slope  # from the middle of a cell; beyond, rows are unsure
        self._make(cells)
        self._unsure = np.empty(0, np.int64)

    def _make(self, cells: int) -> None:
        """Make a table without rows."""
        self._cells, self._table, self._totals = cells, _lines(cells + 1), _lines(cells + 1)
        self._table[:, LOW], self._table[:, HIGH] = np.inf, -np.inf

    def _chunks(self, *rows: NDArray[Any]) -> Iterator[list[NDArray[Any]]]:
        """The rows that a compiled loop takes at once, all of which it may list."""
        size = len(rows[0])
        if len(self._unsure) < min(size, CHUNK_ROWS):
            self._unsure = np.empty(min(size, CHUNK_ROWS), np.int64)
        for start in range(0, size, CHUNK_ROWS):
            yield [np.ascontiguousarray(part[start : start + CHUNK_ROWS]) for part in rows]

    def _sums(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """What a compiled loop fills."""
        return self._table.reshape(-1), self._totals.reshape(-1), self._unsure

    def _place_listed(self, rows: list[NDArray[Any]], listed: int) -> None:
        """Add the rows that a compiled loop listed."""
        if listed:
            self._place(*(part[self._unsure[:listed]].astype(np.float64) for part in rows))

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
        for rows in self._chunks(p, y):
            listed = self._fast.hybrid(*rows, self._cells, *self._scale, self._far, *self._sums())
            self._place_listed(rows, listed)

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
    """Sums of rows with predicted u and observed v per cell of the logarithm of a key, floor(per_fold ln key).

    The table grows with the keys, since finding the lowest and the highest of all beforehand would be one more read.
    Its outermost cells hold no rows that a compiled loop placed, so none that the formula places is outside.
    """

    def __init__(self, fast: ModuleType, per_fold: int) -> None:
        self._per_fold, self._first = per_fold, 0
        self._least = self._cell(np.finfo(np.float64).tiny)  # the fast logarithm is of normal numbers
        super().__init__(fast, 2, per_fold)

    def take(self, key: NDArray[Any], predicted: NDArray[Any], observed: NDArray[Any]) -> bool:
        """Add rows; False, and the sums are of no use, if their keys are not positive normal numbers or too far apart.

        That is, if there would be more than `MOST_CELLS` cells.
        """
        for rows in self._chunks(key, predicted, observed):
            while len(rows[0]):
                scale = self._cells, float(self._per_fold), float(self._first), self._far
                listed, done = self._fast.log_grid(*rows, *scale, *self._sums())
                self._place_listed(rows, listed)
                rows = [part[done:] for part in rows]
                if len(rows[0]) and not self._grow(rows[0][:CHUNK]):
                    return False
        return True

    def _cell(self, key: Any) -> Any:
        return np.floor(np.log(key) * self._per_fold)

    def _grow(self, key: NDArray[Any]) -> bool:
        """Make room for keys, and for others beyond them; False if there cannot be enough."""
        lowest, highest = key.min(), key.max()
        if not (np.finfo(np.float64).tiny <= lowest and highest < np.inf):
            return False
        first, last = self._cell(lowest) - 2, self._cell(highest) + 2
        if self._cells > 2:
            first, last = min(first, self._first), max(last, self._first + self._cells - 1)
        if first < self._least or last - first >= MOST_CELLS:
            return False
        more = (last - first) // 8
        first, last = int(max(first - more, self._least)), int(last + more)
        old, shift = (self._table[:-1], self._totals[:-1]), self._first - first
        self._make(last - first + 1)
        if len(old[0]) > 2:
            self._table[shift : shift + len(old[0])], self._totals[shift : shift + len(old[1])] = old
        self._first = first
        return True

    def _place(self, *rows: Floats) -> None:
        key, u, v = rows
        cell = self._cell(key).astype(np.intp) - self._first
        self._add_placed(cell, key, dict(zip(_SUMS, (np.ones(len(key)), u, v, u * u, u * v, v * v), strict=True)))

    def cells(self) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
        """The cells that hold rows, their lowest and highest key, and the columns of `SUMS`."""
        some, (count, u, v, uu, uv, vv), low, high = self._columns()
        return some + self._first, low, high, np.stack([count, count, count, u, v, uu, uv, vv])
