"""Types of arrays, and how many rows a loop takes at once."""

from __future__ import annotations

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
