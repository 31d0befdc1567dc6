"""Weights of rows: their total, and the number of equally weighted rows they are as good as."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.numerics.arrays import Floats


class Mass(NamedTuple):
    """Sum of weights and of squared weights of one sample."""

    total: float
    squares: float

    @property
    def effective_n(self) -> float:
        """Kish's effective number of rows, (sum w)² / sum w²; zero where there is no weight."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    @classmethod
    def of(cls, weight: Floats | None, n: int) -> Mass:
        """The mass of `n` rows; without weights each row weighs one."""
        return cls(float(n), float(n)) if weight is None else cls(float(weight.sum()), float(weight @ weight))


def all_alike(weight: Floats | None) -> bool:
    """Whether all rows have the same weight, which is as good as none."""
    return weight is None or bool((weight == weight[0]).all())


def effective_n(weight: Floats | None, n: int) -> float:
    """Kish's effective number of rows, (sum w)² / sum w²; `n` itself without weights."""
    return Mass.of(weight, n).effective_n


def variance_of_mean(mean: Floats, mean_square: Floats, effective_n: Floats) -> Floats:
    """Estimated variance of means of (effectively) this many rows each; NaN where one row or none does not tell."""
    several = np.where(effective_n > 1, effective_n, np.nan)
    return np.maximum(mean_square - mean**2, 0.0) / (several - 1)
