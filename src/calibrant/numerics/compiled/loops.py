"""Loops before and after a sort (codes, isotonic blocks, the monotone sweep), and how to make all loops ready."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled import bins, matrices
from calibrant.numerics.compiled.bins import equal_width
from calibrant.numerics.compiled.kernel import BLOCK, I64, U64, inner, kernel, reordering

#: Rows between two running sums of positives. Speed: benchmarks/fast.py; no result depends on it.
STEP = 16


@kernel
def encode(bits: Any, y: Any, code: Any) -> None:
    """The bits of scores in [0, 1], and the outcome as a last bit; -0.0 has the bits of 0.0."""
    for i in range(bits.shape[0]):
        code[i] = (bits[i] << 1) | y[i]


@kernel
def decode(code: Any, y: Any) -> Any:
    """Turn sorted codes into the bits of scores, and outcomes; the number of runs of equal scores."""
    runs, before = I64(1), code[0]
    for start in range(0, code.shape[0], BLOCK):
        part, label = code[start : start + BLOCK], y[start : start + BLOCK]
        runs += I64((before ^ part[0]) > 1)
        for i in range(1, part.shape[0]):
            runs += I64((part[i - 1] ^ part[i]) > 1)
        before = part[part.shape[0] - 1]
        for i in range(part.shape[0]):
            label[i] = np.int8(part[i] & 1)
            part[i] >>= 1
    return runs


@kernel
def isotonic_blocks(observed: Any, ends: Any, tied: Any, weight: Any, positives: Any, starts: Any) -> Any:
    """Rows, positives and first row of the blocks of the isotonic fit of sorted 0/1 outcomes; how many there are.

    A run of ties, or of ones and the zeros after them, is a block from the outset. Whole numbers: no rounding.
    """
    n, blocks, i, run = observed.shape[0], 0, 0, 0
    while i < n:
        first, s = i, I64(0)
        if tied:
            end = ends[U64(run)]
            run += 1
            while i < end:
                s += I64(observed[U64(i)])
                i += 1
        else:
            while i < n and observed[U64(i)]:
                i += 1
            s = I64(i - first)
            while i < n and not observed[U64(i)]:
                i += 1
        w = I64(i - first)
        while blocks > 0 and positives[U64(blocks - 1)] * w >= s * weight[U64(blocks - 1)]:
            blocks -= 1
            w += weight[U64(blocks)]
            s += positives[U64(blocks)]
            first = starts[U64(blocks)]
        weight[U64(blocks)], positives[U64(blocks)], starts[U64(blocks)] = w, s, first
        blocks += 1
    return blocks


@kernel
def running_positives(observed: Any, running: Any) -> None:
    """The positives before every `STEP`-th row: as good as a running sum of all rows, which would fill the cache."""
    total = I64(0)
    for k in range(running.shape[0]):
        running[k] = total
        for v in observed[k * STEP : (k + 1) * STEP]:
            total += I64(v)


@inner
def _positives(observed: Any, running: Any, rows: Any) -> Any:
    """The positives of the first `rows` rows."""
    step = U64(rows) // U64(STEP)
    total = running[step]
    for i in range(step * U64(STEP), U64(rows)):
        total += I64(observed[i])
    return total


@inner
def _past_tie(key: Any, rank: Any) -> Any:
    """The rank, or the end of the run of equal keys that it would split."""
    n, tie = key.shape[0], key[U64(rank - 1)]
    if rank == n or key[U64(rank)] != tie:
        return rank
    last, step = rank, 1
    while last + step < n and key[U64(last + step)] == tie:
        last += step
        step *= 2
    beyond = min(last + step, n)
    while beyond - last > 1:
        middle = (last + beyond) >> 1
        if key[U64(middle)] == tie:
            last = middle
        else:
            beyond = middle
    return beyond


@kernel
def largest_rising(key: Any, observed: Any, running: Any, least: Any, most: Any) -> Any:
    """The last number of equal-mass bins before the first of `least` to `most` whose mean outcomes fall; 0 if none."""
    n = key.shape[0]
    for number in range(least, most + 1):
        low, before, hits, rows = 0, I64(0), I64(0), I64(1)  # a mean of zero before the first bin
        for b in range(1, number + 1):
            high = _past_tie(key, (n * b) // number)
            if high == low:
                continue
            after = _positives(observed, running, high)
            more, many = after - before, I64(high - low)
            if more * rows < hits * many:
                return number - 1
            low, before, hits, rows = high, after, more, many
    return 0


@kernel
def rises_everywhere(key: Any, observed: Any) -> Any:
    """Whether the mean outcomes of the runs of equal keys never fall; looks no further than the first fall."""
    n, i, hits, rows = key.shape[0], 0, I64(0), I64(1)
    while i < n:
        first, more = i, I64(0)
        while i < n and key[U64(i)] == key[U64(first)]:
            more += I64(observed[U64(i)])
            i += 1
        many = I64(i - first)
        if more * rows < hits * many:
            return False
        hits, rows = more, many
    return True


@reordering
def _sums(key: Any, observed: Any) -> Any:
    """The sums of p, p^2, p y and y of some rows."""
    total, square, product, positives = 0.0, 0.0, 0.0, 0.0
    for i in range(key.shape[0]):
        v, w = np.float64(key[i]), np.float64(observed[i])
        total += v
        square += v * v
        product += v * w
        positives += w
    return total, square, product, positives


@kernel
def sums_between(key: Any, observed: Any, cuts: Any, sums: Any) -> None:
    """Add the sums of p, p^2, p y and y between neighbouring cuts to `sums`; no running sum has many terms."""
    for k in range(cuts.shape[0] - 1):
        for start in range(cuts[k], cuts[k + 1], BLOCK):
            end = min(start + BLOCK, cuts[k + 1])
            total, square, product, positives = _sums(key[start:end], observed[start:end])
            sums[0, k] += total
            sums[1, k] += square
            sums[2, k] += product
            sums[3, k] += positives


def __getattr__(name: str) -> Any:
    """A loop or a constant of the other modules: `acceleration` hands all of them out as one."""
    return getattr(matrices if hasattr(matrices, name) else bins, name)


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
    isotonic_blocks(np.zeros(3, np.int8), np.arange(1, 4), tied, whole, whole.copy(), np.zeros(3, np.intp))


def _compile_rows(dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> None:
    """The loops over scores and outcomes."""
    p, y, codes = np.full(3, 0.3, dtype), np.zeros(3, np.int8), np.empty(3, np.int16)
    equal_width(p, None, 2)
    grid, unsure = np.zeros(24), np.empty(3, np.int64)
    for label in (np.int8, np.int32, np.int64):
        equal_width(p, y.astype(label), 2)
        bins.checked(p, y.astype(label))
        bins.hybrid(p, y.astype(label), 2, 1e-3, 0.1, 0.4, grid, grid.copy(), unsure)
    bins.gap_cells(p, y, 4, np.zeros(80), np.zeros(80), codes)
    bins.radix_cells(p, y, 50, 1 << 12, 1, 2, np.zeros(64), np.zeros(64), codes)
    code = np.zeros(3, f"i{dtype.itemsize}")
    encode(p.view(code.dtype), y, code)
    decode(code, y)
    running = np.zeros(1, np.int64)
    running_positives(y, running)
    largest_rising(p, y, running, 2, 2)
    rises_everywhere(p, y)
    sums_between(p, y, np.array([0, 1, 3]), np.zeros((4, 2)))


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
