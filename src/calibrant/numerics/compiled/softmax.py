"""Derivatives of the log loss of softmax: temperature and vector scaling, each in one pass over the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.kernel import I64, U64, contracting, kernel, reordering

#: Rows between two additions to the totals, so that no running sum has many terms.
ROWS = 1024

_LOG2_E, _LN2_HIGH, _LN2_LOW = 1 / float(np.log(2.0)), 0.6931471803691238, 1.9082149292705877e-10


def _polynomial() -> tuple[float, ...]:
    """Of degree 10: exp(r) for |r| up to ln(2) / 2, off by less than 1e-15."""
    r = np.cos(np.pi * (np.arange(11) + 0.5) / 11) * (np.log(2.0) / 2)  # where Chebyshev interpolates
    scaled = r / (np.log(2.0) / 2)
    found = np.linalg.solve(np.vander(scaled, increasing=True), np.exp(r))
    return tuple((found / (np.log(2.0) / 2) ** np.arange(11)).tolist())


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = _polynomial()


@contracting
def _exp(x: Any) -> Any:
    """exp(x) for x up to 700, made of arithmetic that every processor has for vectors; 3e-308 below -708."""
    x = x if x > -708.0 else -708.0
    power = np.floor(x * _LOG2_E + 0.5)
    r = (x - power * _LN2_HIGH) - power * _LN2_LOW
    y = _C10 * r + _C9
    y = y * r + _C8
    y = y * r + _C7
    y = y * r + _C6
    y = y * r + _C5
    y = y * r + _C4
    y = y * r + _C3
    y = y * r + _C2
    y = y * r + _C1
    y = y * r + _C0
    return y * I64(I64(np.int32(power) + np.int32(1023)) << I64(52)).view(np.float64)


@reordering
def _moments(row: Any, b: Any, shift: Any) -> Any:
    """The sums of exp(b d) d^j over the logits less the shift, j = 0 .. 3."""
    zeroth, first, second, third = 0.0, 0.0, 0.0, 0.0
    for k in range(row.shape[0]):
        d = row[k] - shift
        e = _exp(b * d)
        zeroth += e
        e *= d
        first += e
        e *= d
        second += e
        third += e * d
    return zeroth, first, second, third


@kernel
def temperature(logits: Any, b: Any, shifts: Any, weight: Any, sums: Any) -> None:
    """The weighted first three derivatives of log sum exp(b logits) by b, added to `sums`: one row per `ROWS` rows."""
    for i in range(logits.shape[0]):
        shift, w, to = shifts[i], weight[i], U64(i) // U64(ROWS)
        zeroth, first, second, third = _moments(logits[i], b, shift)
        mean, square, cube = first / zeroth, second / zeroth, third / zeroth
        sums[to, 0] += w * (mean + shift)
        sums[to, 1] += w * (square - mean * mean)
        sums[to, 2] += w * (cube - 3.0 * mean * square + 2.0 * mean * mean * mean)


@reordering
def _top(z: Any, slope: Any, intercept: Any, start: Any, p: Any, top: Any) -> None:
    """The logits z slope + intercept of the rows from `start` on, as `p`, and their maxima."""
    for k in range(z.shape[0]):
        for j in range(top.shape[0]):
            v = z[k, U64(start + j)] * slope[k] + intercept[k]
            p[k, U64(start + j)] = v
            top[j] = v if v > top[j] else top[j]


@contracting
def _exponentials(start: Any, top: Any, total: Any, p: Any) -> None:
    for k in range(p.shape[0]):
        for j in range(top.shape[0]):
            e = _exp(p[k, U64(start + j)] - top[j])
            p[k, U64(start + j)] = e
            total[j] += e


@reordering
def _gradient(z: Any, start: Any, factor: Any, p: Any, pulled: Any) -> None:
    for k in range(z.shape[0]):
        first, second = 0.0, 0.0
        for j in range(factor.shape[0]):
            e = p[k, U64(start + j)] * factor[j]
            p[k, U64(start + j)] = e
            first += e * z[k, U64(start + j)]
            second += e
        pulled[0, k], pulled[1, k] = first, second


@kernel
def vector_scaling(z: Any, slope: Any, intercept: Any, share: Any, start: Any, end: Any, p: Any, pulled: Any) -> Any:
    """The log of the sums of exp(slope z + intercept) over classes of some rows, weighted by their share.

    `z` and `p` are class by row; `p` becomes the probabilities times the share, `pulled` the sums of p z and of p.
    """
    top, total = np.full(end - start, -np.inf), np.zeros(end - start)
    _top(z, slope, intercept, start, p, top)
    _exponentials(start, top, total, p)
    value = 0.0
    for j in range(end - start):
        w = share[start + j]
        value += w * (np.log(total[j]) + top[j])
        total[j] = w / total[j]
    _gradient(z, start, total, p, pulled)
    return value
