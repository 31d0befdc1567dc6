"""Types of arrays, and the sizes at which one way to compute takes over from another.

The sizes were measured, and none of them changes what is estimated: below and above, results agree to rounding, to the
width of a grid cell, or to Monte Carlo error, as each line says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Singles = NDArray[np.float32]

Reals = NDArray[Any]
"""Numbers of single or double precision."""

Codes = NDArray[np.intp]
"""Class numbers: the outcome of each row as a column number."""

#: Rows per chunk: a few arrays of this length stay in the second-level cache. Speed: benchmarks/fast.py; no result
#: depends on it but for the rounding of sums.
CHUNK = 1 << 16

#: Rows per chunk of loops with many temporary arrays: below 128 kB each, malloc reuses their memory instead of
#: returning it to the system and faulting it in again. Speed: benchmarks/fast.py; no result depends on it.
SMALL_CHUNK = 12_288

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
