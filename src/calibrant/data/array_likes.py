"""Arrays of other libraries as NumPy arrays: what they hold, what is missing, names of rows and columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, MappingView
from collections.abc import Set as AnySet
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

#: The types of pandas' missing values, recognised without importing pandas.
_MISSING_TYPES = ("NAType", "NaTType")

#: What can be iterated over but is no list of values: text, and what has no order or only by chance.
NO_LISTS = (str, bytes, Mapping, MappingView, AnySet)

#: Whole numbers up to this size, and not all beyond it, are numbers of double precision.
#: Derived: its significand has 53 bits.
EXACT = 2**53


class UnreadableArrayError(Exception):
    """What was given is no array of values. The sentence has `{name}` where the argument's name belongs."""

    def about(self, name: str) -> str:
        """The sentence on the argument called `name`."""
        return str(self).replace("{name}", name)


def unreadable(message: str, *, cause: BaseException | None = None) -> NoReturn:
    """Raise an `UnreadableArrayError`."""
    raise UnreadableArrayError(message) from cause


def read(values: Any) -> tuple[NDArray[Any], Mask | None]:
    """An array without a copy where there is one already, and which entries are missing (None: nothing is).

    Entries of object arrays stay as they are, see `typed`. NaN in an array of floats is a number here.
    """
    values = _plain(values)
    mask = None
    if isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), values.data
    try:
        array = np.asarray(values)
    except ValueError as error:
        unreadable("{name} must be a rectangular array, but its rows differ in length.", cause=error)
    except Exception as error:  # whatever another library raises on the way to NumPy
        unreadable(f"{{name}} cannot be read as an array ({type(error).__name__}: {error}).", cause=error)
    if array.dtype.kind == "V":
        fields = ", ".join(array.dtype.names or ("of unnamed bytes",))
        unreadable(f"{{name}} is a structured array ({fields}): pass plain numbers, e.g. one field.")
    if array.dtype.kind == "T":  # text of variable width, which few functions of NumPy know
        array = array.astype(object)
    if not isinstance(values, np.ndarray):
        array = _lossless(values, array)
    if array.ndim == 0 and (array.dtype == object or mask is not None):
        unreadable(_no_sequence(values))
    if array.dtype == object:
        found = np.fromiter(map(is_missing, array.flat), dtype=bool, count=array.size).reshape(array.shape)
        mask = found if mask is None else mask | found
        text = next((value for value in array.flat if ends_in_null(value)), None)  # NumPy would take off the nulls
        if text is not None:
            unreadable(f"{{name}} holds text that ends in a null character ({text!r}): remove it, e.g. .rstrip('\\0').")
    elif array.dtype.kind in "mM":
        mask = np.isnat(array) if mask is None else mask | np.isnat(array)
    return array, mask if mask is not None and mask.any() else None


def typed(array: NDArray[Any], missing: Mask | None) -> NDArray[Any]:
    """Objects as numbers where they are numbers, else as text. Missing entries become 0 or an empty text."""
    if array.dtype != object:
        return array
    present = list(array[~missing]) if missing is not None else list(array.flat)
    if any(isinstance(value, (list, tuple, np.ndarray)) for value in present):
        unreadable("{name} must be a rectangular array, but its rows differ in length.")
    text = [isinstance(value, (str, bytes)) for value in present]
    if any(text) and not all(text):
        one, other = present[text.index(True)], present[text.index(False)]
        unreadable(f"{{name}} mixes text and other values ({one!r} and {other!r}): convert it to one type.")
    kind = str if any(text) else _common_type(present)
    if kind is float and not all(map(is_exact, present)):
        known: dict[float, Any] = {}
        for value in present:
            other = known.setdefault(float(value) if abs(value) < 1e308 else np.inf, value)
            if other != value and isinstance(value, (int, np.integer)) and isinstance(other, (int, np.integer)):
                numbers = f"whole numbers that double precision cannot distinguish ({other} and {value})"
                unreadable(f"{{name}} holds {numbers}.")
    filled = array.copy()
    if missing is not None:
        filled[missing] = "" if kind is str else 0
    try:
        return filled.astype(kind)
    except OverflowError as error:
        unreadable("{name} holds numbers beyond the range of double precision.", cause=error)
    except (TypeError, ValueError):  # dates and other objects: labels at most
        return filled.astype(str)


