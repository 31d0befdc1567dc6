"""What the estimators share: from input to table, norms, and the finished result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data.predictions import Predictions, binary
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.table.binning import Binning, Distinct, as_binning
from calibrant.table.bintable import BinTable
from calibrant.table.task import Spread
from calibrant.table.unlabeled import Unlabeled

Data = Predictions | BinTable | ArrayLike
"""What an estimator takes first: predictions, a table, or y_true (with y_prob second)."""


def binned(
    data: Data, y_prob: ArrayLike | None, bins: Binning, *, squares: bool = True, needed_by: str | None = None
) -> tuple[BinTable, str]:
    """The table of `data` in `bins`, and the words for it. A table that has bins already is taken as it is.

    `needed_by` names an estimator of probabilities; without it tables of spreads will do as well.
    """
    bins = as_binning(bins)
    if not isinstance(data, BinTable):
        table, words = BinTable.of(binary(data, y_prob), bins, squares=squares), repr(bins)
    elif data.fine:
        table, words = data.coarsen(bins), repr(bins)
    else:
        table, words = data, f"{len(data)} given bins"
    if needed_by is not None:
        require_kind(table, needed_by=needed_by)
    table.task.warn(table)
    return table, words


def fine(data: Data, y_prob: ArrayLike | None, *, needed_by: str, spread: bool = False) -> BinTable:
    """The exact table of `data`, without cells that hold nothing; a fine table is taken as it is."""
    if not isinstance(data, BinTable):
        data = BinTable.of(binary(data, y_prob), Distinct())
    require_fine(data, needed_by=needed_by, spread=spread)
    some = (data.weight > 0) | (data.observed > 0)  # cells of labelled positives alone weigh nothing, but count
    return data if some.all() else data.take(some)


def outcome_cells(data: Data, *, needed_by: str) -> BinTable:
    """The exact table of `data`, whose rows must have an outcome each."""
    cells = fine(data, None, needed_by=needed_by)
    if isinstance(cells.task, Unlabeled):
        message = f"Positive-unlabeled tables have no outcomes per row, which {needed_by} needs."
        raise ValueError(message)
    return cells


def require_kind(table: BinTable, *, needed_by: str, spread: bool = False) -> None:
    """Refuse a table of spreads where probabilities are needed, and the reverse."""
    if isinstance(table.task, Spread) == spread:
        return
    if spread:
        message = (
            f"{needed_by} needs predicted spreads and errors, but this table holds probabilities and outcomes: use "
            "ece, debiased_ece or calibration_error, or make the table of Gaussian(y_true, mean, std)."
        )
    else:
        message = (
            f"{needed_by} needs probabilities and outcomes, but this table holds predicted spreads and squared errors: "
            "use ence, debiased_ence or mean_squared_z, or make the table of Binary(y_true, y_prob)."
        )
    raise ValueError(message)


def require_fine(table: BinTable, *, needed_by: str, spread: bool = False) -> None:
    """Refuse a table of bins where cells are needed, and one of the wrong kind."""
    require_kind(table, needed_by=needed_by, spread=spread)
    if not table.fine:
        message = f"{needed_by} needs a fine table (or the predictions); this one has only {len(table)} bins."
        raise ValueError(message)


def check_norm(norm: float) -> float:
    """`norm` as a float of at least 1; infinity is allowed."""
    value = float(norm)
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
