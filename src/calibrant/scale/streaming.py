"""A table that grows row by row, for a service that never stops."""

from __future__ import annotations

import threading
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Binary
from calibrant.numerics.rows import SUMS
from calibrant.scale.batch_sums import BatchSums
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable, merge
from calibrant.table.task import Labelled


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
    <ECE (L1) 0.2, n=3, EqualWidth(n_bins=2, low=0.0, high=1.0)>
    """

    def __init__(self, *, grid: HybridGrid = HybridGrid()) -> None:
        self.grid = grid
        self._lock = threading.Lock()
        self._batches: dict[np.dtype[Any], BatchSums] = {}
        self._others: BinTable | None = None

    def update(self, y_true: ArrayLike, y_prob: ArrayLike, *, weight: ArrayLike | None = None) -> None:
        """Add rows; numbers or arrays. They are checked before any of them is added."""
        if np.ndim(y_prob) == 0:
            y_true, y_prob = np.atleast_1d(y_true), np.atleast_1d(y_prob)
        if weight is not None:
            self.add(BinTable.of(Binary(y_true, y_prob, weight=np.atleast_1d(weight)), self.grid))
            return
        y_prob = validation.probabilities("y_prob", y_prob)
        y_true = validation.binary_labels("y_true", y_true, length=len(y_prob))
        with self._lock:
            sums = self._batches.get(y_prob.dtype)
            if sums is None:
                sums = self._batches[y_prob.dtype] = BatchSums(self.grid, y_prob.dtype)
            sums.take(y_true, y_prob)

    def add(self, table: BinTable) -> None:
        """Add the rows behind a table that was cut alike."""
        with self._lock:
            self._others = merge([self._empty() if self._others is None else self._others, table])

    def __add__(self, other: StreamingTable) -> BinTable:
        if not isinstance(other, StreamingTable):
            return NotImplemented
        return self.table() + other.table()

    def table(self) -> BinTable:
        """The table of all rows so far."""
        with self._lock:
            parts = [sums.table() for sums in self._batches.values()]
            if self._others is not None:
                parts.append(self._others)
        return parts[0] if len(parts) == 1 else merge([self._empty(), *parts])

    def checkpoint(self, path: str | PathLike[str]) -> None:
        """Save the table; a kill at any moment leaves the old file or the new one, never a part."""
        self.table().save(path)

    @classmethod
    def restore(cls, path: str | PathLike[str]) -> StreamingTable:
        """Go on from a checkpoint."""
        saved = BinTable.load(path)
        if not isinstance(saved.cut, HybridGrid) or saved.task != Labelled():
            message = (
                f"A stream can only be restored from a table of probabilities on a HybridGrid, not from {saved!r}."
            )
            raise ValueError(message)
        stream = cls(grid=saved.cut)
        stream.add(saved)
        return stream

    def __repr__(self) -> str:
        return f"<StreamingTable, n={self.table().n:_}, {self.grid!r}>"

    def _empty(self) -> BinTable:
        return BinTable(self.grid, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((len(SUMS), 0)))
