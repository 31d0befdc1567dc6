r"""How far an ECE from cells can be from the ECE of the rows, told by the table itself.

Only cells that an edge falls into can be divided wrongly. Moving rows from one bin to its neighbour changes
:math:`\sum_k \lvert\sum_{i \in B_k} w_i (p_i - y_i)\rvert` by at most twice the size of the sum that is moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.table.binning import Binning, EqualMass, as_binning
from calibrant.table.task import Spread

if TYPE_CHECKING:
    from calibrant.table.bintable import BinTable


def cut_cells(table: BinTable, bins: Binning) -> tuple[NDArray[np.intp], Floats]:
    """For each edge that falls into a cell: the number of the cell, and the part of it that goes to the left."""
    resolved = table.resolved(bins)
    at = table.places(resolved)[1:-1]
    whole = np.floor(at)
    cell = np.minimum(whole.astype(np.intp), len(table) - 1)
    if isinstance(resolved, EqualMass):
        cut = at != whole
    else:  # an edge on the lowest score of a cell parts that score from the others
        inner = resolved.edges[1:-1]
        cut = (table.low[cell] <= inner) & (inner < table.high[cell])
    return cell[cut], (at - whole)[cut]


def error_bound(table: BinTable, bins: Binning, *, distinct: bool) -> float:
    """See `BinTable.error_bound`."""
    if not table.fine or isinstance(table.task, Spread):
        message = "error_bound is for fine tables of probabilities: it bounds the ECE in bins made from their cells."
        raise ValueError(message)
    cell, part = cut_cells(table, bins)
    if not distinct:
        moved = _any_rows(table, cell, part)
    elif isinstance(as_binning(bins), EqualMass) and np.allclose(_row_weight(table) * table.count, table.weight):
        moved = _known_number(table, cell, part) * _row_weight(table)
    else:
        message = (
            "distinct=True is for unweighted labelled rows in EqualMass bins, whose edges part a known number of rows."
        )
        raise ValueError(message)
    return 2 * float(moved.sum()) / table.total


def _any_rows(table: BinTable, cell: NDArray[np.intp], part: Floats) -> Floats:
    """Whatever rows of the cell are to the left, their sum of p - y lies between its negative and its positive part."""
    scale = table.observed_scale
    both = table.task.shared_mass(table)[cell]
    positive, negative = table.predicted[cell] - both, scale * table.observed[cell] - both
    share = part * (positive - negative)
    return np.maximum(positive - share, share + negative)


def _known_number(table: BinTable, cell: NDArray[np.intp], part: Floats) -> Floats:
    """With a of the n rows to the left, at least max(0, a - n0) and at most min(a, n1) of them are positive."""
    positives = table.observed[cell] / _row_weight(table)
    n, width = table.count[cell], (table.high - table.low)[cell]
    left = part * n
    expected = part * positives
    outcomes = np.maximum(np.minimum(left, positives) - expected, expected - np.maximum(0.0, left - (n - positives)))
    return outcomes + np.minimum(left, n - left) * width


def _row_weight(table: BinTable) -> float:
    """The weight of one row, where all have the same."""
    return float(table.weight_squares.sum()) / table.total
