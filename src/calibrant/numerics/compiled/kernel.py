"""What compiled loops share: how they are compiled, polynomials, and operations on vectors of neighbouring numbers.

The vector operations are written in LLVM's language because a Numba loop cannot express them: Numba adds to
neighbouring numbers one by one, each with a read and a write of its own, and cannot fetch a line of the cache ahead.
Without them, 5 million rows take a tenth to a fifth longer in bins of equal width, and half as long again in a hybrid
grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import types

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: Rows of a block, which stays in the first-level cache. Speed: benchmarks/fast.py; no result depends on it.
BLOCK = 1024

#: Terms after which a running sum is moved to its total. Derived: 1024 additions lose at most 1e-13 of a sum.
TERMS = 1024

#: The types that indices and whole numbers are computed in: the test for negative indices would double the time.
U64, I64 = np.uint64, np.int64

#: The bits of 1.0: as whole numbers, the bits of floats in [0, 1] go from 0 to these. Derived: IEEE 754.
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


def horner(coefficients: Sequence[float]) -> Callable[[Any], Any]:
    """The compiled polynomial with these coefficients, the constant first; its loop, of known length, is unrolled."""
    highest, *rest = coefficients[::-1]
    others = tuple(rest)

    def value(x: Any) -> Any:
        r = highest
        for coefficient in others:
            r = r * x + coefficient
        return r

    return contracting(value)


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

    After a change here, remove the machine code on disk: Numba notices only changes of the file that a loop is in.
    """
    for j in range(sums):
        totals[place + U64(j)] += table[place + U64(j)]
        table[place + U64(j)] = 0.0


#: Loops call these functions without the context of types that they are defined with.
intrinsic = cast(Callable[[Callable[..., Any]], Callable[..., Any]], extending.intrinsic)

_WHOLE, _BYTES = ir.IntType(32), ir.IntType(8).as_pointer()


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """The address of a place of an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


@intrinsic
def add_at(_typing: Any, array: Any, at: Any, values: Any) -> Any:
    """Add some values to as many neighbouring float64 from a place on; the first of the results."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.DoubleType(), signature.args[2].count)
        added = ir.Constant(vector, ir.Undefined)
        for j in range(vector.count):
            added = builder.insert_element(added, builder.extract_value(arguments[2], j), _WHOLE(j))
        place = builder.bitcast(_place(context, builder, signature.args[0], *arguments[:2]), vector.as_pointer())
        found = builder.fadd(builder.load(place, align=8), added)
        builder.store(found, place, align=8)
        return builder.extract_element(found, _WHOLE(0))

    return types.float64(array, at, values), code


@intrinsic
def fetch(_typing: Any, array: Any, at: Any) -> Any:
    """Ask for the line of the cache that holds a place of an array, to be written to soon, without waiting for it."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature.args[0], *arguments), _BYTES)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _WHOLE, _WHOLE, _WHOLE])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], kind)
        to_write, soon, data = _WHOLE(1), _WHOLE(3), _WHOLE(1)
        builder.call(prefetch, [place, to_write, soon, data])
        return context.get_dummy_value()

    return types.void(array, at), code
