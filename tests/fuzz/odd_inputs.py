"""Ways to give a column that are unusual, each with whether it must be read as it is meant or refused.

Random cases of columns that are easily paired or merged wrongly, and of several writers of one file.
"""

from __future__ import annotations

import copy
import mmap
import os
import pickle
import threading
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse

import calibrant as cal
from calibrant._atomic_write import creating, replacing
from calibrant.data.groups import group_names, groups
from tests.fuzz import random_data


def holed(values, hole):
    """Objects of which one in the third row is `hole`."""
    made = np.array(values, dtype=object)
    made[(2, 0) if made.ndim == 2 else 2] = hole
    return made


def masked(values, hidden):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[2] = hidden
    return np.ma.array(values, mask=mask)


def strided(values):
    wide = np.repeat(values, 3, axis=0)
    return wide[::3]


def read_only(values):
    made = np.array(values)
    made.flags.writeable = False
    return made


def memory_map(values):
    made = np.frombuffer(mmap.mmap(-1, values.nbytes), dtype=values.dtype).reshape(values.shape)
    made[...] = values
    return made


class Oddity:
    """An object that is no number."""


#: The same values in another container, of one column or of several.
SAME_ANY = {
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
    "objects": lambda v: np.array(v, dtype=object),
    "long double": lambda v: v.astype(np.longdouble),
    "big-endian": lambda v: v.astype(v.dtype.newbyteorder(">")),
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed view": lambda v: v[::-1].copy()[::-1],
    "read-only": read_only,
    "memory map": memory_map,
    "mask that hides nothing": lambda v: masked(v, False),
    "torch": lambda v: torch.tensor(v),
    "torch with gradient": lambda v: torch.tensor(v, dtype=torch.float64, requires_grad=True),
    "torch view": lambda v: torch.tensor(np.stack([v, v]))[1],
    "decimals": lambda v: np.vectorize(lambda x: Decimal(float(x)), otypes=[object])(v),
    "fractions": lambda v: np.vectorize(Fraction, otypes=[object])(v),
}
SAME_COLUMN = {
    "pandas": pd.Series,
    "pandas with text as index": lambda v: pd.Series(v, index=[f"row {k}" for k in range(len(v))]),
    "pandas nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pandas array": lambda v: pd.array(v.tolist()),
    "pandas on Arrow": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.array(v).type)),
    "pandas sparse": lambda v: pd.Series(pd.arrays.SparseArray(v)),
    "pandas category": lambda v: pd.Series(v).astype("category"),
    "pandas index": pd.Index,
    "data frame": lambda v: pd.DataFrame({"any name": v}),
    "Polars": pl.Series,
    "Polars frame": lambda v: pl.DataFrame({"any name": v}),
    "Arrow": pa.array,
    "Arrow chunks": lambda v: pa.chunked_array([v[:3], v[3:5], v[5:]]),
    "Arrow dictionary": lambda v: pa.array(v).dictionary_encode(),
    "column": lambda v: v[:, None],
    "memory view": lambda v: memoryview(np.ascontiguousarray(v)),
}
SAME_MATRIX = {
    "data frame": pd.DataFrame,
    "Polars frame": lambda v: pl.DataFrame({str(k): v[:, k] for k in range(v.shape[1])}),
    "Arrow table": lambda v: pa.table({str(k): v[:, k] for k in range(v.shape[1])}),
    "pandas nullable": lambda v: pd.DataFrame(v).convert_dtypes(),
    "rows": list,
}

