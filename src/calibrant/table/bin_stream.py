"""Sums in bins of equal width of rows that come in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import CHUNK
from calibrant.numerics.binned_sums import binary_columns, equal_width_sums, plain_arrays, unit_bins
from calibrant.numerics.rows import SUMS, Rows
from calibrant.numerics.switch import compiled
from calibrant.table.batch_sums import GridCells
from calibrant.table.binning import EqualWidth

#: Batches after which their sums are moved to the totals, so that no running sum has many terms.
BATCHES = 1024


class BinStream:
    """Sums of binary rows in bins of equal width between 0 and 1.

    With compiled loops each batch is summed at once, by the pass that checks it. Without them rows wait until there are
    enough of them, since every call of NumPy costs as much as many rows.

    >>> stream = BinStream(EqualWidth(2))
    >>> stream.take(np.array([0, 1], np.int8), np.array([0.2, 0.7]))
    >>> stream.cells().sums[0]
    array([1., 1.])
    """

    def __init__(self, bins: EqualWidth) -> None:
        size = unit_bins(bins.edges)
        if size is None:
            message = f"A stream needs at most 1023 bins between 0 and 1, got {bins!r}."
            raise ValueError(message)
        self._edges = bins.edges
        self._total, self._batches = np.zeros((len(SUMS), size)), 0
        self._total[SUMS.index("predicted_squares")] = np.nan  # of no use in bins
        fast = compiled(0, saves=0.0)
        self._loop = None if fast is None else fast.EqualWidthSums(size, labelled=True)
        room = CHUNK if fast is None else 0
        self._outcome, self._score, self._waiting = np.empty(room, np.int8), np.empty(room), 0

    def take_unchecked(self, y: Any, p: Any) -> bool:
        """Add rows that nobody has checked; False, and no row is added, where it takes a closer look at them."""
        if self._loop is None or not plain_arrays(y, p) or not self._loop.add(p, y):
            return False
        self._batches += 1
        if self._batches == BATCHES:
            self._settle()
        return True

    def take(self, y: NDArray[np.int8], p: NDArray[Any]) -> None:
        """Add valid rows."""
        if self.take_unchecked(np.ascontiguousarray(y), np.ascontiguousarray(p)):
            return
        if len(p) > len(self._score) - self._waiting:
            self._settle()
        if len(p) > len(self._score):  # there is no room, or it would be filled at once
            self._add(y, p)
            return
        place = slice(self._waiting, self._waiting + len(p))
        self._outcome[place], self._score[place] = y, p
        self._waiting = place.stop

    def cells(self) -> GridCells:
        """The sums of all bins so far."""
        self._settle()
        return GridCells(np.arange(self._total.shape[1]), self._edges[:-1], self._edges[1:], self._total.copy())

    def _add(self, y: NDArray[np.int8], p: NDArray[Any]) -> None:
        self._total += equal_width_sums(Rows(p, p, y), self._edges, squares=False)

    def _settle(self) -> None:
        """Move what waits to the totals."""
        if self._waiting:
            self._add(self._outcome[: self._waiting], self._score[: self._waiting])
            self._waiting = 0
        if self._loop is not None and self._batches:
            self._total += binary_columns(*self._loop.taken())
            self._batches = 0
