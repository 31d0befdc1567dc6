"""Class probabilities: top class and classwise sums in the pass that checks a matrix, without a copy per class."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import by_chunks, compiled
from calibrant.numerics.arrays import Codes, Floats

#: From this many classes on, vector instructions over a row pay. Speed: benchmarks/fast.py; no result depends on it.
MANY = 64


def checked_top_class(matrix: NDArray[Any], tolerance: float) -> tuple[Codes, NDArray[Any]] | None:
    """The first largest class of each row and its probability, if all rows lie in [0, 1] and sum to 1 but `tolerance`.

    None where a row does not, or there is no compiled loop: the caller then has to check.
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


def checked_class_sums(matrix: NDArray[Any], codes: Codes, bins: int, tolerance: float) -> Floats | None:
    """Rows, sums of p and positives per class and bin of equal width, of shape (3, classes, bins).

    The pass that sums the matrix also checks that its rows lie in [0, 1] and sum to 1 but for `tolerance`, and that the
    codes are columns of it. None where they do not, or there is no compiled loop: the caller then has to check.
    """
    plain = matrix.dtype.char in "fd" and matrix.dtype.isnative and matrix.flags.c_contiguous
    fast = compiled(matrix.size, saves=4.0) if plain and codes.dtype.kind in "iu" and codes.dtype.isnative else None
    if fast is None:
        return None
    way = _few if matrix.shape[1] < MANY else _many
    parts = by_chunks(len(matrix), lambda rows: way(fast, matrix[rows], codes[rows].astype(np.int64), bins, tolerance))
    if any(part is None for part in parts):
        return None
    return np.stack([part for part in parts if part is not None], axis=-1).sum(axis=-1)


def _few(fast: ModuleType, matrix: NDArray[Any], codes: Codes, bins: int, tolerance: float) -> Floats | None:
    classes = matrix.shape[1]
    size = classes * bins
    score = np.arange(fast.SCORES // classes * classes)
    offset = score // classes % fast.LANES * (2 * size) + score % classes * (2 * bins)
    lanes, totals, hits = np.zeros(fast.LANES * 2 * size), np.zeros(fast.LANES * 2 * size), np.zeros(size)
    flat = matrix.reshape(-1)
    if fast.few_class_sums(flat, codes, classes, bins, tolerance, offset.astype(np.int32), lanes, totals, hits):
        return None
    predicted, count = totals.reshape(fast.LANES, size, 2).sum(axis=0).T
    return np.stack([count, predicted, hits]).reshape(3, classes, bins)


def _many(fast: ModuleType, matrix: NDArray[Any], codes: Codes, bins: int, tolerance: float) -> Floats | None:
    """Rows beyond the first bin are counted; the others are in the first."""
    classes = matrix.shape[1]
    size = classes * bins
    edge = np.array([1 / bins], matrix.dtype)
    if float(edge[0]) > 1 / bins:
        edge = np.nextafter(edge, matrix.dtype.type(0))
    limits = np.append(edge, matrix.dtype.type(1)).view(f"i{matrix.itemsize}")
    table, totals, hits = np.zeros(2 * size + classes), np.zeros(2 * size + classes), np.zeros(size)
    bits = matrix.view(limits.dtype)
    if fast.many_class_sums(matrix, bits, codes, bins, tolerance, limits, table, totals, hits):
        return None
    predicted, count = totals[: 2 * size].reshape(classes, bins, 2).transpose(2, 0, 1)
    predicted[:, 0], count[:, 0] = totals[2 * size :], len(matrix) - count.sum(axis=1)
    return np.stack([count, predicted, hits.reshape(classes, bins)])
