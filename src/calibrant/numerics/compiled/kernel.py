"""How loops are compiled, and the numbers that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: Rows of a block, which stays in the first-level cache.
BLOCK = 1024

#: Terms after which a running sum is moved to its total, so that no sum has many terms.
TERMS = 1024

#: The types that indices and whole numbers are computed in: the test for negative indices would double the time.
U64, I64 = np.uint64, np.int64

#: The bits of 1.0: as whole numbers, the bits of floats in [0, 1] go from 0 to these.
ONE = np.int64(1023 << 52)


def polynomial(function: Callable[[Any], Any], low: float, high: float, degree: int) -> tuple[float, ...]:
    """The coefficients of a polynomial near a function between `low` and `high`, where Chebyshev interpolates it."""
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    x, unit = (low + high) / 2 + (high - low) / 2 * nodes, max(abs(low), abs(high))
    found = np.linalg.solve(np.vander(x / unit, increasing=True), function(x))
    return tuple((found / unit ** np.arange(degree + 1)).tolist())


def atanh_ratio(square: Any) -> Any:
    """atanh(s) / s by the square of s: what logarithms are made of, log(a / b) = 2 atanh((a - b) / (a + b))."""
    s = np.sqrt(square)
    return np.arctanh(s) / s


def kernel(function: Kernel) -> Kernel:
    """Compile a loop, keeping the machine code on disk where a folder for it can be written."""
    try:
        return _compiled(function, cache=True)
    except RuntimeError:
        return _compiled(function)


def inner(function: Kernel) -> Kernel:
    """Compile a loop that only others call: it is kept on disk with them, and looking for its own file takes time."""
    return _compiled(function)


def contracting(function: Kernel) -> Kernel:
    """Compile an inner loop whose products may be added without rounding."""
    return _compiled(function, "contract")


def reordering(function: Kernel) -> Kernel:
    """Compile an inner loop whose sums may be added in any order, and products without rounding."""
    return _compiled(function, "reassoc", "contract", "nsz")


def _compiled(function: Kernel, *allowed: str, **disk: bool) -> Kernel:
    """Compile without the interpreter's lock. Nothing may assume that there are no NaN: the checks rely on them."""
    options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": {*allowed}}
    options |= disk
    return cast(Kernel, numba.njit(**options)(function))


@inner
def to_totals(place: Any, table: Any, totals: Any, sums: Any) -> None:
    """Move the sums at a place of a table to its totals.

    Numba notices changes of the file that a loop is in, and not of those that it calls: after a change here, remove
    the machine code on disk.
    """
    for j in range(sums):
        totals[place + U64(j)] += table[place + U64(j)]
        table[place + U64(j)] = 0.0
