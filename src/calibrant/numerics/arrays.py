"""Types of arrays, blocks of rows, and the sizes at which one way to compute takes over from another.

The sizes were measured, and none of them changes what is estimated: below and above, results agree to rounding, to the
width of a grid cell, or to Monte Carlo error, as each line says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


Singles = NDArray[np.float32]


Reals = NDArray[Any]
"""Numbers of single or double precision."""


#: Rows per chunk: a few arrays of this length stay in the second-level cache. Speed: benchmarks/fast.py; no result
#: depends on it but for the rounding of sums.
CHUNK = 1 << 16


#: Rows per chunk of loops with many temporary arrays: below 128 kB each, malloc reuses their memory instead of
#: returning it to the system and faulting it in again. Speed: benchmarks/fast.py; no result depends on it.
SMALL_CHUNK = 12_288


Codes = NDArray[np.intp]
"""Class numbers: the outcome of each row as a column number."""


#: Numbers of a matrix that are worked on at once. Speed: 16 MB, so that temporary arrays stay small beside the matrix;
#: no result depends on it.
_BLOCK = 2_000_000


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Consecutive slices of the rows of a matrix that hold about two million numbers each.

    >>> list(row_blocks(3, 1_000_000))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def extremes(values: NDArray[Any]) -> tuple[Any, Any]:
    """The smallest and the largest of an array, in one read of it.

    >>> extremes(np.array([3.0, 1.0, 2.0]))
    (np.float64(1.0), np.float64(3.0))
    """
    chunks = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    ends = [(chunk.min(), chunk.max()) for chunk in chunks]
    return min(low for low, _ in ends), max(high for _, high in ends)


def accumulate_rows(values: Floats) -> Floats:
    """Running sums down the rows, in place: faster than `np.cumsum`, which goes along the columns one by one.

    >>> accumulate_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [4., 6.]])
    """
    for before, here in pairwise(values):
        here += before
    return values


#: Up to this many rows, intervals and tests use the table of distinct scores, which is then also cheaper. Speed:
#: benchmarks/inference_sizes.py; beyond, results agree to the width of a grid cell.
EXACT_ROWS = 1 << 15

#: Beyond this many binary rows, curves are fitted to scores counted on a hybrid grid of this many cells, far finer
#: than any curve that the rows could support. Speed: benchmarks/latency.py; results agree to the width of a cell.
GRID_ROWS, GRID_CELLS = 1 << 16, 1 << 14

#: Up to this many rows, a lower bound of a mean is the betting bound; beyond, Bernstein's, which needs only sums.
#: Speed: the betting bound passes over the rows 130 times; both bounds are valid.
BETTING_ROWS = 1 << 16

#: From this many rows on, equal-mass edges are selected, not sorted for: the same edges, found faster; sorting is far
#: faster in single precision. Speed: benchmarks/binned.py; no result depends on it.
SELECTION_ROWS = {np.dtype(np.float64): 1 << 18, np.dtype(np.float32): 1 << 22}

#: From this many rows on, extremes of running sums are looked for in cells, of which few are sorted. Speed:
#: benchmarks/fast.py; no result depends on it.
GAP_CELL_ROWS = 1 << 16

#: From this many rows per cell of a hybrid grid on, rows are sorted along with the edges of the cells instead of each
#: having its cell computed: the same cells. Speed: benchmarks/fast.py; no result depends on it but for the rounding of
#: sums.
SORTED_ROWS_PER_CELL = 4
