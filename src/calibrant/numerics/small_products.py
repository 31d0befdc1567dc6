"""Matrix products in pieces so small that BLAS does not start threads for them."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats

#: Multiplications up to which OpenBLAS uses one thread.
_ONE_THREAD = 2**18

#: Lines at a time, at most.
_LINES = 96


def product(left: Floats, right: Floats) -> Floats:
    """The product of two matrices by one thread, piece by piece.

    Thousands of products of a millisecond each are slower with threads: these wait for each other, and where other
    programs run they wait by using the processor. Products as small as these pieces are never divided among threads.

    >>> bool(np.allclose(product(np.ones((200, 3)), np.eye(3)), 1.0))
    True
    """
    inner, columns = right.shape
    found = np.empty((len(left), columns))
    lines = max(1, min(len(left), _LINES, _ONE_THREAD // inner))
    width = max(1, _ONE_THREAD // (lines * inner))
    for start in range(0, len(left), lines):
        rows = slice(start, start + lines)
        for first in range(0, columns, width):
            part = slice(first, first + width)
            np.matmul(left[rows], right[:, part], out=found[rows, part])
    return found
