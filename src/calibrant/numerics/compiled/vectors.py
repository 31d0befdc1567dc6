"""Neighbouring numbers of a table as one vector, and its lines fetched ahead: what a loop cannot say by itself.

Numba leaves additions to neighbouring numbers one by one, each with a read and a write of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import extending
from numba.core import types

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
