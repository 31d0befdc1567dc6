"""A calibration error for training loops, in memory that does not grow: without torch, or as a torchmetrics metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibrant.data.validation import fail
from calibrant.estimators.binned import ece
from calibrant.results.estimate import Estimate
from calibrant.scale.streaming import StreamingTable, batch_rows
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable

__all__ = ["CalibrationError", "torch_metric"]


class CalibrationError:
    """Any estimator of one-dimensional calibration error, fed batch by batch: `update`, `compute`, `reset`; no torch.

    Where torchmetrics or Lightning handle the metric themselves, take `torch_metric`, which has the same numbers.

    The state is a table of at most 2^16 cells in double precision, not the rows, so that a result after a billion
    predictions is as exact as after ten. Predictions are probabilities; logits are refused rather than guessed.

    Parameters
    ----------
    estimator : callable
        Takes a fine `BinTable`, e.g. `ece`, `sweep_ece`, `smooth_ece`, `variational_error`; use `functools.partial` for
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
        y, p = batch_rows(preds, target, self.ignore_index)
        if len(y):
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


def torch_metric(
    estimator: Callable[[BinTable], Estimate] = ece,
    *,
    ignore_index: int | None = None,
    grid: HybridGrid = HybridGrid(),
    **options: Any,
) -> Any:
    """`CalibrationError` as a `torchmetrics.Metric`, for Lightning, metric collections, checkpoints and many devices.

    The state is three tensors with a value per cell of the grid, sums, lowest and highest scores, which torchmetrics
    reduces over processes by sum, minimum and maximum: the result on many devices is that of all rows, exactly. They
    are in double precision, which devices without it (Apple's MPS) cannot hold: keep the metric on the CPU there.

    Parameters
    ----------
    estimator, ignore_index, grid
        As those of `CalibrationError`.
    **options
        Of `torchmetrics.Metric`, e.g. ``dist_sync_on_step``.

    Returns
    -------
    torchmetrics.Metric
        `compute` gives a tensor in double precision with one value; `estimate()` the whole `Estimate`, and `table()`
        the table of all rows.

    Examples
    --------
    >>> metric = torch_metric()  # doctest: +SKIP
    >>> metric.update(torch.tensor([0.2, 0.7]), torch.tensor([0, 1]))  # doctest: +SKIP
    >>> metric.compute()  # doctest: +SKIP
    tensor(0.2500, dtype=torch.float64)
    """
    try:
        from calibrant.integrations.torchmetrics_state import TableMetric
    except ImportError as error:
        remedy = "pip install torchmetrics. CalibrationError works without it."
        fail(f"torch_metric needs torchmetrics: {remedy}", ImportError, cause=error)
    return TableMetric(estimator, ignore_index=ignore_index, grid=grid, **options)
