"""The most probable class of each row of a matrix of class probabilities, found in the pass that checks the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes
from calibrant.numerics.switch import by_chunks, compiled

#: From this many classes on, vector instructions over a row pay.
MANY = 64


def checked_top_class(matrix: NDArray[Any], tolerance: float) -> tuple[Codes, NDArray[Any]] | None:
    """The first largest class of each row and its probability, if all rows lie in [0, 1] and sum to 1 but `tolerance`.

    None where a row does not, or no compiled loop is at hand: then somebody has to look closer.
    """
    rows, columns = matrix.shape
    plain = matrix.dtype.char in "fd" and matrix.dtype.isnative and matrix.flags.c_contiguous
    fast = compiled(matrix.size, saves=2.0) if plain else None
    if fast is None:
        return None
    best, top = np.empty(rows, np.intp), np.empty(rows, matrix.dtype)
    bits = matrix.view(f"i{matrix.itemsize}")
    one = np.ones(1, matrix.dtype).view(bits.dtype)[0]

    def checked(part: slice) -> int:
        if columns < MANY:
            return int(fast.few_classes(matrix[part].reshape(-1), columns, tolerance, best[part], top[part]))
        return int(fast.many_classes(matrix[part], bits[part], one, tolerance, best[part], top[part]))

    return (best, top) if not any(by_chunks(rows, checked)) else None
