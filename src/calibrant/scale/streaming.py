"""A table that grows row by row, for a service that never stops."""

from __future__ import annotations

import threading
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.binning import HybridGrid
from calibrant.bintable import BinTable, merge
from calibrant.kernels import CHUNK, SMALL_CHUNK, SUMS
from calibrant.predictions import Binary


class StreamingTable:
    """The fine table of all predictions seen so far, in memory that does not grow with their number.

    Any number of threads may `update` one table, or each its own, to be added with `+`.

    Parameters
    ----------
    grid : HybridGrid
        The cells. Tables can be added, and compared with those of `bin_table`, where their grids are equal.

    Examples
    --------
    >>> import calibrant as cal
    >>> stream = StreamingTable()
    >>> stream.update([0, 1], [0.2, 0.7])
    >>> stream.update(1, 0.9)
    >>> cal.ece(stream.table(), bins=cal.EqualWidth(2))
    <ECE 0.2, n=3, EqualWidth(n=2, low=0.0, high=1.0)>
    """

    def __init__(self, *, grid: HybridGrid = HybridGrid()) -> None:
        size = grid.cells * (grid.equal_width or 1)
        self.grid = grid
        self._lock = threading.Lock()
        self._waiting: dict[Any, _Buffer] = {}
        self._counts = np.zeros(2 * size)  # by cell and outcome
        self._predicted = np.zeros(2 * size)
        self._squares = np.zeros(size)
        self._low, self._high = np.full(size, np.inf), np.full(size, -np.inf)
        self._others: BinTable | None = None

    def update(self, y_true: ArrayLike, y_prob: ArrayLike, *, weight: ArrayLike | None = None) -> None:
        """Add rows; numbers or arrays. They are checked before any of them is added."""
        data = Binary(np.atleast_1d(y_true), np.atleast_1d(y_prob), weight=weight)
        if data.weight is not None:
            self.add(BinTable.of(data, self.grid))
            return
        with self._lock:
            for start in range(0, len(data), CHUNK):
                self._take(data.y_true[start : start + CHUNK], data.y_prob[start : start + CHUNK])

    def add(self, table: BinTable) -> None:
        """Add the rows behind a table that was cut alike."""
        with self._lock:
            empty = BinTable(self.grid, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((len(SUMS), 0)))
            self._others = merge([empty if self._others is None else self._others, table])

    def __add__(self, other: StreamingTable) -> BinTable:
        if not isinstance(other, StreamingTable):
            return NotImplemented
        return self.table() + other.table()

    def table(self) -> BinTable:
        """The table of all rows so far."""
        with self._lock:
            for buffer in self._waiting.values():
                self._absorb(*buffer.given())
            negatives, positives = self._counts.reshape(-1, 2).T
            count = negatives + positives
            cell = np.flatnonzero(count)
            predicted, product = self._predicted.reshape(-1, 2).sum(axis=1), self._predicted[1::2]
            sums = np.stack([count, count, count, predicted, positives, self._squares, product, positives])
            own = BinTable(self.grid, cell, self._low[cell], self._high[cell], sums[:, cell])
            return own if self._others is None else merge([own, self._others])

    def checkpoint(self, path: str | PathLike[str]) -> None:
        """Save the table; a kill at any moment leaves the old file or the new one, never a part."""
        self.table().save(path)

    @classmethod
    def restore(cls, path: str | PathLike[str]) -> StreamingTable:
        """Go on from a checkpoint."""
        saved = BinTable.load(path)
        if not isinstance(saved.cut, HybridGrid) or saved.prior is not None:
            message = f"A stream goes on from a table of probabilities on a HybridGrid, not from {saved!r}."
            raise ValueError(message)
        stream = cls(grid=saved.cut)
        stream.add(saved)
        return stream

    def __repr__(self) -> str:
        return f"<StreamingTable, n={self.table().n:_}, {self.grid!r}>"

    def _take(self, y_true: NDArray[np.int8], y_prob: NDArray[Any]) -> None:
        """Add at most a chunk of rows, by way of the buffer where they are few; the lock is held."""
        if len(y_prob) == CHUNK:
            self._absorb(y_true, y_prob)
            return
        if y_prob.dtype not in self._waiting:
            self._waiting[y_prob.dtype] = _Buffer(y_prob.dtype)
        buffer = self._waiting[y_prob.dtype]
        if not buffer.take(y_true, y_prob):
            self._absorb(*buffer.given())
            buffer.take(y_true, y_prob)

    def _absorb(self, y_true: NDArray[np.int8], y_prob: NDArray[Any]) -> None:
        """Add rows to the sums; the lock is held."""
        for start in range(0, len(y_prob), SMALL_CHUNK):
            self._add_rows(y_true[start : start + SMALL_CHUNK], y_prob[start : start + SMALL_CHUNK])

    def _add_rows(self, y_true: NDArray[np.int8], y_prob: NDArray[Any]) -> None:
        """Write in place: a bincount per chunk would touch all cells each time."""
        index, p = self.grid.index(y_prob), y_prob.astype(np.float64, copy=False)
        np.add.at(self._squares, index, p * p)
        below, above = p < self._low[index], p > self._high[index]
        np.minimum.at(self._low, index[below], p[below])
        np.maximum.at(self._high, index[above], p[above])
        index += index
        index += y_true
        np.add.at(self._counts, index, 1.0)
        np.add.at(self._predicted, index, p)


class _Buffer:
    """Rows that wait until there are enough of them to be worth a pass."""

    def __init__(self, dtype: Any) -> None:
        self.y_true, self.y_prob = np.empty(CHUNK, np.int8), np.empty(CHUNK, dtype)
        self.filled = 0

    def take(self, y_true: NDArray[np.int8], y_prob: NDArray[Any]) -> bool:
        """Whether the rows had room."""
        end = self.filled + len(y_prob)
        if end > CHUNK:
            return False
        self.y_true[self.filled : end], self.y_prob[self.filled : end] = y_true, y_prob
        self.filled = end
        return True

    def given(self) -> tuple[NDArray[np.int8], NDArray[Any]]:
        """The rows, which the buffer then forgets."""
        end, self.filled = self.filled, 0
        return self.y_true[:end], self.y_prob[:end]
