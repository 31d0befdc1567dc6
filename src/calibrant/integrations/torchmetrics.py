"""A calibration error with the methods of a torchmetrics metric, in memory that does not grow. It needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions, as_array
from calibrant.estimators.binned import ece
from calibrant.results.estimate import Estimate
from calibrant.scale.streaming import StreamingTable
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable

__all__ = ["CalibrationError"]


class CalibrationError:
    """Any estimator of one-dimensional calibration error, fed batch by batch: `update`, `compute`, `reset`.

    The state is a table of at most 2^16 cells in double precision, not the rows, so that a result after a billion
    predictions is as exact as after ten. Predictions are probabilities; logits are refused rather than guessed.

    Parameters
    ----------
    estimator : callable
        Takes a fine `BinTable`, e.g. `ece`, `sweep_ece`, `smooth_ece`, `calibration_error`; use `functools.partial` for
        options.
    ignore_index : int, optional
        Targets of this value are left out, e.g. the unlabelled pixels of a mask.
    grid : HybridGrid
        The cells.

    Examples
    --------
    >>> metric = CalibrationError()
    >>> metric.update([0.2, 0.7], [0, 1])
    >>> metric.update([0.9], [1])
    >>> metric.compute().n
    3
    >>> metric.reset()
    """

    def __init__(
        self,
        estimator: Callable[[BinTable], Estimate] = ece,
        *,
        ignore_index: int | None = None,
        grid: HybridGrid = HybridGrid(),
    ) -> None:
        self.estimator = estimator
        self.ignore_index = ignore_index
        self.grid = grid
        self.reset()

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch; arrays, lists or tensors on any device.

        `preds` of shape (N, ...) like `target` are probabilities of the event; of shape (N, C, ...) with a target
        (N, ...) they are class probabilities, of which the top label counts.
        """
        p, y = _host("preds", preds), _host("target", target)
        if p.ndim == y.ndim + 1 and p.shape[:1] + p.shape[2:] == y.shape:
            p = np.moveaxis(p, 1, -1).reshape(-1, p.shape[1])
        elif p.shape == y.shape:
            p = p.reshape(-1)
        else:
            message = f"preds must have the shape of target, or one more axis (classes); got {p.shape} and {y.shape}."
            raise InvalidPredictions(message)
        y = y.reshape(-1)
        if self.ignore_index is not None:
            keep = y != self.ignore_index
            p, y = p[keep], y[keep]
        if len(y) == 0:
            return
        if p.ndim == 2:
            top = Multiclass(y, p).top_label()
            p, y = top.y_prob, top.y_true
        self._stream.update(y, p)

    def compute(self) -> Estimate:
        """The estimate of all rows since the last reset."""
        return self.estimator(self.table())

    def reset(self) -> None:
        """Forget all rows."""
        self._stream = StreamingTable(grid=self.grid)

    def table(self) -> BinTable:
        """The table of all rows, which can be saved, added to others, and given to any estimator."""
        return self._stream.table()

    def merge_state(self, other: CalibrationError) -> None:
        """Add the rows that another metric has seen, e.g. on another device."""
        self._stream.add(other.table())

    def __call__(self, preds: Any, target: Any) -> Estimate:
        """The estimate of this batch, which is also added."""
        batch = CalibrationError(self.estimator, ignore_index=self.ignore_index, grid=self.grid)
        batch.update(preds, target)
        value = batch.compute()
        self.merge_state(batch)
        return value

    def __repr__(self) -> str:
        name = getattr(self.estimator, "__name__", repr(self.estimator))
        return f"<CalibrationError by {name}, n={self.table().n:_}>"


def _host(name: str, values: Any) -> NDArray[Any]:
    """As a NumPy array, from whatever device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return as_array(name, values)
