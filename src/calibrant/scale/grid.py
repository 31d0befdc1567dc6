"""The cell number of a score as one Narwhals expression: the twin, bit for bit, of `HybridGrid.index`."""

from __future__ import annotations

import math

import narwhals.stable.v2 as nw

from calibrant.binning import Grid, HybridGrid

#: Name of the column that holds the argument of the logarithm, so that engines compute it once.
RATIO = "_calibrant_ratio"


def ratio(score: nw.Expr, grid: Grid) -> nw.Expr:
    """What the logarithm is taken of: p / (1 - p), kept off zero, because DuckDB's log(0) is an error.

    The bound lies beyond the grid's own limit, so it changes no cell.
    """
    score = score.cast(nw.Float64)
    if not isinstance(grid, HybridGrid):
        return _at_least(score, 1e-300)
    tiny = math.exp(-grid.limit - 1)
    return _at_least(score, tiny) / _at_least(1 - score, tiny)


def cell(score: nw.Expr, grid: Grid) -> nw.Expr:
    """The cell of each score, still as a float; needs the column `RATIO`."""
    score, log = score.cast(nw.Float64), nw.col(RATIO).log()
    if not isinstance(grid, HybridGrid):
        return (log * grid.per_fold).floor()
    limit = grid.limit
    place = score / 2 + (_at_most(_at_least(log, -limit), limit) + limit) / (4 * limit)
    number = _at_most(place * grid.cells, grid.cells - 1).floor()
    if grid.equal_width is None:
        return number
    return number * grid.equal_width + equal_width(score, grid.equal_width)


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
