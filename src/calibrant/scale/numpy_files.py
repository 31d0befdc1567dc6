"""NumPy's files as tables: the arrays of an ``.npz`` by name, the columns of an ``.npy`` by number.

A matrix called ``p`` is the columns ``p_0``, ``p_1`` and so on. Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import fail


def numpy_table(path: str) -> tuple[Any, dict[str, str]]:
    """The columns of a file, which have the rows that most arrays have, and why other arrays are no columns."""
    import pyarrow as pa

    arrays, refused = _arrays(path)
    sizes = Counter(len(array) for array in arrays.values())
    if not sizes:
        fail(f"Cannot read {path!r}: {next(iter(refused.values()), 'it holds no arrays.')}")
    rows = max(sizes, key=lambda size: (sizes[size], size))
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if len(array) != rows:
            refused[name] = f"The array {name!r} of {path!r} has {len(array):,} rows, the others have {rows:,}."
            continue
        for column, values in _columns(name, array):
            try:
                columns[column] = pa.array(values)
            except (pa.ArrowException, TypeError) as error:
                refused[column] = f"The array {column!r} of {path!r} cannot be used: {error}."
    return pa.table(columns), refused


#: What NumPy says of files that are damaged, or hold Python objects.
_FAILURES = (ValueError, OSError, EOFError, zipfile.BadZipFile)


def _arrays(path: str) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of one or two dimensions by name, and why others cannot be used; that of an ``.npy`` has none."""
    arrays: dict[str, NDArray[Any]] = {}
    refused: dict[str, str] = {}
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            loaded = {"": loaded} if isinstance(loaded, np.ndarray) else loaded
            for name in loaded:
                try:
                    array = loaded[name]
                except _FAILURES as error:
                    refused[name] = f"The array {name!r} of {path!r} cannot be read: {error}"
                    continue
                if array.ndim in (1, 2):
                    arrays[name] = array
                else:
                    refused[name] = f"The array {name!r} of {path!r} has {array.ndim} dimensions, not one or two."
    except _FAILURES as error:
        fail(f"Cannot read {path!r} as arrays of NumPy: {error}", cause=error)
    return arrays, refused


def _columns(name: str, array: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The columns of an array under their names, in types that Arrow has."""
    kind = array.dtype
    if kind.names is not None:
        for part in kind.names:
            yield from _columns(f"{name}_{part}" if name else part, array[part])
    elif array.ndim == 2:
        for place in range(array.shape[1]):
            yield from _columns(f"{name}_{place}" if name else str(place), array[:, place])
    else:
        native = array.astype(np.float32 if kind == np.float16 else kind.newbyteorder("="), copy=False)
        yield name or "0", np.ascontiguousarray(native)
