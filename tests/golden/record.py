"""Results of any kind as numbers and short texts by name, and where two such records differ."""

import dataclasses
import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import calibrant as cal

#: Two numbers are the same if they differ by no more than this, relative to numbers beyond 1.
TOLERANCE = 1e-10
#: Fields that depend on the machine, or that hold what was given.
NOT_RECORDED = {"data", "fit", "seconds", "version", "source"}
#: Of longer lists the first ones, and of longer texts a hash.
LIST, MAPPING, TEXT, DEPTH = 6, 12, 500, 6

Record = dict[str, Any]


def recorded(part: str, calls: Iterable[tuple[str, Callable[[], Any]]]) -> Record:
    """What the calls return, or the kind of error they raise (its words may change)."""
    out: Record = {}
    for name, call in calls:
        key = f"{part}/{name}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out |= flat(call(), key)
        except Exception as error:
            out[key] = f"raises {type(error).__name__}"
    return out


def flat(value: Any, key: str, depth: int = 0) -> Record:
    """A result field by field; of an array its length, sum and three of its values."""
    if depth > DEPTH:
        return {}
    if isinstance(value, cal.Estimate):
        found = value.interval
        more = {} if found is None else flat(found, key) | {f"{key}.method": str(found.method)}
        return {key: float(value)} | more
    if isinstance(value, cal.Interval):
        return {f"{key}.low": float(value.low), f"{key}.high": float(value.high)}
    if isinstance(value, cal.Significance):
        return {f"{key}.statistic": float(value.statistic), f"{key}.p": float(value.p_value)}
    if value is None or isinstance(value, bool | np.bool_):
        return {key: None if value is None else bool(value)}
    if isinstance(value, int | float | np.number):
        return {key: float(value)}
    if isinstance(value, str):
        return {key: value if len(value) < TEXT else _hash(value)}
    if isinstance(value, np.ndarray):
        return _array(value, key)
    if isinstance(value, cal.BinTable):
        return _array(value.sums, key)
    return _parts(value, key, depth)


def _parts(value: Any, key: str, depth: int) -> Record:
    out: Record = {}
    parts: list[tuple[str, Any]] = []
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        names = [name for name in names if name not in NOT_RECORDED and not name.startswith("_")]
        parts = [(f"{key}.{name}", getattr(value, name)) for name in names]
    elif isinstance(value, Mapping):
        parts = [(f"{key}[{name}]", value[name]) for name in list(value)[:MAPPING]]
    elif isinstance(value, list | tuple):
        if len(value) > LIST + 2 and all(isinstance(one, int | float | np.number) for one in value):
            return _array(np.asarray(value, float), key)
        out[f"{key}.len"] = len(value)
        parts = [(f"{key}[{k}]", one) for k, one in enumerate(value[:LIST])]
    for name, one in parts:
        out |= flat(one, name, depth + 1)
    return out


def _array(values: Any, key: str) -> Record:
    if values.dtype.kind not in "fiub":
        return {key: _hash(repr(values.tolist()))[:16]}
    numbers = values.astype(np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    out: Record = {f"{key}.len": int(numbers.size)}
    if finite.size:
        places = {"first": 0, "third": finite.size // 3, "last": -1}
        out |= {f"{key}.sum": float(finite.sum())} | {f"{key}.{name}": float(finite[k]) for name, k in places.items()}
    return out


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def differences(before: Record, after: Record) -> list[str]:
    """A line for each name that only one record has, or whose values differ."""
    names = [
        name
        for name in {**before, **after}
        if not (name in before and name in after and same(before[name], after[name]))
    ]
    return [f"{name}: {before.get(name, 'missing')} -> {after.get(name, 'missing')}" for name in names]


def same(a: Any, b: Any) -> bool:
    """Whether two recorded values are the same, numbers up to `TOLERANCE`."""
    if isinstance(a, float) and isinstance(b, int | float) and not isinstance(b, bool):
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= TOLERANCE * max(1.0, abs(a))
    return bool(a == b)
