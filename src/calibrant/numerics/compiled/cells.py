"""Cells that save a sort: sums of rows in narrow cells of the score, and the rows of some of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.kernel import BLOCK, TERMS, U64, inner, kernel, to_totals


@inner
def _add(score: Any, code: Any, copies: Any, columns: Any, table: Any, totals: Any) -> None:
    """Add rows and sums of p, and of p^2 as a third column, per code.

    In two copies, rows of the same code wait less for each other; in one, more of the table is in the cache.
    """
    for i in range(score.shape[0]):
        at, v = (U64(np.uint16(code[i])) * U64(copies) + U64(i & (copies - 1))) * U64(columns), np.float64(score[i])
        rows, total = table[at] + 1.0, table[at + U64(1)] + v
        table[at], table[at + U64(1)] = rows, total
        if columns == 3:
            table[at + U64(2)] += v * v
        if rows == TERMS:
            to_totals(at, table, totals, columns)


@kernel
def gap_cells(p: Any, y: Any, cells: Any, table: Any, totals: Any, codes: Any) -> None:
    """Add rows and sums of p per equally wide cell and outcome; `codes` becomes twice the cell, plus the outcome."""
    scale = np.float64(cells)
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, label, code = p[start : start + m], y[start : start + m], codes[start : start + m]
        for i in range(m):
            code[i] = np.int16(2 * np.int32(np.float32(np.float64(score[i]) * scale)) + np.int32(label[i]))
        _add(score, code, 1, 2, table, totals)


@kernel
def radix_cells(
    p: Any, y: Any, shift: Any, lowest: Any, half: Any, columns: Any, table: Any, totals: Any, codes: Any
) -> None:
    """Add rows, sums of p and, with three columns, of p^2 per bucket and outcome; codes as in `radix_buckets`."""
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, label, code = p[start : start + m], y[start : start + m], codes[start : start + m]
        for i in range(m):
            v = np.float64(score[i])
            upper = v > 0.5
            distance = np.float64(1.0 - v if upper else abs(v))  # -0.0 is 0.0
            bucket = np.int32(distance.view(np.uint64) >> U64(shift)) - np.int32(lowest)
            side = np.int32(2 * half) if upper else np.int32(0)
            code[i] = np.int16(2 * max(bucket, np.int32(0)) + np.int32(label[i]) + side)
        _add(score, code, 2, columns, table, totals)


@kernel
def marked_rows(codes: Any, marked: Any, first: Any, rows: Any) -> Any:
    """List the rows whose code is marked; how many there are. `rows` must have room for one more."""
    found = U64(0)
    for i in range(codes.shape[0]):
        rows[found] = first + i
        found += U64(marked[U64(np.uint16(codes[i]))])
    return found
