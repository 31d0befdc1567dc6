"""The state of a calibration error as tensors that torchmetrics can move, save and reduce. Needs torchmetrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torchmetrics import Metric

from calibrant.data.predictions import Binary
from calibrant.numerics.rows import SUMS
from calibrant.results.estimate import Estimate
from calibrant.scale.streaming import batch_rows
from calibrant.table.binning import HybridGrid
from calibrant.table.bintable import BinTable


class TableMetric(Metric):
    """What `calibrant.integrations.torchmetrics.torch_metric` returns."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False  # a batch by itself, then added: the value of a step needs no second pass
    sums: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor

    def __init__(
        self, estimator: Callable[[BinTable], Estimate], *, ignore_index: int | None, grid: HybridGrid, **options: Any
    ) -> None:
        super().__init__(**options)
        self.estimator = estimator
        self.ignore_index = ignore_index
        self.grid = grid
        cells = grid.cells * (grid.equal_width or 1)
        ends = torch.full((cells,), torch.inf, dtype=torch.float64)
        self.add_state("sums", torch.zeros(len(SUMS), cells, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("low", ends, dist_reduce_fx="min")
        self.add_state("high", -ends, dist_reduce_fx="max")

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch; shapes as for `CalibrationError.update`."""
        y, p = batch_rows(preds, target, self.ignore_index)
        if len(y) == 0:
            return
        batch = BinTable.of(Binary(y, p), self.grid)
        at = torch.as_tensor(batch.key, device=self.sums.device)
        low, high, sums = (torch.as_tensor(part, device=at.device) for part in (batch.low, batch.high, batch.sums))
        self.sums[:, at] += sums
        self.low[at] = torch.minimum(self.low[at], low)
        self.high[at] = torch.maximum(self.high[at], high)

    def compute(self) -> torch.Tensor:
        """The estimate of all rows since the last reset, of all processes where there are several."""
        return torch.tensor(float(self.estimate()), dtype=torch.float64, device=self.sums.device)

    def estimate(self) -> Estimate:
        """The same with its method and number of rows."""
        return self.estimator(self.table())

    def table(self) -> BinTable:
        """The table of all rows, which can be saved, added to others, and given to any estimator."""
        sums, low, high = (part.cpu().numpy() for part in (self.sums, self.low, self.high))
        some = np.flatnonzero(sums[SUMS.index("count")])
        return BinTable(self.grid, some, low[some], high[some], sums[:, some])

    def set_dtype(self, dst_type: Any) -> TableMetric:
        """The sums stay in double precision whatever the model is in."""
        return self
