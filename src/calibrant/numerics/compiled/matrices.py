"""Matrices of class probabilities: check, top label and classwise sums, each in one pass without a copy per class.

Scores are checked by their bits: those of numbers below 0, of NaN and of -0.0 are negative whole numbers, those of
numbers above 1 are larger than the bits of 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.bins import places
from calibrant.numerics.compiled.kernel import I64, U64, inner, kernel, reordering

#: Scores of a block of rows of few classes; copies of their table; rows between two additions to the totals.
SCORES, LANES, FLUSH = 2048, 2, 4096

#: Classes of a row that are compared at once.
GROUP = 16

#: Fewer classes are looked at one by one.
FEW = 256


@kernel
def few_classes(p: Any, columns: Any, tolerance: Any, best: Any, top: Any) -> Any:
    """The first largest class of each row and its probability; the number of rows that break a rule."""
    bad: Any = 0
    for i in range(best.shape[0]):
        total, big, small, at, row = 0.0, -1.0, 1.0, I64(0), U64(i) * U64(columns)
        for k in range(columns):
            v = np.float64(p[row + U64(k)])
            total += v
            larger = v > big
            big = v if larger else big
            at = I64(k) if larger else at
            small = v if v < small else small
        # a NaN makes the sum NaN, which is not within any tolerance
        bad += I64(not ((small >= 0.0) & (big <= 1.0) & (abs(total - 1.0) <= tolerance)))
        best[i], top[i] = at, big
    return bad


@reordering
def _checked(row: Any, bits: Any) -> Any:
    """The sum of a row, the largest of its bits, and their union, which is negative if one is."""
    total, most, union = 0.0, bits[0], bits[0]
    for k in range(row.shape[0]):
        b = bits[k]
        total += np.float64(row[k])
        most = b if b > most else most
        union |= b
    return total, most, union


@inner
def _first_at(bits: Any, wanted: Any) -> Any:
    """The first class with these bits; groups of classes are compared at once."""
    start = 0
    while start + GROUP <= bits.shape[0]:
        found = False
        for k in range(GROUP):
            found |= bits[U64(start + k)] == wanted
        if found:
            break
        start += GROUP
    while bits[U64(start)] != wanted:
        start += 1
    return start


@kernel
def many_classes(p: Any, bits: Any, bits_of_one: Any, tolerance: Any, best: Any, top: Any) -> Any:
    """The same as `few_classes`: the largest of the bits finds both scores above 1 and the top label."""
    bad = 0
    for i in range(best.shape[0]):
        total, most, union = _checked(p[i], bits[i])
        if union < 0 or most > bits_of_one or not (abs(total - 1.0) <= tolerance):
            bad += 1
            continue
        at = _first_at(bits[i], most)
        best[i], top[i] = at, p[i, U64(at)]
    return bad


# ---------------------------------------------------------------- sums per class and bin


@inner
def _bin_of(v: Any, bins: Any, step: Any) -> Any:
    """The bin of one valid score."""
    above = I64(v * np.float64(bins) + 0.5)
    return U64(min(max(above - I64(v <= np.float64(above) * step), I64(0)), I64(bins - 1)))


@inner
def _move(table: Any, totals: Any) -> None:
    """Add a table to the totals, and empty it."""
    for j in range(table.shape[0]):
        totals[j] += table[j]
        table[j] = 0.0


@kernel
def few_class_sums(
    p: Any, y: Any, classes: Any, bins: Any, tolerance: Any, offset: Any, lanes: Any, totals: Any, hits: Any
) -> Any:
    """Add sums of p and rows per copy, class and bin to `totals`, and positives per class and bin to `hits`.

    Returns the number of rows that break a rule. `p` is flat; `offset` is the place of the first bin of each of the
    scores of a block.
    """
    n, step, wrong, bad, since = y.shape[0], 1.0 / np.float64(bins), I64(0), 0, 0
    rows, index = offset.shape[0] // classes, np.empty(offset.shape[0], np.uint32)
    for start in range(0, n, rows):
        m = min(n - start, rows)
        score = p[start * classes : (start + m) * classes]
        wrong |= places(score, bins, step, offset, 2, index)
        for i in range(m):
            total, first = 0.0, U64(i * classes)
            for k in range(classes):
                at, v = U64(index[first + U64(k)]), np.float64(score[first + U64(k)])
                total += v
                sums, count = lanes[at] + v, lanes[at + U64(1)] + 1.0
                lanes[at], lanes[at + U64(1)] = sums, count
            label = U64(y[start + i])
            if label >= U64(classes) or not (abs(total - 1.0) <= tolerance):
                bad += 1
            else:
                hits[(U64(index[first + label]) >> U64(1)) % U64(hits.shape[0])] += 1.0
        since += m
        if since >= FLUSH:
            since = 0
            _move(lanes, totals)
    _move(lanes, totals)
    return bad + I64(wrong < 0)


@reordering
def _first_bin(row: Any, bits: Any, edge: Any, bits_of_one: Any, bits_of_edge: Any, first: Any) -> Any:
    """Add the scores of the first bin to the sums of their classes.

    Returns the sum of the row, a negative number if a score is bad, and one if a score is beyond the first bin.
    """
    total, wrong, beyond = 0.0, bits[0], bits_of_edge
    for k in range(row.shape[0]):
        v, b = np.float64(row[k]), bits[k]
        total += v
        wrong |= bits.dtype.type(bits_of_one - b) | b
        beyond |= bits.dtype.type(bits_of_edge - b)
        first[k] += v if v <= edge else 0.0
    return total, wrong, beyond


@inner
def _beyond(bits: Any, bits_of_edge: Any, chosen: Any) -> Any:
    """List the classes whose score is beyond the first bin; how many there are. `chosen` has room for one more."""
    many, classes = U64(0), bits.shape[0]
    whole = classes - classes % GROUP
    for start in range(0, whole, GROUP):
        below = bits[U64(start)] - bits[U64(start)]
        for k in range(GROUP):
            below |= bits.dtype.type(bits_of_edge - bits[U64(start + k)])
        if below < 0:
            for k in range(start, start + GROUP):
                chosen[many] = k
                many += U64(bits[U64(k)] > bits_of_edge)
    for k in range(whole, classes):
        chosen[many] = k
        many += U64(bits[U64(k)] > bits_of_edge)
    return many


@inner
def _beyond_of_few(bits: Any, bits_of_edge: Any, chosen: Any) -> Any:
    """The same without a look at groups, in which ones to list could not be foreseen."""
    many = U64(0)
    for k in range(bits.shape[0]):
        chosen[many] = k
        many += U64(bits[U64(k)] > bits_of_edge)
    return many


@inner
def _other_bins(row: Any, chosen: Any, bins: Any, step: Any, table: Any) -> None:
    """Add the scores of the chosen classes."""
    for j in range(chosen.shape[0]):
        k = U64(chosen[j])
        v = np.float64(row[k])
        at = (k * U64(bins) + _bin_of(v, bins, step)) * U64(2)
        sums, count = table[at] + v, table[at + U64(1)] + 1.0
        table[at], table[at + U64(1)] = sums, count


@kernel
def many_class_sums(
    p: Any, bits: Any, y: Any, bins: Any, tolerance: Any, limits: Any, table: Any, totals: Any, hits: Any
) -> Any:
    """The same as `few_class_sums`, without the rows of the first bins. `limits` are the bits of the first edge and 1.

    `table` and `totals` have a place per class after those per class and bin, for the sums of the first bins.
    """
    classes, step, bad, since = p.shape[1], 1.0 / np.float64(bins), 0, 0
    first, chosen, few = table[classes * bins * 2 :], np.empty(classes + 1, np.int32), classes < FEW
    for i in range(y.shape[0]):
        total, wrong, beyond = _first_bin(p[i], bits[i], step, limits[1], limits[0], first)
        label = U64(y[i])
        if wrong < 0 or label >= U64(classes) or not (abs(total - 1.0) <= tolerance):
            bad += 1
            continue
        if beyond < 0:
            many = _beyond_of_few(bits[i], limits[0], chosen) if few else _beyond(bits[i], limits[0], chosen)
            _other_bins(p[i], chosen[:many], bins, step, table)
        hits[label * U64(bins) + _bin_of(np.float64(p[i, label]), bins, step)] += 1.0
        since += 1
        if since == FLUSH:
            since = 0
            _move(table, totals)
    _move(table, totals)
    return bad
