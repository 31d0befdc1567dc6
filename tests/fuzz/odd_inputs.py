"""Ways to give a column that are unusual, each with whether it must be read as it is meant or refused."""

from __future__ import annotations

import mmap
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
from scipy import sparse


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
