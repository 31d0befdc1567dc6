"""Derivatives of the log loss of softmax: temperature and vector scaling, each in one pass over the matrix.

Exponentials are powers of two made of arithmetic that every processor has for vectors. Loops that find them add nothing
up across rows: constants and running sums together are more than the registers hold, which doubles the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.kernel import (
    BLOCK,
    I64,
    ONE,
    U64,
    atanh_ratio,
    contracting,
    inner,
    kernel,
    polynomial,
    reordering,
)

#: Rows between two additions to the totals of the temperature, so that no running sum has many terms.
ROWS = 1024

#: Rows of vector scaling worked on at once: long enough for memory that is read class by class.
STRETCH = 4096

#: Lower powers of two count as this one, which is nothing beside the highest of a row, 1.
_LOWEST = -1000.0

#: Added to a number below 2^51, this leaves the nearest whole number in the last bits.
_TO_WHOLE = 1.5 * 2.0**52

_LN2 = float(np.log(2.0))


#: 2^f for |f| up to 1/2, off by less than 1.5e-14.
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = polynomial(np.exp2, -0.5, 0.5, 9)

#: For |s| up to 1/3, off by less than 1e-15.
_A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9 = polynomial(atanh_ratio, 0.0, 1 / 9, 9)

_MANTISSA = I64((1 << 52) - 1)


@contracting
def power_of_two(t: Any) -> Any:
    """2^t for |t| up to 1020: the whole part goes to the exponent by its bits, the rest to a polynomial."""
    shifted = np.float64(t + _TO_WHOLE)
    f = t - (shifted - _TO_WHOLE)
    y = _C9 * f + _C8
    y = y * f + _C7
    y = y * f + _C6
    y = y * f + _C5
    y = y * f + _C4
    y = y * f + _C3
    y = y * f + _C2
    y = y * f + _C1
    y = y * f + _C0
    return I64(np.float64(y).view(np.int64) + (shifted.view(np.int64) << I64(52))).view(np.float64)


@contracting
def logarithm(x: Any) -> Any:
    """The log of a positive normal number."""
    bits = np.float64(x).view(np.int64)
    power = np.float64(np.int32(bits >> I64(52)) - np.int32(1023))
    mantissa = I64((bits & _MANTISSA) | ONE).view(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    q = s * s
    r = _A9 * q + _A8
    r = r * q + _A7
    r = r * q + _A6
    r = r * q + _A5
    r = r * q + _A4
    r = r * q + _A3
    r = r * q + _A2
    r = r * q + _A1
    r = r * q + _A0
    return power * _LN2 + 2.0 * s * r


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
    n, factor = weight.shape[0], b / _LN2
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
        value += share[j] * (logarithm(total[j]) + top[j] * _LN2)
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

    `z` and `p` are class by row; `p` becomes the probabilities times the share, and the sums of p z and of p are added
    to `pulled`. Logits that are safe are below 300.
    """
    value, slope, intercept = 0.0, slope / _LN2, intercept / _LN2
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
