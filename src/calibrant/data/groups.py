"""Groups of rows: any values may name them, and rows whose group is missing are one group of their own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.validation import Mask, fail, is_exact, one_dimension, read

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
    """The names of the groups, sorted (texts of numbers as numbers), and the number of each row's group among them.

    None, NaN, NaT, pandas' NA and masked entries are one group, the last, called "(missing)", or "((missing))" where a
    group of that name exists. Dates of NumPy are named by their text. Values of several types are told apart: 1 is
    another group than "1".
    """
    labels, missing = _read(name, values, length)
    if not missing.any():
        return _distinct(labels)
    known, inverse = _distinct(labels[~missing])
    index = np.full(len(labels), len(known), dtype=np.intp)
    index[~missing] = inverse
    return [*known, missing_name(known)], index


def in_order(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp], bool]:
    """The distinct names of groups, numbers in their order and others in that of `group_names`, and each row's number.

    The third says whether the groups are numbers, also numbers written as texts, so that their order has a meaning.
    """
    names, index = np.unique(values, return_inverse=True)
    if names.dtype.kind in "iuf":
        return names, index.reshape(-1), True
    number = _numbers(names.tolist())
    if number is None:
        return names, index.reshape(-1), False
    order = np.argsort(number, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return names[order], place[index.reshape(-1)], True


def are_numbers(names: list[Any]) -> bool:
    """Whether all names of groups are numbers, or texts of numbers."""
    return _numbers(names) is not None


def _numbers(names: list[Any]) -> NDArray[np.float64] | None:
    """The names as numbers, if all are, or are texts of finite numbers; none where there are other names."""
    found = []
    for name in names:
        if isinstance(name, bool | bytes) or not isinstance(name, str | int | float):
            return None
        try:
            found.append(float(name))
        except (ValueError, OverflowError):
            return None
    number = np.array(found)
    return number if len(number) and np.isfinite(number).all() else None


def quantile_groups(
    values: ArrayLike, quantiles: int, *, name: str = "by", length: int | None = None
) -> tuple[list[Any], NDArray[np.intp]] | None:
    """Numbers divided at their quantiles: the ranges as names, in ascending order, and the number of each row's.

    None if the values are no numbers, or have at most as many distinct ones as there would be ranges: then each value
    is a group. Equal numbers are never divided, so that there may be fewer ranges.
    """
    numbers, missing = _read(name, values, length)
    if numbers.dtype.kind not in "iuf":
        return None
    known = np.sort(numbers[~missing])
    if 1 + np.count_nonzero(known[1:] != known[:-1]) <= quantiles:
        return None
    edges = np.unique(known[np.ceil(np.arange(1, quantiles) * len(known) / quantiles).astype(np.intp) - 1])
    edges = edges[edges < known[-1]]
    index = np.searchsorted(edges, numbers).astype(np.intp)
    names: list[Any] = _ranges(edges)
    if missing.any():
        index[missing] = len(names)
        names = [*names, missing_name(names)]
    return names, index


def _ranges(edges: NDArray[Any]) -> list[Any]:
    """Names of the ranges between edges, which are rounded as far as they stay apart."""
    rounded = ([f"{edge:.{digits}g}" for edge in edges.tolist()] for digits in range(4, 18))
    texts = next((some for some in rounded if len(set(some)) == len(some)), [str(edge) for edge in edges.tolist()])
    inner = [f"({low}, {high}]" for low, high in pairwise(texts)]
    return [f"<= {texts[0]}", *inner, f"> {texts[-1]}"]


def groups(name: str, values: ArrayLike, *, length: int | None = None) -> NDArray[Any]:
    """The name of each row's group, in an array that NumPy can sort, in the order of `group_names`.

    Of values of several types the names are texts, quoted where they would else read alike.
    """
    labels, missing = _read(name, values, length)
    if labels.dtype != object and not missing.any():
        return labels
    known, index = group_names(values, name=name, length=length)
    present = known[:-1] if missing.any() else known
    if not _sortable(present):
        present = [repr(value) if isinstance(value, str) else str(value) for value in present]
    if not missing.any():
        return np.array(present)[index]
    each = np.empty(len(present) + 1, dtype=object)
    each[:] = [*present, MissingGroup(missing_name(present))]
    return each[index]


def group_texts(names: Iterable[Any], *, taken: str | None = None) -> list[str]:
    """The names as texts, no two of them alike and none like the one that is `taken`: those are quoted."""
    found = [] if taken is None else [taken]
    for name in names:
        text = str(name)
        while text in found:
            text = repr(text)
        found.append(text)
    return found if taken is None else found[1:]


def _read(name: str, values: ArrayLike, length: int | None) -> tuple[NDArray[Any], Mask]:
    """One value per row, dates as text, and which are missing."""
    array, found = read(name, values)
    if array.ndim == 2 and array.shape[1] > 1:
        fail(f"{name} must have one value per row, got shape {array.shape}: join several columns to one first.")
    array = one_dimension(name, array, length)
    missing = np.zeros(len(array), dtype=bool) if found is None else found.reshape(-1)
    if array.dtype == object:  # groups of predictions were named before
        named = (isinstance(value, MissingGroup) for value in array)
        missing = missing | np.fromiter(named, dtype=bool, count=len(array))
    elif array.dtype.kind == "f":
        missing = missing | np.isnan(array)
    if array.dtype.kind in "mMc":
        array = np.datetime_as_string(array, unit="auto") if array.dtype.kind == "M" else array.astype(str)
    return array, missing


def _distinct(labels: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """The distinct values in order, as Python objects, and the number of each row's."""
    if labels.dtype == object and _sortable(labels.tolist()):
        labels = np.array(labels.tolist())
    if labels.dtype != object:
        names, inverse, _ = in_order(labels)
        return names.tolist(), inverse
    keys = [value if isinstance(value, Hashable) else repr(value) for value in labels]
    known: list[Any] = list(dict.fromkeys(keys))
    try:
        known.sort()
    except TypeError:  # of several types
        known.sort(key=lambda value: (type(value).__name__, str(value)))
    place = {value: k for k, value in enumerate(known)}
    return known, np.fromiter((place[key] for key in keys), dtype=np.intp, count=len(keys))


def _sortable(values: list[Any]) -> bool:
    """Whether an array of the values has a type that NumPy sorts fast and gives back as it was."""
    kinds = {type(value.item() if isinstance(value, np.generic) else value) for value in values}
    if kinds == {int}:
        return np.array(values).dtype.kind == "i"
    if kinds == {int, float} and not all(map(is_exact, values)):
        return False
    return kinds in ({str}, {bool}, {float}, {bytes}, {int, float})


def missing_name(known: Collection[Any]) -> str:
    """What to call the rows without a group: ``(missing)`` in as many parentheses as make it another name."""
    name = MISSING
    while name in known:
        name = f"({name})"
    return name
