"""Norms of gaps, and the finished result of a binned estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.validation import as_number
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable


def check_norm(norm: float) -> float:
    """`norm` as a float of at least 1; infinity is allowed."""
    value = as_number(norm)
    if not value >= 1:
        message = f"norm must be a number of at least 1 (or math.inf), got {norm!r}."
        raise ValueError(message)
    return value


def weighted_norm(values: Floats, share: Floats, norm: float) -> Any:
    """(sum share |values|^norm)^(1/norm) along the last axis; the maximum for infinity."""
    sizes = np.abs(values)
    return sizes.max(axis=-1) if np.isinf(norm) else np.vecdot(share, sizes**norm) ** (1 / norm)


def mass_norm(mass: Floats, share: Floats, norm: float) -> Any:
    """Norm of the gaps of bins, given their error masses (share times gap), along the last axis.

    A bin of labelled positives without any unlabeled row has an error mass but no rate: it counts where norm is 1.
    """
    if norm == 1:
        return np.abs(mass).sum(axis=-1)
    gap = np.divide(mass, share, out=np.zeros_like(mass), where=share > 0)
    return weighted_norm(gap, share, norm)


def gap_norm(table: BinTable, norm: float) -> float:
    """Norm of the gaps between mean prediction and mean outcome over the bins that have weight."""
    mass = (table.predicted - table.observed * table.observed_scale) / table.total
    return float(mass_norm(mass, table.share, norm))


def signed_root(power: Any, norm: float) -> Any:
    """The root that keeps the sign, for debiased powers that may fall below zero."""
    return np.sign(power) * np.abs(power) ** (1 / norm)


def result(value: float, name: str, method: str, table: BinTable, **details: Any) -> Estimate:
    """An `Estimate` that keeps its table."""
    return Estimate(float(value), name=name, method=method, n=table.n, bins=table, details=details)


def with_norm(name: str, norm: float) -> str:
    """The name of an error with its norm: ECE (L1), ECE (L2), ECE (Linf)."""
    return f"{name} (L{norm:g})"
