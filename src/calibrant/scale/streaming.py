"""A table that grows batch by batch, for services and training loops; batches may have any shape and device."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant._atomic_write import folder_locked
from calibrant.data import validation
from calibrant.data.predictions import Binary, Multiclass
from calibrant.data.validation import as_array, fail
from calibrant.numerics.binned_sums import unit_bins
from calibrant.numerics.rows import SUMS
from calibrant.table.batch_sums import BatchSums, BinStream, CompiledSums, grid_sums
from calibrant.table.binning import Edges, EqualWidth, HybridGrid
from calibrant.table.bintable import BinTable, merge
from calibrant.table.task import Labelled

FileState = tuple[int, int, int, int]

Sums = BinStream | BatchSums | CompiledSums


class StreamingTable:
    """The fine table of all predictions seen so far, in memory that does not grow with their number.

    Any number of threads may `update` one table, or each its own, to be added with `+`. Processes have a table each:
    pickled, it comes to another process as a copy of the rows so far, to be sent back and added. A table that came to a
    process by `fork` is refused there, since what is added to it would never reach the process that made it.

    Two processes cannot overwrite each other's `checkpoint`: a file that changed since this table read or wrote it is
    refused. Give each its own file and add what they hold, ``BinTable.load(a) + BinTable.load(b)``.

    Parameters
    ----------
    grid : HybridGrid or EqualWidth
        The cells. Tables can be added, and compared with those of `bin_table`, where their grids are equal. With
        ``EqualWidth(15)`` only the sums of these bins are kept, several times faster than a fine table, for measures
        that need no more, such as `ece` in these bins.

    Examples
    --------
    >>> import calibrant as cal
    >>> stream = StreamingTable()
    >>> stream.update([0, 1], [0.2, 0.7])
    >>> stream.update(1, 0.9)
    >>> cal.ece(stream.table(), bins=cal.EqualWidth(2))
    <ECE (L1) 0.2, n=3, EqualWidth(n_bins=2, low=0.0, high=1.0)>
    """

    def __init__(self, *, grid: HybridGrid | EqualWidth = HybridGrid()) -> None:
        self.grid = grid
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._files: dict[str, FileState] = {}
        self._batches: dict[np.dtype[Any] | None, Sums] = {}
        if isinstance(grid, EqualWidth):
            self._batches[None] = BinStream(grid)  # of all precisions
        self._others: BinTable | None = None

    def update(self, y_true: ArrayLike, y_prob: ArrayLike, *, weight: ArrayLike | None = None) -> None:
        """Add rows; numbers or arrays. They are checked before any of them is added."""
        if weight is None and type(y_prob) is np.ndarray and self._taken(y_true, y_prob):
            return
        y_true, y_prob = _column(y_true), _column(y_prob)
        if weight is not None:
            self.add(BinTable.of(Binary(y_true, y_prob, weight=_column(weight)), self.grid))
            return
        validation.require_aligned(y_true=y_true, y_prob=y_prob)
        y_prob = validation.probabilities("y_prob", y_prob)
        y_true = validation.binary_labels("y_true", y_true, length=len(y_prob))
        with self._alone():
            if isinstance(self.grid, HybridGrid) and y_prob.dtype not in self._batches:
                self._batches[y_prob.dtype] = grid_sums(self.grid, y_prob.dtype)
            self._batches[None if isinstance(self.grid, EqualWidth) else y_prob.dtype].take(y_true, y_prob)

    def add(self, table: BinTable) -> None:
        """Add the rows behind a table that was cut alike."""
        if table.weight_unit:
            fail(
                "weight must lie between 1e-77 and 1e77, at least the largest of a batch, or weights of later batches "
                "could not be compared with it: divide all weights by the same number."
            )
        with self._alone():
            self._others = merge([self._empty() if self._others is None else self._others, table])

    def __add__(self, other: StreamingTable) -> BinTable:
        if not isinstance(other, StreamingTable):
            return NotImplemented
        return self.table() + other.table()

    def table(self) -> BinTable:
        """The table of all rows so far."""
        with self._alone():
            parts = [BinTable(self._cut, *sums.cells()) for sums in self._batches.values()]
            if self._others is not None:
                parts.append(self._others)
        return parts[0] if len(parts) == 1 else merge([self._empty(), *parts])

    def checkpoint(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Save the table; a kill at any moment leaves the old file or the new one, never a part.

        A file that is there already must be the last checkpoint or the file that was restored, unless `overwrite`:
        otherwise it holds rows of another table, which would be lost.
        """
        place, table = os.path.realpath(path), self.table()
        with folder_locked(place):
            found = _state(place)
            if found is not None and found != self._files.get(place) and not overwrite:
                remedy = "write to another file and add the tables, or restore it first, or pass overwrite=True"
                why = "was written by another table or process, whose rows would be lost"
                fail(f"{os.fspath(path)!r} {why}: {remedy}.", FileExistsError)
            table.save(place)
            written = _state(place)
        if written is not None:
            self._files[place] = written

    @classmethod
    def restore(cls, path: str | PathLike[str]) -> StreamingTable:
        """Go on from a checkpoint."""
        place = os.path.realpath(path)
        with folder_locked(place):
            state, saved = _state(place), BinTable.load(path)
        grid: HybridGrid | EqualWidth | None = saved.cut if isinstance(saved.cut, HybridGrid) else None
        if isinstance(saved.cut, Edges) and (bins := unit_bins(saved.cut.edges)) is not None:
            grid = EqualWidth(bins)
        if grid is None or saved.task != Labelled():
            needed = "a table of probabilities on a HybridGrid or in bins of equal width"
            fail(f"A stream can only be restored from {needed}, not from {saved!r}.", ValueError)
        stream = cls(grid=grid)
        stream.add(saved)
        if state is not None:
            stream._files[place] = state
        return stream

    def __getstate__(self) -> dict[str, Any]:
        """The rows so far, as one table."""
        return {"grid": self.grid, "rows": self.table(), "files": dict(self._files)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        StreamingTable.__init__(self, grid=state["grid"])
        self.add(state["rows"])
        self._files = state["files"]

    def __repr__(self) -> str:
        return f"<StreamingTable, n={self.table().n:_}, {self.grid!r}>"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out. After a fork the lock may be held by a thread that does not exist here."""
        if os.getpid() != self._process:
            remedy = "Make one table per process, send it back (it can be pickled) or save it, and add the tables."
            why = "what is added here would never reach it"
            fail(f"This StreamingTable belongs to another process: {why}. {remedy}", RuntimeError)
        with self._lock:
            yield

    def _taken(self, y_true: Any, y_prob: NDArray[Any]) -> bool:
        """Whether the rows were added by compiled loops, which also checked them."""
        sums = self._batches.get(None if isinstance(self.grid, EqualWidth) else y_prob.dtype)
        if sums is None or isinstance(sums, BatchSums):
            return False
        with self._alone():
            return sums.take_unchecked(y_true, y_prob)

    @property
    def _cut(self) -> HybridGrid | Edges:
        return self.grid if isinstance(self.grid, HybridGrid) else Edges(self.grid.edges)

    def _empty(self) -> BinTable:
        return BinTable(self._cut, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((len(SUMS), 0)))


def _column(values: Any) -> Any:
    """One number as a column of one row; everything else as it is, with its index if it has one."""
    return np.atleast_1d(values) if np.isscalar(values) or getattr(values, "ndim", None) == 0 else values


def _state(path: str) -> FileState | None:
    """What changes whenever a file is replaced; None where there is no file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def batch_rows(preds: Any, target: Any, ignore_index: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Outcomes and probabilities of a batch; for multiclass data, those of the top label."""
    validation.require_aligned(target=target, preds=preds)
    p, y = (  # from whatever device
        as_array(name, values.detach().cpu() if hasattr(values, "detach") else values)
        for name, values in (("preds", preds), ("target", target))
    )
    if p.ndim == y.ndim + 1 and p.shape[:1] + p.shape[2:] == y.shape:
        p = np.moveaxis(p, 1, -1).reshape(-1, p.shape[1])
    elif p.shape == y.shape:
        p = p.reshape(-1)
    else:
        fail(f"preds must have the shape of target, or one more axis (classes); got {p.shape} and {y.shape}.")
    y = y.reshape(-1)
    if ignore_index is not None:
        keep = y != ignore_index
        p, y = p[keep], y[keep]
    if p.ndim == 2 and len(y):
        top = Multiclass(y, p).top_label()
        p, y = top.y_prob, top.y_true
    return y, p
