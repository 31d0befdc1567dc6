"""Validation of input: every array or matrix a user hands over is read and checked here, once, and not again below.

A rule that is broken raises :class:`InvalidPredictions`, which names the argument, the rule, how many rows
break it and the first of them. Nothing is repaired in silence. Arrays of other libraries become NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, MappingView
from collections.abc import Set as AnySet
from decimal import Decimal
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.numerics.arrays import CHUNK, Codes, Floats, expit, softmax
from calibrant.numerics.binned_sums import checked_top_class
from calibrant.numerics.rows import row_blocks

Mask = NDArray[np.bool_]

#: The types of pandas' missing values, recognised without importing pandas.
_MISSING_TYPES = ("NAType", "NaTType")

#: What can be iterated over but is no list of values: text, and what has no order or only by chance.
NO_LISTS = (str, bytes, Mapping, MappingView, AnySet)

#: Whole numbers up to this size, and not all beyond it, are numbers of double precision.
#: Derived: its significand has 53 bits.
EXACT = 2**53

#: Probabilities that miss [0, 1] by no more than this are rounding, which `clip=True` repairs.
#: Derived: ten times the spacing of single precision at 1, 1.2e-7.
ROUNDING = 1e-6

#: By size in bytes: the whole number that has the bits of a float, and those of 1.0. Reference: IEEE 754.
_BITS_OF_ONE: dict[int, tuple[type[np.unsignedinteger[Any]], int]] = {
    4: (np.uint32, 0x3F80_0000),
    8: (np.uint64, 0x3FF0_0000_0000_0000),
}


class InvalidPredictions(ValueError):
    """Invalid input; the message names the argument, the rule, the number of offending rows and the first of them.

    Examples
    --------
    >>> import calibrant as cal
    >>> try:
    ...     cal.Binary([0, 2], [0.1, 0.4])
    ... except InvalidPredictions as error:
    ...     print(error)
    y_true must be 0 or 1, but 1 of 2 rows does not (first: y_true[1] = 2).
    """


class UnsupportedPredictions(TypeError):
    """A function was given predictions of a kind that it does not take, such as quantiles where a density is needed.

    Unlike any other TypeError it is no mistake of a program, so that a report may leave out what needs another kind.
    """


def fail(message: str, error: type[Exception] = InvalidPredictions, *, cause: BaseException | None = None) -> NoReturn:
    """Raise an error with this message; what was being handled is shown only as its cause."""
    raise error(message) from cause


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Any array-like (list, NumPy, pandas, polars, pyarrow, torch on the CPU) as a NumPy array, without a copy.

    Objects become numbers or text. Missing and masked values are refused, and so is what has no order or no rows.
    """
    array, missing = read(name, values)
    made = typed(name, array, missing)
    if missing is not None:
        bad = missing.reshape(len(array), -1).any(axis=1)
        are = "is" if bad.sum() == 1 else "are"
        fail(
            f"{name} must not be missing, but {bad.sum()} of {len(array)} rows {are} (first: "
            f"{name}[{int(np.argmax(bad))}] is missing). Leave such rows out of every argument."
        )
    return made


def require_aligned(**columns: Any) -> Any:
    """The index of the first pandas object (None without one); others must have the same."""
    return require_same_index(columns.items())


def require_same_index(
    columns: Iterable[tuple[str, Any]],
    *,
    remedy: str = "e.g. {name}.loc[{first}.index], or pass {name}.to_numpy() to pair them by position",
) -> Any:
    """`require_aligned` for columns of any name, with another remedy; what has no index is paired by position."""
    known = [(name, index) for name, values in columns if (index := row_index(values)) is not None]
    for name, index in known[1:]:
        first, reference = known[0]
        if index is reference or len(index) != len(reference) or index.equals(reference):
            continue
        differs = np.asarray(index != reference)
        row = int(np.argmax(differs)) if differs.shape == (len(index),) else 0
        ours, other = (one.item() if isinstance(one, np.generic) else one for one in (reference[row], index[row]))
        fail(
            f"{first} and {name} have different pandas indexes (first in row {row}: {ours!r} and {other!r}), so it is "
            f"not clear which rows belong together. Align them, {remedy.format(name=name, first=first)}."
        )
    return known[0][1] if known else None


