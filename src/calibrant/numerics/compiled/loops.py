"""All compiled loops, how to try one, and how to make all of them ready."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled import bins, matrices, order
from calibrant.numerics.compiled.bins import equal_width


def __getattr__(name: str) -> Any:
    """A loop or a constant of any of the modules: `acceleration` hands them out as one."""
    return getattr(matrices if hasattr(matrices, name) else bins if hasattr(bins, name) else order, name)


def try_out() -> None:
    """Compile a small kernel and see that it counts."""
    found = equal_width(np.array([0.2, 0.7]), np.array([0, 1], np.int8), 2)
    if found is None or found[0].tolist() != [[1.0, 0.0], [0.0, 1.0]]:
        message = "Numba compiled a loop that does not add up."
        raise RuntimeError(message)


def compile_all() -> None:
    """Compile every kernel, or load it from disk, for both precisions and the usual types of labels."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        _compile_rows(dtype)
        _compile_matrices(dtype)
    key, grid, unsure = np.full(3, 1.5), np.zeros(24), np.empty(3, np.int64)
    bins.log_grid(key, key, key, 2, 1.0, 0.0, 0.4, grid, grid.copy(), unsure)
    logits, ones = np.zeros((2, 2)), np.ones(2)
    matrices.temperature(logits.reshape(-1), 1.0, ones, ones, np.zeros((1, 3)))
    matrices.vector_scaling(logits, ones, ones, ones, True, logits.copy(), np.zeros((2, 2)))  # noqa: FBT003 - as above
    bins.marked_rows(np.zeros(3, np.int16), np.zeros(8, np.bool_), 0, np.empty(4, np.intp))
    whole, tied = np.zeros(3, np.int64), True
    order.isotonic_blocks(np.zeros(3, np.int8), np.arange(1, 4), tied, whole, whole.copy(), np.zeros(3, np.intp))


def _compile_rows(dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> None:
    """The loops over scores and outcomes."""
    p, y, codes = np.full(3, 0.3, dtype), np.zeros(3, np.int8), np.empty(3, np.int16)
    equal_width(p, None, 2)
    grid, unsure = np.zeros(24), np.empty(3, np.int64)
    for label in (np.int8, np.int32, np.int64):
        equal_width(p, y.astype(label), 2)
        bins.Labels().checked(p, y.astype(label))
        bins.hybrid(p, y.astype(label), 2, 1e-3, 0.1, 0.4, grid, grid.copy(), unsure)
    bins.gap_cells(p, y, 4, np.zeros(80), np.zeros(80), codes)
    bins.radix_cells(p, y, 50, 1 << 12, 1, 2, np.zeros(64), np.zeros(64), codes)
    code = np.zeros(3, f"i{dtype.itemsize}")
    order.encode(p.view(code.dtype), y, code)
    order.decode(code, y)
    running = np.zeros(1, np.int64)
    order.running_positives(y, running)
    order.largest_rising(p, y, running, 2, 2)
    order.rises_everywhere(p, y)
    order.sums_between(p, y, np.array([0, 1, 3]), np.zeros((4, 2)))


def _compile_matrices(dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> None:
    """The loops over class probabilities."""
    matrix, y = np.full((2, 2), 0.5, dtype), np.zeros(2, np.intp)
    best, top, sums = np.empty(2, np.intp), np.empty(2, dtype), np.zeros(10)
    bits, limits = matrix.view(f"i{dtype.itemsize}"), np.ones(2, dtype).view(f"i{dtype.itemsize}")
    matrices.few_classes(matrix.reshape(-1), 2, 1e-3, best, top)
    matrices.many_classes(matrix, bits, limits[1], 1e-3, best, top)
    offset = np.zeros(4, np.int32)
    matrices.few_class_sums(matrix.reshape(-1), y, 2, 2, 1e-3, offset, sums, sums.copy(), np.zeros(4))
    matrices.many_class_sums(matrix, bits, y, 2, 1e-3, limits, sums, sums.copy(), np.zeros(4))
