"""Types of arrays, and how many rows a loop takes at once."""

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


#: Rows per chunk: a few arrays of this length stay in the second-level cache.
CHUNK = 1 << 16


#: Rows per chunk of loops with many temporary arrays: below 128 kB each, malloc reuses their memory instead of
#: returning it to the system and faulting it in again, which would cost more than the arithmetic.
SMALL_CHUNK = 12_288


Codes = NDArray[np.intp]
"""Class numbers: the outcome of each row as a column number."""


#: Numbers of a matrix that are worked on at once.
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