def column(name: str, values: ArrayLike, *, length: int | None = None) -> NDArray[Any]:
    """One finite floating-point column; float32 stays float32, everything else becomes float64."""
    return _finite(name, _floats(name, one_dimension(name, as_array(name, values), length)))


def _floats(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "fiub":
        remedy = " Convert it to numbers first." if array.dtype.kind in "US" else ""
        kind = "text" if array.dtype.kind == "U" else str(array.dtype)
        fail(f"{name} must hold numbers, got {kind} values (first: {name}[0] = {array[0]!r}).{remedy}")
    return array if array.dtype.char in "fd" and array.dtype.isnative else array.astype(np.float64)


def _finite(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if not _spans(array, -np.inf, np.inf):
        require(name, array, np.isfinite(array), "must be finite")
    return array


def probabilities(name: str, values: ArrayLike, *, clip: bool = False, remedy: str = "") -> NDArray[Any]:
    """One column of numbers in [0, 1]; `remedy` is said where they are not, and not by rounding."""
    array = _floats(name, one_dimension(name, as_array(name, values), None))
    if _in_unit_interval_by_bits(array):
        return array
    return in_unit_interval(name, _finite(name, array), clip=clip, remedy=remedy)


def in_unit_interval(name: str, array: NDArray[Any], *, clip: bool, remedy: str = "") -> NDArray[Any]:
    """`array` itself if all of it lies in [0, 1]; with `clip`, rounding of at most 1e-6 is repaired."""
    if _spans(array, 0.0, 1.0):
        return array
    if clip and _spans(array, -ROUNDING, 1 + ROUNDING):
        return np.clip(array, 0.0, 1.0)
    bad = ~((array >= 0) & (array <= 1))
    rounding = bool(np.all((array[bad] >= -ROUNDING) & (array[bad] <= 1 + ROUNDING)))
    remedy = " All of them are rounding: pass clip=True to repair it." if rounding else remedy
    require(name, array, ~bad, "must lie in [0, 1]", remedy=remedy)
    return array


def binary_labels(name: str, values: ArrayLike, *, length: int | None = None) -> NDArray[np.int8]:
    """One column of 0 and 1 (or False and True), as int8."""
    array = one_dimension(name, as_array(name, values), length)
    if array.dtype == bool:
        return array.view(np.int8)
    if array.dtype.kind not in "fiu":
        fail(
            f"{name} must be 0 or 1, got {array.dtype} values (first: {name}[0] = {array[0]!r}); "
            f"pass Binary({name}, y_prob, positive=...) to say which label is the event, or use Multiclass."
        )
    labels = np.empty(len(array), np.int8)
    for start in range(0, len(array), CHUNK):
        chunk = array[start : start + CHUNK]
        if array.dtype.kind == "f":
            fits = bool(((chunk == 0) | (chunk == 1)).all())
        else:  # the union of all bits is 0 or 1 only if every label is
            fits = int(np.bitwise_or.reduce(chunk)) in (0, 1)
        if not fits:
            require(name, array, (array == 0) | (array == 1), "must be 0 or 1")
        labels[start : start + CHUNK] = chunk
    return labels


def weights(name: str, values: ArrayLike | None, *, length: int) -> Floats | None:
    """Row weights: finite, not negative, not all zero; None stays None and means one each.

    Weights are importance weights: their unit does not matter. Those so large or so small that their squares would
    not be numbers are multiplied by a power of 2^512, the same for all weights of the like size.
    """
    return weights_and_unit(name, values, length=length)[0]


def weights_and_unit(name: str, values: ArrayLike | None, *, length: int) -> tuple[Floats | None, int]:
    """`weights`, and the power of 2^512 that they were divided by."""
    if values is None:
        return None, 0
    array = column(name, values, length=length).astype(np.float64, copy=False)
    require(name, array, array >= 0, "must not be negative")
    if not array.any():
        fail(f"{name} must not be all zero, but all {len(array)} values are.")
    power = round(np.frexp(array.max())[1] / 512)
    return np.ldexp(array, -512 * power) if power else array, power


def matrix(name: str, values: ArrayLike, *, rows: int | None = None, columns: int | None = None) -> NDArray[Any]:
    """A finite two-dimensional floating-point array."""
    array = as_array(name, values)
    if array.ndim != 2 or 0 in array.shape:
        fail(f"{name} must have two dimensions and be non-empty, got shape {array.shape}.")
    for what, size, expected in zip(("rows", "columns"), array.shape, (rows, columns), strict=True):
        if expected is not None and size != expected:
            fail(f"{name} has {size} {what}, expected {expected}.")
    array = _floats(name, array)
    require(name, array, rows_where(array, lambda part: np.isfinite(part).all(axis=1)), "must be finite")
    return array


def rows_where(matrix: NDArray[Any], rule: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which rows follow a rule, looked at block by block: no temporary array is as large as the matrix."""
    return np.concatenate([rule(matrix[rows]) for rows in row_blocks(*matrix.shape)])


def as_number(value: Any) -> float:
    """A single real number as a float; NaN, which no rule of numbers allows, for everything else."""
    return float(value) if isinstance(value, (int, float, np.integer, np.floating)) else float("nan")


def fraction(name: str, value: float) -> float:
    """A single number strictly between 0 and 1."""
    if not 0 < as_number(value) < 1:
        fail(f"{name} must lie in (0, 1), got {value!r}.")
    return float(value)


def whole(name: str, value: int, *, minimum: int = 1) -> int:
    """A whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        fail(f"{name} must be a whole number of at least {minimum}, got {value!r}.", ValueError)
    return int(value)


def seed(value: int) -> int:
    """The seed of the random numbers: a whole number that is not negative."""
    return whole("seed", value, minimum=0)


class Simulated:
    """Options of what is simulated: checks `seed`, and that there are at least `least_draws` draws."""

    draws: int
    seed: int
    least_draws: ClassVar[int] = 1

    def __post_init__(self) -> None:
        seed(self.seed)
        whole("draws", self.draws, minimum=self.least_draws)


def require(name: str, array: NDArray[Any], ok: NDArray[np.bool_] | np.bool_, rule: str, *, remedy: str = "") -> None:
    """Raise unless every row is `ok`; the message counts the others and shows the first."""
    if ok.all():
        return
    first, bad = int(np.argmin(ok)), int((~ok).sum())
    shown = array[first]
    if np.ndim(shown) == 0:
        value = f"{shown:.9g}" if isinstance(shown, (float, int, np.number)) else repr(shown)
    else:
        value = np.array2string(shown, precision=6, threshold=6)
    does = "does" if bad == 1 else "do"
    fail(f"{name} {rule}, but {bad} of {len(array)} rows {does} not (first: {name}[{first}] = {value}).{remedy}")


def one_dimension(name: str, array: NDArray[Any], length: int | None) -> NDArray[Any]:
    """One column of the expected length; a single column of a matrix is one."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = " For several class probabilities use Multiclass." if array.ndim == 2 else ""
        fail(f"{name} must have one dimension, got shape {array.shape}.{hint}")
    if len(array) == 0:
        fail(f"{name} is empty.")
    if length is not None and len(array) != length:
        fail(f"{name} has {len(array)} rows, expected {length}.")
    return array


def _spans(array: NDArray[Any], low: float, high: float) -> bool:
    """Whether all of `array` lies in [low, high] and is finite; chunked, so that it costs one read."""
    for start in range(0, len(array), CHUNK):
        chunk = array[start : start + CHUNK]
        smallest, largest = chunk.min(), chunk.max()
        if not (smallest >= low and largest <= high and smallest > -np.inf and largest < np.inf):
            return False
    return True


def _in_unit_interval_by_bits(array: NDArray[Any]) -> bool:
    """Whether all floats lie in [0, 1], in one pass: as unsigned integers, their bits are at most those of 1.

    Negative numbers, NaN and infinity have larger bits. So has -0.0, which the slower check then lets pass.
    """
    if not array.flags.c_contiguous:
        return False
    whole, largest = _BITS_OF_ONE[array.dtype.itemsize]
    bits = array.view(whole)
    if len(bits) <= CHUNK:
        return bool(np.maximum.reduce(bits) <= largest)
    return all(np.maximum.reduce(bits[start : start + CHUNK]) <= largest for start in range(0, len(bits), CHUNK))


#: The most probable class of each row, and its probability.
Top = tuple[Codes, NDArray[Any]]

#: Rows of class probabilities may miss a sum of 1 by this much (float32 softmax over a thousand classes does).
#: Derived: the spacing of half precision at 1, 2^-10.
SUM_TOLERANCE = 1e-3


def class_probabilities(name: str, values: Any, *, clip: bool, logits: str = "logits=") -> NDArray[Any]:
    """A matrix of at least two columns in [0, 1] whose rows sum to 1; `logits` says how to give those instead."""
    return checked_class_probabilities(name, values, clip=clip, logits=logits)[0]


def checked_class_probabilities(
    name: str, values: Any, *, clip: bool = False, logits: str = "logits="
) -> tuple[NDArray[Any], Top | None]:
    """`class_probabilities`, with the top class of each row and its probability if the check came by them."""
    if type(values) is np.ndarray and values.ndim == 2 and values.shape[0] and values.shape[1] > 1:
        top = checked_top_class(values, SUM_TOLERANCE)
        if top is not None:
            return values, top
    matrix = _one_per_class(name, values)
    if clip:
        matrix = in_unit_interval(name, matrix.ravel(), clip=clip).reshape(matrix.shape)
    instead = f" Pass unnormalised scores with {logits}."
    inside = _within(matrix, 0.0)
    if not inside.all():
        rounding = bool(_within(matrix, ROUNDING).all())
        remedy = " All of them are rounding: pass clip=True to repair it." if rounding else instead
        require(name, matrix, inside, "must lie in [0, 1]", remedy=remedy)
    sums = matrix.sum(axis=1, dtype=np.float64)
    fine = np.abs(sums - 1) <= SUM_TOLERANCE
    require(name, matrix, fine, "must have rows that sum to 1", remedy=instead)
    return matrix, None


def of_logits(name: str, values: Any) -> NDArray[Any]:
    """The softmax of each row of logits, in the precision of the logits but computed in double precision."""
    logits = _one_per_class(name, values)
    result = np.empty_like(logits)
    for rows in row_blocks(*logits.shape):
        result[rows] = softmax(logits[rows].astype(np.float64))
    return result


def of_log_odds(name: str, values: Any) -> NDArray[Any]:
    """The probability of each log-odds, in their precision but computed in double precision."""
    odds = column(name, values)
    return expit(odds.astype(np.float64, copy=False)).astype(odds.dtype, copy=False)


def label_shares(matrix: NDArray[Any]) -> Floats:
    """Outcomes with one column per class: a single 1 per row, or probabilities."""
    sums = matrix.sum(axis=1, dtype=np.float64)
    valid = _within(matrix, 0.0) & (np.abs(sums - 1) <= SUM_TOLERANCE)
    remedy = " If more than one class can be true for a row, use one Binary task per class."
    rule = "with one column per class must have a single 1 per row, or probabilities that sum to 1"
    require("y_true", matrix, valid, rule, remedy=remedy)
    return matrix.astype(np.float64)


def _within(matrix: NDArray[Any], margin: float) -> NDArray[np.bool_]:
    """Which rows lie in [0, 1], but for a margin."""
    return rows_where(matrix, lambda part: np.asarray(((part >= -margin) & (part <= 1 + margin)).all(axis=1)))


def _one_per_class(name: str, values: Any) -> NDArray[Any]:
    checked = matrix(name, values)
    if checked.shape[1] < 2:
        fail(f"{name} needs one column per class, got shape {checked.shape}. For one column use Binary.")
    return checked


def read(name: str, values: Any) -> tuple[NDArray[Any], Mask | None]:
    """An array without a copy where there is one already, and which entries are missing (None: nothing is).

    Entries of object arrays stay as they are, see `typed`. NaN in an array of floats is a number here.
    """
    values = _plain(name, values)
    mask = None
    if isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), values.data
    try:
        array = np.asarray(values)
    except ValueError as error:
        fail(f"{name} must be a rectangular array, but its rows differ in length.", cause=error)
    except Exception as error:  # whatever another library raises on the way to NumPy
        fail(f"{name} cannot be read as an array ({type(error).__name__}: {error}).", cause=error)
    if array.dtype.kind == "V":
        fields = ", ".join(array.dtype.names or ("of unnamed bytes",))
        fail(f"{name} is a structured array ({fields}): pass plain numbers, e.g. one field.")
    if array.dtype.kind == "T":  # text of variable width, which few functions of NumPy know
        array = array.astype(object)
    if not isinstance(values, np.ndarray):
        array = _lossless(values, array)
    if array.ndim == 0 and (array.dtype == object or mask is not None):
        fail(_no_sequence(name, values))
    if array.dtype == object:
        found = np.fromiter(map(is_missing, array.flat), dtype=bool, count=array.size).reshape(array.shape)
        mask = found if mask is None else mask | found
        text = next((value for value in array.flat if ends_in_null(value)), None)  # NumPy would take off the nulls
        if text is not None:
            fail(f"{name} holds text that ends in a null character ({text!r}): remove it, e.g. .rstrip('\\0').")
    elif array.dtype.kind in "mM":
        mask = np.isnat(array) if mask is None else mask | np.isnat(array)
    return array, mask if mask is not None and mask.any() else None


def typed(name: str, array: NDArray[Any], missing: Mask | None) -> NDArray[Any]:
    """Objects as numbers where they are numbers, else as text. Missing entries become 0 or an empty text."""
    if array.dtype != object:
        return array
    present = list(array[~missing]) if missing is not None else list(array.flat)
    if any(isinstance(value, (list, tuple, np.ndarray)) for value in present):
        fail(f"{name} must be a rectangular array, but its rows differ in length.")
    text = [isinstance(value, (str, bytes)) for value in present]
    if any(text) and not all(text):
        one, other = present[text.index(True)], present[text.index(False)]
        fail(f"{name} mixes text and other values ({one!r} and {other!r}): convert it to one type.")
    kind = str if any(text) else _common_type(present)
    if kind is float and not all(map(is_exact, present)):
        known: dict[float, Any] = {}
        for value in present:
            other = known.setdefault(float(value) if abs(value) < 1e308 else np.inf, value)
            if other != value and isinstance(value, (int, np.integer)) and isinstance(other, (int, np.integer)):
                numbers = f"whole numbers that double precision cannot distinguish ({other} and {value})"
                fail(f"{name} holds {numbers}.")
    filled = array.copy()
    if missing is not None:
        filled[missing] = "" if kind is str else 0
    try:
        return filled.astype(kind)
    except OverflowError as error:
        fail(f"{name} holds numbers beyond the range of double precision.", cause=error)
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


def _plain(name: str, values: Any) -> Any:
    """What NumPy can read, of the containers it would misread."""
    if hasattr(values, "tocsr"):  # first, since some of them are mappings too
        fail(f"{name} is a sparse matrix, and sparse input is not supported: pass {name}.toarray().")
    if values is None or isinstance(values, NO_LISTS) or hasattr(values, "__next__"):
        fail(_no_sequence(name, values))
    if hasattr(values, "detach"):  # a torch tensor, recognised without importing torch
        return _of_torch(name, values)
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


def _of_torch(name: str, values: Any) -> Any:
    if values.device.type != "cpu":
        fail(f"{name} lives on device {str(values.device)!r}; move it with {name}.cpu() first.")
    if "strided" not in str(values.layout):
        fail(f"{name} is a sparse tensor, and sparse input is not supported: pass {name}.to_dense().")
    values = values.detach()
    return values.float() if str(values.dtype) == "torch.bfloat16" else values


def _no_sequence(name: str, values: Any) -> str:
    kind = "None" if values is None else f"an object of type {type(values).__name__}"
    ordered = hasattr(values, "__iter__") and not isinstance(values, (str, bytes, Mapping, AnySet))
    remedy = f": pass list({name})" if ordered else ""
    return f"{name} must be an array or a list with one entry per row, got {kind}{remedy}."


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