#: What holds no such values, or not for all rows, whatever the column.
REFUSED_ANY = {
    "None": lambda _: None,
    "text": lambda _: "0.5",
    "bytes": lambda _: b"0.5",
    "number": lambda _: 0.5,
    "single value": lambda _: np.array(0.5),
    "object": lambda _: Oddity(),
    "function": lambda _: len,
    "type": lambda _: float,
    "generator": lambda v: (x for x in v),
    "map": lambda v: map(float, np.ravel(v)),
    "set": lambda v: {float(x) for x in np.ravel(v)},
    "frozen set": lambda v: frozenset(np.ravel(v).tolist()),
    "keys of a mapping": lambda v: dict.fromkeys(range(len(v))).keys(),
    "text that ends in a null character": lambda v: [f"{x}\0" for x in np.ravel(v)][: len(v)],
    "mapping": lambda v: dict(enumerate(np.ravel(v).tolist())),
    "values of a mapping": lambda v: dict(enumerate(np.ravel(v).tolist())).values(),
    "namespace": lambda v: SimpleNamespace(values=v),
    "empty": lambda v: v[:0],
    "empty list": lambda _: [],
    "three dimensions": lambda v: np.zeros((len(v), 2, 2)),
    "one row less": lambda v: v[:-1],
    "one row more": lambda v: np.concatenate([v, v[:1]]),
    "ragged": lambda v: [[0.1], [0.2, 0.3]] * (len(v) // 2),
    "Polars lazy frame": lambda v: pl.LazyFrame({"a": np.ravel(v)}),
    "sparse array": lambda v: sparse.csr_array(np.atleast_2d(v)),
    "sparse mapping": lambda v: sparse.dok_array(np.atleast_2d(v)),
    "sparse tensor": lambda v: torch.tensor(v).to_sparse(),
    "structured": lambda v: np.array([(0, 0.5)] * len(v), dtype=[("y", "i4"), ("p", "f8")]),
    "mask": lambda v: masked(v, True),
    "None in objects": lambda v: holed(v, None),
    "NaN in objects": lambda v: holed(v, float("nan")),
    "pandas NA in objects": lambda v: holed(v, pd.NA),
    "NaT in objects": lambda v: holed(v, pd.NaT),
    "masked constant in objects": lambda v: holed(v, np.ma.masked),
}
#: What is no number.
REFUSED_NUMBERS = {
    "NaN": lambda v: np.where(np.arange(v.size).reshape(v.shape) == v.size // 2, np.nan, v),
    "infinity": lambda v: np.where(np.arange(v.size).reshape(v.shape) == v.size // 2, np.inf, v),
    "complex": lambda v: v + 0j,
    "dates": lambda v: np.full(v.shape, "2024-01-01", dtype="M8[D]"),
    "durations": lambda v: np.full(v.shape, 3, dtype="m8[s]"),
    "dates as objects": lambda v: np.full(v.shape, pd.Timestamp("2024-01-01"), dtype=object),
    "text of numbers": lambda v: v.astype(str),
    "text of variable width": lambda v: v.astype(str).astype(np.dtypes.StringDType()),
    "text as objects": lambda v: v.astype(str).astype(object),
    "bytes of numbers": lambda v: v.astype("S"),
    "one text": lambda v: holed(v, "0.5"),
    "huge whole number": lambda v: holed(v, 10**400),
    "oddity": lambda v: holed(v, Oddity()),
    "nested": lambda v: holed(v, [0.5, 0.5]),
}
REFUSED_COLUMN = {
    "pandas null": lambda v: pd.Series(holed(v, None)),
    "pandas nullable with null": lambda v: pd.Series(holed(v, None)).convert_dtypes(),
    "pandas category with null": lambda v: pd.Series(holed(v, None)).astype("category"),
    "Polars null": lambda v: pl.Series(holed(v, None).tolist()),
    "Arrow null": lambda v: pa.array(holed(v, None).tolist()),
    "Arrow chunks with null": lambda v: pa.chunked_array([v[3:].tolist(), holed(v, None)[:3].tolist()]),
    "list with null": lambda v: holed(v, None).tolist(),
    "two columns": lambda v: np.stack([v, v], axis=1),
    "transposed": lambda v: v[None],
}


def _indexes(rng, n):
    """Two indexes of the same length in another order, of one of several kinds."""
    order = rng.permutation(n)
    order = order[::-1] if (order == np.arange(n)).all() else order
    labels = [
        lambda: pd.RangeIndex(n),
        lambda: pd.Index([f"row {k}" for k in range(n)]),
        lambda: pd.date_range("2024-01-01", periods=n),
        lambda: pd.MultiIndex.from_arrays([np.arange(n) // 2, np.arange(n) % 2]),
        lambda: pd.Index(rng.normal(size=n)),
    ][rng.integers(5)]()
    return labels, labels[order]


#: Functions of two columns, numbers in [0, 1], which must belong to the same rows.
PAIRED = {
    "Binary": lambda y, p: cal.brier(cal.Binary(y.round(), p)),
    "weight": lambda y, p: cal.brier(cal.Binary(y.round(), y, weight=p + 0.1)),
    "group": lambda y, p: cal.Binary(y.round(), y, group=p.round()).row_groups()[1].sum(),
    "by": lambda y, p: cal.Binary(y.round(), y).row_groups(p.round(1))[1].sum(),
    "by of some rows": lambda y, p: cal.Binary(y.round(), y).take(np.arange(len(y))).row_groups(p.round(1))[1].sum(),
    "functions": lambda y, p: cal.ece(y.round(), p),
    "Multiclass": lambda y, p: cal.brier(cal.Multiclass(y.round().astype(int), _two_columns(p))),
    "Gaussian": lambda y, p: cal.crps(cal.Gaussian(y, p, p + 1)),
    "stream": lambda y, p: _streamed(y.round(), p),
    "models": lambda y, p: (
        cal.compare(
            cal.brier, cal.Binary(y.round() * 0, y), cal.Binary(p.round() * 0, p), method=cal.Bootstrap(9)
        ).difference
    ),
    "scores and y": lambda y, p: cal.recalibrate.Platt().fit(p, y.round()).predict_proba([0.3])[0, 1],
    "confidence": lambda y, p: cal.risk_coverage(cal.Binary(y.round(), y), confidence=p).risk.sum(),
}


def _two_columns(p):
    return pd.DataFrame({0: p, 1: 1 - p}) if isinstance(p, pd.Series) else np.stack([p, 1 - p], axis=1)


def _streamed(y, p):
    stream = cal.scale.StreamingTable(grid=cal.EqualWidth(4))
    stream.update(y, p)
    return cal.ece(stream.table())


def alignment(rng, folder):
    """Columns of pandas: those of one index give the result of the arrays, others are refused."""
    n = int(rng.integers(6, 40))
    y, p = np.concatenate([[0, 1], rng.random(n - 2)]), rng.random(n)
    one, other = _indexes(rng, n)
    name = list(PAIRED)[rng.integers(len(PAIRED))]
    call = PAIRED[name]
    expected = float(call(y, p))
    found = float(call(pd.Series(y, index=one), pd.Series(p, index=one.copy())))
    assert np.isclose(found, expected, rtol=1e-12), f"{name}: {found} is not {expected}"
    with pytest.raises(cal.InvalidPredictions, match="different pandas indexes"):
        call(pd.Series(y, index=one), pd.Series(p, index=other))


#: Values that are easily taken for one another.
ALIKE = (
    *("a", "a\0", "a\0\0", "a ", "", "\0", "1", b"a", b"a\0", 1, 1.5, 0.5, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1),
    *(2**63, 2**63 + 1, 2**64, 1e16, np.int64(2**60), np.int64(2**60 + 1), 0.1, "nan", "(missing)"),
    *(None, float("nan"), pd.NA, True, "True"),
)


def groups_apart(rng, folder):
    """Rows have the same group only if their values are equal or both are missing; or the column is refused."""
    some = rng.choice(len(ALIKE), int(rng.integers(1, 6)))
    values = [ALIKE[k] for k in rng.choice(some, 12)]
    containers = [list, tuple, lambda v: pd.Series(v, dtype=object), lambda v: np.array([*v, None], dtype=object)[:-1]]
    given = containers[rng.integers(4)](values)
    keys = [None if value is None or value is pd.NA or value != value else value for value in values]
    expected = [(a is None) == (b is None) and a == b for a in keys for b in keys]
    for named in (lambda: group_names(given)[1], lambda: groups("group", given)):
        try:
            index = list(named())
        except cal.InvalidPredictions:
            continue
        found = [a == b for a in index for b in index]
        assert found == expected, f"{given!r} became the groups {index}"


def no_order(rng, folder):
    """Classes and rows in containers without an order."""
    k = int(rng.integers(2, 6))
    labels = rng.permutation([f"class {j}" for j in range(k)]).tolist()
    p = rng.dirichlet(np.ones(k), 8)
    y = rng.choice(labels, 8)
    containers = [
        set,
        frozenset,
        dict.fromkeys,
        lambda v: dict.fromkeys(v).keys(),
        lambda v: {x: x for x in v}.values(),
    ]
    made = containers[rng.integers(5)](labels)
    calls = [
        lambda: cal.Multiclass(y, p, classes=made),
        lambda: cal.Binary(made, p[:k, 0], positive=labels[0]),
        lambda: cal.Binary([0, 1] * 4, p[:, 0], group=made),
        lambda: cal.by_group(cal.brier, [0, 1] * 4, p[:, 0], by={"a": made}),
    ]
    with pytest.raises(cal.InvalidPredictions):
        calls[rng.integers(4)]()


def read_only(rng, folder):
    """No column of predictions can be written to, nor one of a copy of any kind."""
    data = [random_data.binary, random_data.multiclass, random_data.gaussian][rng.integers(3)](rng)
    ways = [lambda d: d, copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d, rng.integers(2, 6)))]
    for name, values in vars(ways[rng.integers(4)](data)).items():
        assert not (isinstance(values, np.ndarray) and values.flags.writeable), f"{name} of {data!r} can be written to"


def writers(rng, folder):
    """Several writers of one new file: one succeeds, the file is its, whole, and nothing else is left."""
    path, outcomes = os.path.join(folder, "m" * int(rng.integers(1, 255))), []
    pauses = rng.random((int(rng.integers(2, 6)), 2)) / 500

    def write(number, before, within):
        text = f"{number} " * 5000
        threading.Event().wait(before)
        try:
            with creating(), replacing(path) as place, open(place, "w", encoding="ascii") as file:
                file.write(text[:5000])
                threading.Event().wait(within)
                file.write(text[5000:])
        except FileExistsError:
            return
        outcomes.append(text)

    threads = [threading.Thread(target=write, args=(number, *pause)) for number, pause in enumerate(pauses)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(path, encoding="ascii") as file:
        assert outcomes == [file.read()]
    assert os.listdir(folder) == [os.path.basename(path)]
