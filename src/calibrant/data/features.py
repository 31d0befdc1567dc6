"""Features of rows as small codes: numbers cut at readable places, categories by name, missing as a value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import fail, is_missing, read, require_same_index
from calibrant.numerics.arrays import Floats

Kind = Literal["number", "flag", "category"]
FeatureCodes = NDArray[np.uint8]

#: Codes of a column of numbers, about; a value of more than one part in so many rows has a code of its own.
#: Test: tests/data/test_features.py::test_numbers_are_cut_into_so_many_codes.
_CODES = 32
#: Categories that keep their names; all others are one, "(other)".
#: Test: tests/data/test_features.py::test_rare_categories_are_one.
_CATEGORIES = 200
#: Rows, and the share of all rows, that a category needs to keep its name.
#: Test: tests/data/test_features.py::test_rare_categories_are_one.
_FEWEST_ROWS, _LEAST_SHARE = 10, 0.0005

#: What a category that has no name of its own is called, and one that is missing.
OTHER, MISSING = "(other)", "(missing)"


@dataclass(frozen=True)
class Feature:
    """How one column becomes codes 0, 1, ..., of which the last stands for missing.

    The code of a number is how many `cuts` are at most as large. A flag is 0 or 1. The code of a category is its place
    in `values`; all others have the last code but one.
    """

    name: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.cuts) + len(self.values) + 2

    @classmethod
    def of(cls, name: str, column: Column) -> Feature:
        """The codes that suit a column."""
        if column.kind == "flag":
            return cls(name, "flag", cuts=(1.0,))
        if column.kind == "number":
            return cls(name, "number", cuts=tuple(_cuts(column.numbers)))
        least = max(_FEWEST_ROWS, int(_LEAST_SHARE * len(column)))
        count = Counter(column.texts)
        kept = sorted((-rows, text) for text, rows in count.items() if text is not None and rows >= least)
        return cls(name, "category", values=tuple(text for _, text in kept[:_CATEGORIES]))

    def codes(self, column: Column) -> FeatureCodes:
        """The code of each row."""
        if column.kind != self.kind:
            has = {"number": "numbers", "flag": "booleans", "category": "text"}
            fail(f"Feature {self.name!r} must hold {has[self.kind]}, as in the fit, but holds {has[column.kind]}.")
        if self.kind == "category":
            place: dict[str | None, int] = {text: code for code, text in enumerate(self.values)}
            place[None] = self.size - 1
            other = self.size - 2
            return np.fromiter((place.get(text, other) for text in column.texts), np.uint8, count=len(column))
        found = np.searchsorted(np.array(self.cuts), column.numbers, side="right").astype(np.uint8)
        found[np.isnan(column.numbers)] = self.size - 1
        return found

    def words(self, low: int, high: int) -> str:
        """The condition that the code lies in low .. high; of a category the code is `low`."""
        missing = self.size - 1
        if self.kind == "category":
            values = (*self.values, OTHER, MISSING)
            return f"{self.name} = {values[low]}"
        if low == missing:
            return f"{self.name} is missing"
        if low == 0 and high == missing - 1:
            return f"{self.name} is not missing"
        if self.kind == "flag":
            return f"{self.name} = {bool(low)}"
        start = None if low == 0 else f"{self.cuts[low - 1]:.12g}"
        end = None if high == missing - 1 else f"{self.cuts[high]:.12g}"
        if start is None or end is None:
            return f"{self.name} < {end}" if start is None else f"{self.name} >= {start}"
        return f"{start} <= {self.name} < {end}"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {"name": self.name, "kind": self.kind, "cuts": list(self.cuts), "values": list(self.values)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Feature:
        """The feature that `to_dict` wrote."""
        name, kind, cuts, values = given["name"], given["kind"], given["cuts"], given["values"]
        if kind not in ("number", "flag", "category") or not isinstance(name, str):
            fail(f"a feature has the unknown kind {kind!r}", ValueError)
        if list(cuts) != sorted(set(cuts)) or not all(isinstance(value, str) for value in values):
            fail(f"the codes of feature {name!r} are not those of a fit", ValueError)
        return cls(name, kind, tuple(map(float, cuts)), tuple(values))


@dataclass(frozen=True, eq=False)
class Column:
    """One feature as it was given: numbers (flags are 0 and 1) of which NaN is missing, or texts and None."""

    kind: Kind
    numbers: Floats
    texts: Sequence[str | None] = ()

    def __len__(self) -> int:
        return len(self.texts) if self.kind == "category" else len(self.numbers)

    def take(self, rows: NDArray[np.intp]) -> Column:
        """Some of the rows, by number."""
        if self.kind == "category":
            return Column(self.kind, self.numbers, [self.texts[row] for row in rows.tolist()])
        return Column(self.kind, self.numbers[rows])


def coded(
    X: Any, length: int, *, features: Sequence[Feature] | None = None, rows: NDArray[np.intp] | None = None
) -> tuple[list[Feature], list[FeatureCodes]]:
    """Features of a frame, a mapping or an array, sorted by name, and the codes of the rows (of `rows`, if given).

    With `features` that are known from a fit, other columns are ignored. The columns of arrays are called x0, x1, ....
    """
    given = dict(_columns(X))
    if features is None:
        if not given:
            fail("X has no columns: features are needed.")
        found, codes = [], []
        for name in sorted(given):
            column = _column(name, given[name], length)
            column = column if rows is None else column.take(rows)
            found.append(Feature.of(name, column))
            codes.append(found[-1].codes(column))
        return found, codes
    absent = [feature.name for feature in features if feature.name not in given]
    if absent:
        fail(f"X lacks the column {absent[0]!r}, which is needed; it has {sorted(given)}.")
    return list(features), [one.codes(_column(one.name, given[one.name], length)) for one in features]


def _columns(X: Any) -> Iterator[tuple[str, Any]]:
    """Name and values of each column."""
    import narwhals.stable.v2 as nw

    if isinstance(X, Mapping):
        require_same_index((f"X[{name!r}]", values) for name, values in X.items())
        named = [(str(name), values) for name, values in X.items()]
    elif isinstance(frame := nw.from_native(X, pass_through=True, allow_series=True), nw.DataFrame):
        named = [(str(name), frame[name]) for name in frame.columns]
    elif isinstance(frame, nw.LazyFrame):
        fail("X is a lazy frame, whose rows have no order: collect it together with its outcomes.")
    elif isinstance(frame, nw.Series):
        named = [(str(frame.name or "x0"), frame)]
    else:
        array = _read("X", X)
        if array.ndim > 2:
            fail(f"X must have one or two dimensions, got {array.ndim}.")
        wide = array.reshape(len(array), -1)
        named = [(f"x{k}", wide[:, k]) for k in range(wide.shape[1])]
    names = [name for name, _ in named]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        fail(f"X has several columns named {repeated[0]!r}; their names must differ.")
    yield from named


def _read(name: str, values: Any) -> NDArray[Any]:
    array, missing = read(name, values)
    if missing is not None:
        array = array.astype(object)  # a copy
        array[missing] = None
    return array


def _column(name: str, values: Any, length: int) -> Column:
    import narwhals.stable.v2 as nw

    shown = f"X[{name!r}]"
    series = nw.from_native(values, pass_through=True, series_only=True)
    if isinstance(series, nw.Series):
        dtype = series.dtype
        if dtype.is_numeric():
            array = series.cast(nw.Float64).to_numpy()
        elif dtype.is_temporal():
            array = np.empty(0, "datetime64[s]")
        elif dtype == nw.Boolean and not series.is_null().any():
            array = series.to_numpy()
        else:
            array = np.empty(len(series), object)
            array[:] = series.to_list()
    else:
        array = _read(shown, values)
    if array.dtype.kind in "mM":
        fail(f"{shown} holds dates or times: pass numbers (e.g. days since a date) or a category (e.g. the month).")
    if array.ndim != 1 or len(array) != length:
        fail(f"{shown} must have one entry for each of the {length:,} rows, got the shape {array.shape}.")
    return _of_array(shown, array)


def _of_array(shown: str, array: NDArray[Any]) -> Column:
    kind = array.dtype.kind
    if kind in "OUS":
        return _of_objects(shown, array.tolist())
    if kind not in "fiub":
        fail(f"{shown} must hold numbers, booleans or text, got {array.dtype}.")
    numbers = array.astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        fail(
            f"{shown} must be finite or missing, but {int(infinite.sum())} of {len(numbers)} rows are infinite (first: "
            f"row {int(infinite.argmax())}). Replace them by missing or by a large number."
        )
    return Column("flag" if kind == "b" else "number", numbers)


def _of_objects(shown: str, values: list[Any]) -> Column:
    """Numbers, truth values or texts, with missing ones among them."""
    values = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    flags = all(issubclass(kind, bool | np.bool_) for kind in kinds) and bool(kinds)
    if flags or all(issubclass(kind, int | float | np.number | Decimal) for kind in kinds):
        numbers = np.array([np.nan if value is None else float(value) for value in values])
        return Column("flag", numbers) if flags else _of_array(shown, numbers)
    if not all(issubclass(kind, str | bytes) for kind in kinds):
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        fail(f"{shown} must hold numbers, booleans or text, got values of type {names}: convert them to one of them.")
    decoded = (value.decode(errors="backslashreplace") if isinstance(value, bytes) else value for value in values)
    return Column("category", np.empty(0), list(decoded))


def _cuts(numbers: Floats) -> list[float]:
    """Where to cut numbers: at every value, if they are few; else at quantiles, and around values of many rows."""
    known = np.sort(numbers[~np.isnan(numbers)])
    starts = np.flatnonzero(np.concatenate([[True], known[1:] != known[:-1]])) if len(known) else np.empty(0, np.intp)
    distinct = known[starts]
    if len(distinct) <= _CODES:
        return [float(value) for value in distinct[1:]]
    rows = np.diff(np.append(starts, len(known)))
    heavy = np.flatnonzero(rows > len(known) / _CODES)
    parts = max(_CODES - 2 * len(heavy), 4)
    cuts: list[float] = []
    if len(heavy) < len(distinct):  # each near its quantile, within a quarter of a step
        light, running = np.delete(distinct, heavy), np.cumsum(np.delete(rows, heavy)) / np.delete(rows, heavy).sum()
        at = np.arange(1, parts) / parts
        ends = (light[np.minimum(running.searchsorted(at + by / parts), len(light) - 1)] for by in (-0.25, 0.25))
        cuts = [readable(low, high) for low, high in zip(*(end.tolist() for end in ends), strict=True)]
    for k in heavy.tolist():
        cuts.append(float(distinct[k]))
        if k + 1 < len(distinct):
            cuts.append(readable(float(distinct[k]), float(distinct[k + 1])))
    return sorted({cut for cut in cuts if cut > distinct[0]})


def readable(low: float, high: float) -> float:
    """The number with the fewest digits in (low, high]; `high` itself where that is not above `low`."""
    if not high > low or math.isinf(high - low):
        return high
    power = math.floor(math.log10(high - low)) + 1
    for exponent in range(power, power - 20, -1):
        for step in (10.0**exponent, 10.0**exponent / 2):
            found = float(f"{math.ceil(low / step + 1e-9) * step:.12g}")
            if low < found <= high:
                return found
    return high
