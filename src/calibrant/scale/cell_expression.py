"""The cell number of a score as one Narwhals expression, equal bit for bit to `HybridGrid.index`."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.binned_sums import hybrid_scale
from calibrant.table.binning import Grid, HybridGrid

#: Name of the column that holds the argument of the logarithm, so that engines compute it once.
RATIO = "_calibrant_ratio"


def ratio(score: nw.Expr, grid: Grid) -> nw.Expr:
    """What the logarithm is taken of; never zero, because DuckDB's log(0) is an error."""
    score = score.cast(nw.Float64)
    if not isinstance(grid, HybridGrid):
        return _at_least(score, 1e-300)
    least, _ = hybrid_scale(grid.cells, grid.limit)
    return (score + least) / ((1 - score) + least)


def cell(score: nw.Expr, grid: Grid) -> nw.Expr:
    """The cell of each score less `shift(grid)`, still as a float; needs the column `RATIO`."""
    score, log = score.cast(nw.Float64), nw.col(RATIO).log()
    if not isinstance(grid, HybridGrid):
        return (log * float(grid.per_fold)).floor()
    middle, (_, slope) = grid.cells // 2, hybrid_scale(grid.cells, grid.limit)
    number = (score * (grid.cells / 2) + (log * slope + (grid.cells / 4 - middle))).floor()
    if grid.equal_width is None:
        return number
    return (number + float(middle)) * float(grid.equal_width) + equal_width(score, grid.equal_width)


def shift(grid: Grid) -> int:
    """What is taken off a cell's number, so that 2^16 of them fit the type of `dtype`."""
    return grid.cells // 2 if isinstance(grid, HybridGrid) and grid.equal_width is None else 0


def dtype(grid: Grid) -> type[nw.Int16 | nw.Int32]:
    """The type of the number: two bytes where they do, because DuckDB then needs no hash table."""
    return nw.Int16 if 0 < shift(grid) <= 2**15 else nw.Int32


def numbers(found: NDArray[Any], grid: Grid) -> NDArray[np.int64]:
    """Cells from what an engine gave back."""
    return found.astype(np.int64) + shift(grid)


def equal_width(score: nw.Expr, n: int) -> nw.Expr:
    """The bin of `EqualWidth(n)`, exactly: (low, high], the first also holds zero.

    A multiplication finds the bin but for rounding; comparing with the very edges of `np.linspace` corrects it.
    """
    step = 1.0 / n
    guess = _at_most(_at_least((score * n).ceil() - 1, 0.0), n - 1.0)
    above = (score > (guess + 1) * step) & (guess < n - 1)
    below = (score <= guess * step) & (guess > 0)
    return guess + above.cast(nw.Float64) - below.cast(nw.Float64)


def _at_least(values: nw.Expr, bound: float) -> nw.Expr:
    # Narwhals' clip asks for nulls first, which doubles the time in SQL engines.
    return nw.max_horizontal(values, nw.lit(float(bound)))


def _at_most(values: nw.Expr, bound: float) -> nw.Expr:
    return nw.min_horizontal(values, nw.lit(float(bound)))
