"""Tables as Parquet files: columns of numbers, and a few words of metadata with a schema version."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.atomic import replacing
from calibrant.binning import Distinct, Edges, HybridGrid, LogGrid
from calibrant.bintable import BinTable
from calibrant.kernels import SUMS
from calibrant.validation import InvalidPredictions

#: Raised when a file of the new kind could not be read by older code.
SCHEMA_VERSION = 1
_FIELD = b"calibrant"
_CUTS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (Edges, Distinct, HybridGrid, LogGrid)}

Path_ = str | os.PathLike[str]


def save(table: BinTable, path: Path_) -> None:
    """Write a table to a Parquet file, all of it or nothing."""
    arrow, parquet = _pyarrow()
    columns = {"key": table.key, "low": table.low, "high": table.high, **dict(zip(SUMS, table.sums, strict=True))}
    about = {
        "schema_version": SCHEMA_VERSION,
        "cut": {"kind": type(table.cut).__name__, **asdict(table.cut)},
        "prior": table.prior,
        "label_frequency": table.label_frequency,
        "nested": table.nested,
        "invalid": dict(table.invalid),
    }
    data = arrow.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
    data = data.replace_schema_metadata({_FIELD: json.dumps(about).encode()})
    with replacing(path) as place:
        parquet.write_table(data, place, compression="zstd")


def load(path: Path_) -> BinTable:
    """Read a table that `save` wrote."""
    arrow, parquet = _pyarrow()
    try:
        data = parquet.read_table(Path(path), partitioning=None)
    except (arrow.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        message = f"{os.fspath(path)!r} is no readable Parquet file: {error}"
        raise InvalidPredictions(message) from error
    about = _about(path, (data.schema.metadata or {}).get(_FIELD))
    missing = [name for name in ("key", "low", "high", *SUMS) if name not in data.column_names]
    if missing:
        message = f"{os.fspath(path)!r} lacks the columns {', '.join(missing)} of a table."
        raise InvalidPredictions(message)
    column = {name: data[name].to_numpy() for name in ("key", "low", "high", *SUMS)}
    cut = dict(about["cut"])
    return BinTable(
        _CUTS[cut.pop("kind")](**cut),
        column["key"],
        column["low"],
        column["high"],
        np.stack([column[name] for name in SUMS]),
        prior=about["prior"],
        label_frequency=about["label_frequency"],
        nested=about["nested"],
        invalid=about["invalid"],
    )


def _about(path: Path_, text: bytes | None) -> dict[str, Any]:
    if text is None:
        message = f"{os.fspath(path)!r} is a Parquet file, but not a table that BinTable.save wrote."
        raise InvalidPredictions(message)
    about = json.loads(text)
    version = about.get("schema_version")
    if version != SCHEMA_VERSION:
        message = f"{os.fspath(path)!r} has schema version {version}; this release of calibrant reads {SCHEMA_VERSION}."
        raise InvalidPredictions(message)
    return dict(about)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        message = "Saving tables needs pyarrow: pip install 'calibrant[files]'."
        raise ImportError(message) from error
    return pyarrow, pyarrow.parquet
