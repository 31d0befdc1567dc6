"""Groups of rows: any values may name them, and rows whose group is missing are one group of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.array_likes import Mask, UnreadableArrayError, read
from calibrant.data.validation import InvalidPredictions, one_dimension

#: What rows without a group are called.
MISSING = "(missing)"


class MissingGroup(str):
    """The name of the rows without a group: a text that comes after every other name when names are sorted."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, MissingGroup)

    def __le__(self, other: object) -> bool:
        return isinstance(other, MissingGroup)

    def __ge__(self, other: object) -> bool:
        return True


def group_names(
    values: ArrayLike, *, name: str = "by", length: int | None = None
) -> tuple[list[Any], NDArray[np.intp]]:
    """The names of the groups, sorted, the missing one last, and the number of each row's group among them.

    None, NaN, NaT, pandas' NA and masked entries are one group, called "(missing)", or "((missing))" where a group of
    that name exists. Dates are named by their text. Where values of several types are mixed, all names are texts, and
    texts are quoted to tell them from other values that read alike: ``"1"`` for 1 and ``"'1'"`` for "1".

    Examples
    --------
    >>> group_names(["b", None, "a", "b"])
    (['a', 'b', '(missing)'], array([1, 2, 0, 1]))
    >>> group_names([2.0, float("nan"), 1.0])
    ([1.0, 2.0, '(missing)'], array([1, 2, 0]))
    """
    found, index = np.unique(groups(name, values, length=length), return_inverse=True)
    names, index = found.tolist(), index.reshape(-1)
    last = max(
        (text for text in names if isinstance(text, str) and text.strip("()") == MISSING[1:-1]), key=len, default=None
    )
    if last is not None and last != names[-1]:  # parentheses come before letters
        at = names.index(last)
        names = [*names[:at], *names[at + 1 :], last]
        index = np.where(index == at, len(names) - 1, index - (index > at))
    return names, index


def groups(name: str, values: ArrayLike, *, length: int | None = None) -> NDArray[Any]:
    """One name per row, of one type or with `MissingGroup` among them, so that NumPy can sort them."""
    try:
        array, missing = read(values)
    except UnreadableArrayError as error:
        raise InvalidPredictions(error.about(name)) from error.__cause__
    if array.ndim == 2 and array.shape[1] > 1:
        message = f"{name} must have one value per row, got shape {array.shape}: join several columns to one first."
        raise InvalidPredictions(message)
    array = one_dimension(name, array, length)
    missing = None if missing is None else missing.reshape(-1)
    also = None
    if array.dtype == object:  # of predictions, whose groups were named before
        also = np.fromiter((isinstance(value, MissingGroup) for value in array), dtype=bool, count=len(array))
    elif array.dtype.kind == "f":
        also = np.isnan(array)
    if also is not None and also.any():
        missing = also if missing is None else missing | also
    if array.dtype.kind in "mMc":
        array = np.datetime_as_string(array, unit="auto") if array.dtype.kind == "M" else array.astype(str)
    if missing is None:
        return _one_type(array) if array.dtype == object else array
    if missing.all():
        return np.full(len(array), MISSING)
    present = _one_type(array[~missing]) if array.dtype == object else array[~missing]
    return _with_missing(present, missing)


def _one_type(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as text, whole numbers, numbers or truth values where they are of one such type, else as texts."""
    kinds = {type(value.item() if isinstance(value, np.generic) else value) for value in values}
    if kinds in ({str}, {bool}, {float}, {bytes}) or (kinds == {int} and np.array(values.tolist()).dtype.kind == "i"):
        return np.array(values.tolist())
    if kinds == {int, float}:
        return values.astype(np.float64)
    several = len(kinds) > 1
    return np.array([repr(value) if several and isinstance(value, str) else str(value) for value in values])


def _with_missing(present: NDArray[Any], missing: Mask) -> NDArray[Any]:
    """All rows: the names of the present ones, and for the others a name that none of these has."""
    text, name = present.dtype.kind == "U", MISSING
    while text and (present == name).any():
        name = f"({name})"
    width = max(present.dtype.itemsize // 4, len(name)) if text else 0
    labels = np.empty(len(missing), dtype=f"U{width}" if text else object)
    labels[~missing] = present if text else present.tolist()
    labels[missing] = name if text else MissingGroup(name)
    return labels
