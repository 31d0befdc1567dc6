"""Types of arrays, elementary functions of them, and the sizes at which one way to compute takes over from another.

The sizes were measured, and none of them changes what is estimated: below and above, results agree to rounding, to the
width of a grid cell, or to Monte Carlo error, as each line says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

#: Logarithms of probabilities are floored here, so that 0 has a logit. Derived: that of the smallest normal float32.
LOG_FLOOR = float(np.log(np.finfo(np.float32).tiny))

#: Up to this many columns a transposed copy is worked on: NumPy's operations on short rows are slow. Speed:
#: benchmarks/fast.py; no result depends on it.
_FEW = 40


def expit(x: Any) -> Floats:
    """1 / (1 + exp(-x)); exactly 0 where the exponential overflows."""
    p = np.empty(np.shape(x))
    np.negative(x, out=p)
    with np.errstate(over="ignore"):
        np.exp(p, out=p)
    p += 1
    result: Floats = np.reciprocal(p, out=p)[()]  # a number for a number
    return result


def softplus(x: Floats, p: Floats | None = None) -> Floats:
    """Log of 1 + exp(x), to 1e-16, from p = expit(x): five times as fast as `np.logaddexp`, which keeps all digits."""
    p = expit(x) if p is None else p
    found = np.maximum(p, 1 - p)
    np.log(found, out=found)
    return np.subtract(np.maximum(x, 0.0), found, out=found)


def log_odds(probability: ArrayLike) -> Floats:
    """Log of p / (1 - p); 0 and 1 are minus and plus infinity, and small p keep their digits."""
    p = np.asarray(probability, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))


def clipped_log_odds(p: NDArray[Any], *, floor: float = LOG_FLOOR) -> Floats:
    """Log of p / (1 - p), with both logarithms floored: 0 and 1 are finite, -87.3 and 87.3 by default."""
    p = p.astype(np.float64, copy=False)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), floor) - np.maximum(np.log1p(-p), floor)


def floored_log(p: Floats) -> Floats:
    """Logarithm of p, of 0 too: -87.3."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), LOG_FLOOR)


def log_probability(z: Any) -> Floats:
    """Log of p at log odds z."""
    return -np.logaddexp(0.0, -np.asarray(z, dtype=np.float64))


def log_complement(z: Any) -> Floats:
    """Log of 1 - p at log odds z."""
    return -np.logaddexp(0.0, np.asarray(z, dtype=np.float64))


def times(factor: float, values: Floats) -> Floats:
    """Product with 0 * infinity = 0, so that a curve without a slope has none at the ends either."""
    return factor * values if factor else np.zeros_like(values)


def row_sum(values: Reals) -> Reals:
    """Sum of each row, as a column."""
    return values @ np.ones((values.shape[1], 1), values.dtype)


def row_max(values: Reals) -> Reals:
    """Maximum of each row, as a column."""
    if values.shape[1] > _FEW:
        return values.max(axis=1, keepdims=True)
    return np.ascontiguousarray(values.T).max(axis=0)[:, None]


def softmax(logits: Reals) -> Reals:
    """Exponentials of the logits of each row, divided by their sum; a new array of the same precision."""
    p = logits - row_max(logits)
    np.exp(p, out=p)
    p /= row_sum(p)
    return p


def log_softmax(logits: Reals) -> Reals:
    """Logits less the logarithm of the sum of their exponentials, row by row; in the precision of the logits."""
    if logits.shape[1] <= _FEW:
        columns = np.array(logits.T, order="C")
        columns -= columns.max(axis=0)
        columns -= np.log(np.exp(columns).sum(axis=0))
        return np.ascontiguousarray(columns.T)
    shifted = logits - row_max(logits)
    shifted -= np.log(row_sum(np.exp(shifted)))
    return shifted