def is_missing(value: Any) -> bool:
    """Whether a single value stands for a missing one: None, NaN, NaT, pandas' NA, a masked entry."""
    if value is None or value is np.ma.masked or type(value).__name__ in _MISSING_TYPES:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (float, complex, np.inexact, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return False


def column_names(values: Any) -> tuple[Hashable, ...] | None:
    """What the columns of a data frame are called; None for arrays, and for frames that only number theirs."""
    if not hasattr(values, "__len__"):  # lazy frames, whose names cost a query
        return None
    names = getattr(values, "column_names", None)  # pyarrow, whose `columns` are the values
    names = getattr(values, "columns", None) if names is None else names
    if names is None or callable(names):
        return None
    plain = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    return None if plain == tuple(range(len(plain))) else plain


def row_index(values: Any) -> Any:
    """The index of a pandas object (an index is its own); None for everything else."""
    if not type(values).__module__.startswith("pandas"):
        return None
    return values.index if hasattr(values, "iloc") else values if hasattr(values, "get_indexer") else None


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """`array` itself if nobody can write to its memory through an array, else a copy that nobody can write to."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            copy = array.copy()
            copy.flags.writeable = False
            return copy
        owner = owner.base
    return array


def _plain(values: Any) -> Any:
    """What NumPy can read, of the containers it would misread."""
    if hasattr(values, "tocsr"):  # first, since some of them are mappings too
        unreadable("{name} is a sparse matrix, and sparse input is not supported: pass {name}.toarray().")
    if values is None or isinstance(values, NO_LISTS) or hasattr(values, "__next__"):
        unreadable(_no_sequence(values))
    if hasattr(values, "detach"):  # a torch tensor, recognised without importing torch
        return _of_torch(values)
    if isinstance(values, (list, tuple)) and any(isinstance(value, np.ma.MaskedArray) for value in values):
        return np.ma.array(values)
    dtype = getattr(values, "dtype", None)  # columns with nulls are objects: NumPy would make NaN and floats of them
    if row_index(values) is not None and dtype is not None and not isinstance(dtype, np.dtype):
        return values.to_numpy(dtype=object) if values.isna().any() else values
    nulls = getattr(values, "null_count", 0)  # a number in pyarrow, a method in Polars
    listed = getattr(values, "to_pylist", None) or getattr(values, "to_list", None)
    if listed is None or not (nulls() if callable(nulls) and hasattr(values, "to_list") else nulls):
        return values
    objects = np.empty(len(values), dtype=object)
    objects[:] = listed()
    return objects


def _of_torch(values: Any) -> Any:
    if values.device.type != "cpu":
        unreadable(f"{{name}} lives on device {str(values.device)!r}; move it with {{name}}.cpu() first.")
    if "strided" not in str(values.layout):
        unreadable("{name} is a sparse tensor, and sparse input is not supported: pass {name}.to_dense().")
    values = values.detach()
    return values.float() if str(values.dtype) == "torch.bfloat16" else values


def _no_sequence(values: Any) -> str:
    kind = "None" if values is None else f"an object of type {type(values).__name__}"
    ordered = hasattr(values, "__iter__") and not isinstance(values, (str, bytes, Mapping, AnySet))
    remedy = ": pass list({name})" if ordered else ""
    return f"{{name}} must be an array or a list with one entry per row, got {kind}{remedy}."


def _lossless(values: Any, array: NDArray[Any]) -> NDArray[Any]:
    """`array`, or the objects it was made of where NumPy made others of them.

    Text ends at its last character that is not null, other values become text beside text, and whole numbers beyond
    2^53 are rounded beside fractions.
    """
    if array.dtype.kind in "US":
        kind = str if array.dtype.kind == "U" else bytes
        objects = np.asarray(values, dtype=object)
        lost = any(not isinstance(value, kind) or ends_in_null(value) for value in objects.flat)
        return objects if lost else array
    if isinstance(values, (list, tuple)) and array.dtype.kind == "f" and not np.abs(array).max(initial=0) < EXACT:
        objects = np.asarray(values, dtype=object)
        return array if all(map(is_exact, objects.flat)) else objects
    return array


def is_exact(value: Any) -> bool:
    """Whether a value is none of the whole numbers that double precision rounds."""
    return not isinstance(value, (int, np.integer)) or -EXACT <= int(value) <= EXACT


def ends_in_null(value: Any) -> bool:
    """Whether a text has a null character at its end, which NumPy takes for padding."""
    return isinstance(value, (str, bytes)) and value[-1:] in ("\0", b"\0")


def _common_type(values: list[Any]) -> type:
    """bool, int or float, whichever holds all of the values."""
    if all(isinstance(value, (bool, np.bool_)) for value in values):
        return bool
    whole = all(isinstance(value, (int, np.integer)) for value in values)
    limits = np.iinfo(np.int64)
    return int if whole and all(limits.min <= value <= limits.max for value in values) else float
