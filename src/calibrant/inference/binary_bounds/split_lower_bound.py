"""A lower bound of the error that assumes only independent rows: one part learns a map, the other judges it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from calibrant.data.predictions import Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.lower_bound import SplitSampleBound
from calibrant.estimators.variational import calibration_error
from calibrant.results.estimate import Interval
from calibrant.results.target import Target
from calibrant.table.bintable import BinTable


@dataclass(frozen=True)
class SplitLowerBound:
    """A lower bound that assumes only independent rows: `SplitSampleBound` of the variational error.

    A map is fitted on a share `train` of the rows. Its expected gain on the other rows is at most the true error, and a
    lower confidence bound on that mean is valid for every n, model and map.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> found = cal.interval(cal.ece, cal.Binary(rng.random(3000) < p**3, p), method=SplitLowerBound())
    >>> found.interval.side, bool(0.1 < found.interval.low < 0.25)  # the true error is 1/4
    ('lower', True)
    """

    train: float = 0.5
    seed: int = 0

    def interval(self, data: Predictions | BinTable, *, norm: Any = 1, level: float = 0.95) -> Interval:
        """The one-sided interval above the bound."""
        if isinstance(data, BinTable):
            message = "SplitLowerBound needs the predictions, not a table: it splits the rows."
            raise InvalidPredictions(message)
        bound = SplitSampleBound(level=level, train=self.train)
        found = calibration_error(data, norm=norm, bound=bound, seed=self.seed).interval
        if found is None:  # pragma: no cover - a bound was asked for
            raise RuntimeError(repr(bound))
        return replace(found, low=max(found.low, 0.0), method=repr(self), target=Target("true error", norm))
