"""Numbers of rows at which one way to compute takes over from another.

They were measured, and none of them changes what is estimated: below and above, results agree to rounding, to the width
of a grid cell, or to Monte Carlo error, as each line says.
"""

import numpy as np

#: Up to this many rows, intervals and tests use the table of distinct scores, which is exact and then also cheaper.
EXACT_ROWS = 1 << 15

#: Beyond this many binary rows, curves are fitted to scores counted on a hybrid grid of so many cells, far finer than
#: any curve that the rows could support.
GRID_ROWS, GRID_CELLS = 1 << 16, 1 << 14

#: Up to this many rows, a lower bound of a mean is the betting bound; beyond it, Bernstein's, which needs only sums.
BETTING_ROWS = 1 << 16

#: From this many rows on, equal-mass edges are selected, not sorted for: the same edges, found faster. Sorting is far
#: faster in single precision.
SELECTION_ROWS = {np.dtype(np.float64): 1 << 18, np.dtype(np.float32): 1 << 22}

#: From this many rows on, extremes of running sums are looked for in cells, of which few are sorted: the same extremes.
GAP_CELL_ROWS = 1 << 16

#: From this many rows per cell of a hybrid grid on, rows are sorted along with the edges of the cells instead of each
#: having its cell computed: the same cells, and sums that agree to rounding.
SORTED_ROWS_PER_CELL = 4
