"""Isotonic regression: pool adjacent violators."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import Floats
from calibrant.numerics.sorting import SortedRows, positives_between


def isotonic_blocks(rows: SortedRows) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Isotonic regression of plain binary rows: first row, number of rows and positives of each block."""
    ends = rows.ends
    fast = compiled(len(rows), saves=6.0)
    if fast is not None:
        return _compiled_blocks(fast, rows)
    if ends is None:
        observed = rows.rows.observed
        rises = observed[1:] > observed[:-1]  # every run of ones followed by zeros ends in one block
        starts = np.concatenate([[0], np.flatnonzero(rises) + 1])
        weight = np.diff(starts, append=len(rows)).astype(np.float64)
    else:
        starts = np.concatenate([[0], ends[:-1]])
        weight = np.diff(ends, prepend=0).astype(np.float64)
    positives = positives_between(rows.rows.observed, np.append(starts[1:], len(rows))).astype(np.float64)
    blocks, weight, positives = pool_adjacent_violators(weight, positives)
    return starts[blocks], weight, positives


def _compiled_blocks(fast: ModuleType, rows: SortedRows) -> tuple[NDArray[np.intp], Floats, Floats]:
    size = len(rows) if rows.ends is None else len(rows.ends)
    weight, positives, starts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.intp)
    ends = np.zeros(1, np.intp) if rows.ends is None else rows.ends
    blocks = int(fast.isotonic_blocks(rows.rows.observed, ends, rows.ends is not None, weight, positives, starts))
    return starts[:blocks].copy(), weight[:blocks].astype(np.float64), positives[:blocks].astype(np.float64)


def pool_adjacent_violators(weight: Floats, observed: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Isotonic regression of observed / weight: starts, weight and observed sum of its blocks.

    Every maximal run of block means that do not rise ends up in one block, so whole runs are pooled at once; a few
    such rounds leave little for the sequential algorithm. Adjacent blocks of equal mean are merged.
    """
    starts = np.arange(len(weight))
    fast = compiled(len(weight), saves=10.0)
    if fast is not None:
        weight, observed = weight.astype(np.float64), observed.astype(np.float64)  # copies to pool in
        blocks = fast.pool_adjacent_violators(weight, observed, starts)
        return starts[:blocks], weight[:blocks], observed[:blocks]
    for _ in range(12):
        mean = observed / weight
        rises = mean[1:] > mean[:-1]
        if rises.all():
            return starts, weight, observed
        keep = np.concatenate([[0], np.flatnonzero(rises) + 1])
        starts = starts[keep]
        weight, observed = np.add.reduceat(weight, keep), np.add.reduceat(observed, keep)
    from scipy.optimize import isotonic_regression

    blocks = isotonic_regression(observed / weight, weights=weight).blocks[:-1]
    return starts[blocks], np.add.reduceat(weight, blocks), np.add.reduceat(observed, blocks)
