r"""The best temperature: one number, found with slope, curvature and third derivative from one pass.

With b = 1 / T and the logits L of a row with outcome c, the total log loss f is convex in b, and its derivatives
are sums of the cumulants of L under softmax(b L):

.. math:: f'(b) = \sum_i w_i (\kappa_1 - L_{ic}), \quad f''(b) = \sum_i w_i \kappa_2,\ f'''(b) = \sum_i w_i \kappa_3

Halley's method on log b triples the number of right digits per pass. A first guess from a few thousand rows leaves
two passes over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType

import numpy as np

from calibrant.numerics.arrays import CHUNK, Codes, Floats
from calibrant.numerics.special import expit
from calibrant.numerics.switch import compiled

#: Bounds of the inverse temperature.
LOWEST, HIGHEST = 1e-7, 1e7

#: Ridge on b, per unit of weight and squared largest logit: gives separable data a finite optimum and moves
#: others by less than 1e-10.
RIDGE = 1e-14

#: Rows of the first guess, fewer where that many logits make up less.
_SAMPLE, _SAMPLED_LOGITS = 8192, 1 << 20

Derivatives = tuple[float, float, float]


def inverse_temperature(logits: Floats, codes: Codes, weight: Floats | None) -> float:
    """The b that minimises the log loss of softmax(b * logits)."""
    chosen = logits[np.arange(len(logits)), codes]
    guess = 1.0
    step = len(logits) // min(_SAMPLE, max(_SAMPLED_LOGITS // logits.shape[1], 512))
    if step > 1:
        some = slice(None, None, step)
        part = None if weight is None else weight[some]
        guess = _minimum(_softmax_derivatives(logits[some], chosen[some], part), guess, tolerance=1e-3)
    return _minimum(_softmax_derivatives(logits, chosen, weight), guess)


def inverse_temperature_of_cells(x: Floats, weight: Floats, positive: Floats) -> float:
    """The b that minimises the log loss of sigmoid(b * x) for cells of log odds `x`."""
    target = float(positive @ x)
    first, second = weight * x, weight * x * x
    third = second * x
    ridge = RIDGE * float(weight.sum()) * float(np.abs(x).max()) ** 2

    def derivatives(b: float) -> Derivatives:
        p = expit(b * x)
        spread = p * (1 - p)
        slope = float(first @ p) - target + ridge * b
        return slope, float(second @ spread) + ridge, float(third @ (spread * (1 - 2 * p)))

    return _minimum(derivatives, 1.0)


def _softmax_derivatives(logits: Floats, chosen: Floats, weight: Floats | None) -> Callable[[float], Derivatives]:
    """The derivatives of the total log loss, as a function of b."""
    target = _total(weight, chosen)
    largest = max(abs(float(logits.max())), abs(float(logits.min())))
    ridge = RIDGE * _total(weight, np.ones(len(logits))) * largest**2
    fast = compiled(logits.size, saves=20.0) if logits.flags.c_contiguous and logits.dtype == np.float64 else None
    sums_at = _numpy_sums(logits, weight) if fast is None else _compiled_sums(fast, logits, weight)

    def derivatives(b: float) -> Derivatives:
        slope, curvature, third = sums_at(b, b * largest < 300)
        return float(slope) - target + ridge * b, float(curvature) + ridge, float(third)

    return derivatives


def _numpy_sums(logits: Floats, weight: Floats | None) -> Callable[[float, bool], Floats]:
    """The first three derivatives of log sum exp(b logits), summed over rows, and whether b needs no shift of them."""
    size = logits.shape[1]
    rows = max(CHUNK // 4 // size, 16)
    ones = np.ones(size)
    scratch = np.empty((rows, size))

    def sums_at(b: float, safe: bool) -> Floats:  # noqa: FBT001 - two numbers that belong together
        sums = np.zeros(3)
        for start in range(0, len(logits), rows):
            part = logits[start : start + rows]
            shift = 0.0 if safe else part.max(axis=1)
            if not safe:
                part = part - np.reshape(shift, (-1, 1))
            p = np.multiply(part, b, out=scratch[: len(part)])
            np.exp(p, out=p)
            moments = [p @ ones]
            for _ in range(3):
                p *= part
                moments.append(p @ ones)
            mean, square, cube = (moment / moments[0] for moment in moments[1:])
            cumulants = (mean + shift, square - mean**2, cube - 3 * mean * square + 2 * mean**3)
            w = None if weight is None else weight[start : start + rows]
            sums += [_total(w, cumulant) for cumulant in cumulants]
        return sums

    return sums_at


def _compiled_sums(fast: ModuleType, logits: Floats, weight: Floats | None) -> Callable[[float, bool], Floats]:
    """The same by a compiled loop."""
    n, flat = len(logits), logits.reshape(-1)
    weights = np.ones(n) if weight is None else np.ascontiguousarray(weight, np.float64)
    shifts = cache(lambda: logits.max(axis=1))

    def sums_at(b: float, safe: bool) -> Floats:  # noqa: FBT001 - two numbers that belong together
        sums, shift = np.zeros((-(-n // fast.ROWS), 3)), np.empty(0) if safe else shifts()
        fast.temperature(flat, b, shift, weights, sums)
        total = np.ascontiguousarray(sums.T).sum(axis=1)  # in pairs
        total[0] += 0.0 if safe else weights @ shift
        return total

    return sums_at


def _minimum(derivatives: Callable[[float], Derivatives], guess: float, *, tolerance: float = 1e-5) -> float:
    """Where the slope crosses zero: Halley's method on log b, kept inside a bracket that shrinks.

    A step below `tolerance` is the last: what is left is its cube.
    """
    low, high, u = np.log(LOWEST), np.log(HIGHEST), np.log(guess)
    for _ in range(100):
        b = float(np.exp(u))
        slope, curvature, third = derivatives(b)
        if slope == 0:
            break
        low, high = (low, u) if slope > 0 else (u, high)
        step = _halley_step(slope, b * curvature, b * curvature + b * b * third)
        inside = low < u + step < high
        if not inside and low == np.log(LOWEST) and derivatives(LOWEST)[0] >= 0:
            return LOWEST  # the scores point the wrong way
        u = u + step if inside else (low + high) / 2
        if (inside and abs(step) < tolerance) or high - low < 1e-12:
            break
    return float(np.exp(u))


def _halley_step(value: float, first: float, second: float) -> float:
    """Step to the root of a rising function; Newton's where Halley's is unsafe."""
    if first <= 0:
        return np.inf
    newton = -value / first
    bend = 1 + newton * second / (2 * first)
    return newton / bend if bend > 0.25 else newton


def _total(weight: Floats | None, values: Floats) -> float:
    return float(values.sum() if weight is None else weight @ values)
