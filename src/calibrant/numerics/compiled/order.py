"""Before and after a sort: codes of rows, isotonic blocks, the monotone sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """The last number of equal-mass bins before the first from `least` to `most` whose mean outcomes fall; 0 if none.

    `running` counts positives. Whole numbers, so there is no rounding.
    """
    n = key.shape[0]
    for bins in range(least, most + 1):
        low, before, hits, rows = 0, I64(0), I64(0), I64(1)  # a mean of zero before the first bin
        for b in range(1, bins + 1):
            high = _past_tie(key, (n * b) // bins)
            if high == low:
                continue
            after = _positives(observed, running, high)
            more, many = after - before, I64(high - low)
            if more * rows < hits * many:
                return bins - 1
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
