"""Compiled passes over matrices of class scores: checks, top labels, classwise sums, and derivatives of softmax.

Probabilities are checked by their bits: those of numbers below 0, of NaN and of -0.0 are negative whole numbers, and
those of numbers above 1 are larger than the bits of 1. Temperature and vector scaling take the derivatives of the log
loss in one pass over the matrix. Their exponentials are powers of two made of arithmetic that every processor has for
vectors. Loops that find them add nothing up across rows: constants and running sums together are more than the
registers hold, which doubles the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.bins import BIAS, LN2, parts, places
from calibrant.numerics.compiled.kernel import (
    BLOCK,
    I64,
    U64,
    atanh_ratio,
    contracting,
    horner,
    inner,
    kernel,
    polynomial,
    reordering,
)

#: Scores of a block of rows of few classes, copies of their table, and rows between two additions to the totals.
#: Speed: benchmarks/fast.py; no result depends on it but for the rounding of sums.
SCORES, LANES, FLUSH = 2048, 2, 4096

#: Classes of a row that are compared at once. Speed: benchmarks/fast.py; no result depends on it.
GROUP = 16

#: Fewer classes are looked at one by one. Speed: benchmarks/fast.py; no result depends on it.
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

    Returns the number of bad rows. `p` is flat; `offset` is the place of the first bin of each of the scores of a
    block.
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
    """List the classes whose score is beyond the first bin; how many there are. `chosen` has room for one more.

    Groups to look at could not be foreseen among few classes.
    """
    many, classes = U64(0), bits.shape[0]
    whole = classes - classes % GROUP if classes >= FEW else 0
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
    first, chosen = table[classes * bins * 2 :], np.empty(classes + 1, np.int32)
    for i in range(y.shape[0]):
        total, wrong, beyond = _first_bin(p[i], bits[i], step, limits[1], limits[0], first)
        label = U64(y[i])
        if wrong < 0 or label >= U64(classes) or not (abs(total - 1.0) <= tolerance):
            bad += 1
            continue
        if beyond < 0:
            many = _beyond(bits[i], limits[0], chosen)
            _other_bins(p[i], chosen[:many], bins, step, table)
        hits[label * U64(bins) + _bin_of(np.float64(p[i, label]), bins, step)] += 1.0
        since += 1
        if since == FLUSH:
            since = 0
            _move(table, totals)
    _move(table, totals)
    return bad


#: Rows between two additions to the totals of the temperature. Derived: 1024 additions lose at most 1e-13 of a sum.
ROWS = 1024

#: Rows of vector scaling worked on at once: long enough for memory that is read class by class. Speed:
#: benchmarks/fast.py; no result depends on it but for the rounding of sums.
STRETCH = 4096

#: Lower powers of two count as this one. Derived: beside the highest of a row, 1, a float64 loses anything below
#: 2^-53.
_LOWEST = -1000.0

#: Added to a number below 2^51, this leaves the nearest whole number in the last bits. Derived: IEEE 754.
_TO_WHOLE = 1.5 * 2.0**52

#: 2^f for |f| up to 1/2. Derived: the lowest degree that is off by less than 1e-13 (1.5e-14).
_exp2 = horner(polynomial(np.exp2, -0.5, 0.5, 9))

#: atanh(s) / s by s^2 for |s| up to 1/3. Derived: the lowest degree that is off by less than 1e-14 (1e-15).
_atanh_ratio = horner(polynomial(atanh_ratio, 0.0, 1 / 9, 9))


@contracting
def power_of_two(t: Any) -> Any:
    """2^t for |t| up to 1020: the whole part goes to the exponent by its bits, the rest to a polynomial."""
    shifted = np.float64(t + _TO_WHOLE)
    y = _exp2(t - (shifted - _TO_WHOLE))
    return I64(np.float64(y).view(np.int64) + (shifted.view(np.int64) << I64(52))).view(np.float64)


@contracting
def logarithm(x: Any) -> Any:
    """The log of a positive normal number."""
    power, mantissa = parts(x)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return (power - BIAS) * LN2 + 2.0 * s * _atanh_ratio(s * s)


@inner
def _differences(logits: Any, shifts: Any, lowest: Any, d: Any) -> None:
    """The logits of some rows less the shifts of the rows."""
    classes = U64(d.shape[0] // shifts.shape[0])
    for i in range(shifts.shape[0]):
        for k in range(classes):
            at = U64(i) * classes + U64(k)
            v = logits[at] - shifts[i]
            d[at] = v if v > lowest else lowest


@contracting
def _powers(d: Any, factor: Any, e: Any) -> None:
    for i in range(d.shape[0]):
        e[i] = power_of_two(factor * d[i])


@reordering
def _moments(e: Any, d: Any, moments: Any) -> None:
    """The sums of e d^j over the classes of each row, j = 0 .. 3."""
    rows = moments.shape[1]
    classes = U64(d.shape[0] // rows)
    for i in range(rows):
        zeroth, first, second, third, row = 0.0, 0.0, 0.0, 0.0, U64(i) * classes
        for k in range(classes):
            v, x = e[row + U64(k)], d[row + U64(k)]
            zeroth += v
            v *= x
            first += v
            v *= x
            second += v
            third += v * x
        moments[0, i], moments[1, i], moments[2, i], moments[3, i] = zeroth, first, second, third


@reordering
def _cumulants(moments: Any, weight: Any) -> Any:
    """The weighted sums over rows of the first three cumulants."""
    first, second, third = 0.0, 0.0, 0.0
    for i in range(weight.shape[0]):
        w, scale = weight[i], 1.0 / moments[0, i]
        mean, square, cube = moments[1, i] * scale, moments[2, i] * scale, moments[3, i] * scale
        first += w * mean
        second += w * (square - mean * mean)
        third += w * (cube - 3.0 * mean * square + 2.0 * mean * mean * mean)
    return first, second, third


@kernel
def temperature(logits: Any, b: Any, shifts: Any, weight: Any, sums: Any) -> None:
    """The weighted first three derivatives of log sum exp(b d) by b, added to `sums`: one row of it per `ROWS` rows.

    `logits` are flat; d are the logits less the shift of their row. Without shifts, b times a logit may not exceed 300.
    """
    n, factor = weight.shape[0], b / LN2
    classes = logits.shape[0] // n
    size = max(1, BLOCK // classes)
    e, d, moments = np.empty(size * classes), np.empty(size * classes), np.empty((4, size))
    for start in range(0, n, size):
        m = min(n - start, size)
        z, many = logits[start * classes : (start + m) * classes], m * classes
        if shifts.shape[0]:
            _differences(z, shifts[start : start + m], _LOWEST / factor, d[:many])
            _powers(d[:many], factor, e)
            _moments(e, d[:many], moments[:, :m])
        else:
            _powers(z, factor, e)
            _moments(e, z, moments[:, :m])
        first, second, third = _cumulants(moments, weight[start : start + m])
        to = U64(start) // U64(ROWS)
        sums[to, 0] += first
        sums[to, 1] += second
        sums[to, 2] += third


@reordering
def _highest(z: Any, slope: Any, intercept: Any, start: Any, top: Any) -> None:
    """The highest logit z slope + intercept of the rows from `start` on."""
    for k in range(z.shape[0]):
        for j in range(top.shape[0]):
            v = z[k, U64(start + j)] * slope[k] + intercept[k]
            top[j] = v if v > top[j] else top[j]


@contracting
def _exponentials(z: Any, slope: Any, intercept: Any, start: Any, top: Any, total: Any, p: Any) -> None:
    for k in range(z.shape[0]):
        for j in range(top.shape[0]):
            t = z[k, U64(start + j)] * slope[k] + intercept[k] - top[j]
            e = power_of_two(t if t > _LOWEST else _LOWEST)
            p[k, U64(start + j)] = e
            total[j] += e


@reordering
def _logs(share: Any, top: Any, total: Any) -> Any:
    """The logs of totals of powers of two beyond the top, summed by share; a total becomes what normalises its row."""
    value = 0.0
    for j in range(share.shape[0]):
        value += share[j] * (logarithm(total[j]) + top[j] * LN2)
        total[j] = share[j] / total[j]
    return value


@reordering
def _gradient(z: Any, start: Any, factor: Any, p: Any, pulled: Any) -> None:
    for k in range(z.shape[0]):
        first, second = 0.0, 0.0
        for j in range(factor.shape[0]):
            e = p[k, U64(start + j)] * factor[j]
            p[k, U64(start + j)] = e
            first += e * z[k, U64(start + j)]
            second += e
        pulled[0, k] += first
        pulled[1, k] += second


@kernel
def vector_scaling(z: Any, slope: Any, intercept: Any, share: Any, safe: Any, p: Any, pulled: Any) -> Any:
    """The log of the sums of exp(slope z + intercept) over classes, summed over rows by their share.

    `z` and `p` are class by row; `p` becomes probabilities times the share, and sums of p z and of p are added to
    `pulled`. Logits that are safe are below 300.
    """
    value, slope, intercept = 0.0, slope / LN2, intercept / LN2
    tops, totals = np.zeros(STRETCH), np.empty(STRETCH)
    for start in range(0, share.shape[0], STRETCH):
        m = min(share.shape[0] - start, STRETCH)
        top, total = tops[:m], totals[:m]
        total[:] = 0.0
        if not safe:
            top[:] = -np.inf
            _highest(z, slope, intercept, start, top)
        _exponentials(z, slope, intercept, start, top, total, p)
        value += _logs(share[start : start + m], top, total)
        _gradient(z, start, total, p, pulled)
    return value
