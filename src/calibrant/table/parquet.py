"""Tables as Parquet files. A file that no rows could have given was damaged or made up, and raises an error."""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._atomic_write import replacing
from calibrant.data.saved_files import InvalidFile, layout_version, parsed_json, reading_back
from calibrant.data.validation import fail, require, whole
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import SUMS
from calibrant.table.binning import Distinct, Edges, HybridGrid, LogGrid
from calibrant.table.bintable import BinTable
from calibrant.table.task import Labelled, Spread, Task, Unlabeled

#: The versions of the layout this release reads; it writes the last. Version 1 had no task but its fields, each alone.
#: Derived: those that were released.
READABLE = (1, 2)
SCHEMA_VERSION = READABLE[-1]
_FIELD = b"calibrant"
_COLUMNS = ("key", "low", "high", *SUMS)
_CUTS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (Edges, Distinct, HybridGrid, LogGrid)}
_TASKS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (Labelled, Spread, Unlabeled)}

#: Groups that JSON has no type for, and how they are read.
_WRITTEN_AS_TEXT: dict[str, Callable[[str], Any]] = {
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "float": float,
}

Path_ = str | os.PathLike[str]
Steps = tuple[Any, ...]


def save(table: BinTable, path: Path_) -> None:
    """Write a table to a Parquet file, all of it or nothing."""
    _write(_columns(table), _words(table), path)


def load(path: Path_) -> BinTable:
    """Read a table that `save` wrote."""
    with reading_back(_opened(path), "a valid table"):
        data, about = _read(path, _COLUMNS)
        if "tables" in about:
            several = len(about["tables"])
            fail(f"{os.fspath(path)} holds {several} tables: read it with calibrant.table.load_tables.", InvalidFile)
        return _table(_arrays(data), about)


def save_tables(tables: Mapping[Any, Any], path: Path_) -> None:
    """Write the tables of several groups to one Parquet file, all of them or nothing.

    Parameters
    ----------
    tables : mapping of group to BinTable
        As `bin_tables` gives it; mappings within it are kept. Groups are text, numbers,
        truth values, dates, None, or tuples of them.
    path : path
        The file has the columns of `BinTable.save` and one more, `group`, the place of the row's table in the mapping.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from calibrant.scale import bin_tables
    >>> log = pd.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.6, 0.9], "country": ["at", "at", "de"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tables(bin_tables(log, y_true="y", y_prob="p", by="country"), f"{folder}/tables.parquet")
    ...     load_tables(f"{folder}/tables.parquet")
    {'at': <BinTable of 2 cells, n=2, HybridGrid>, 'de': <BinTable of 1 cells, n=1, HybridGrid>}
    """
    flat = list(_flat(tables))
    if not flat:
        fail("tables is empty: there is nothing to save.", ValueError)
    words = [{**_words(table), "group": [_plain(step) for step in steps]} for steps, table in flat]
    parts = [_columns(table) for _, table in flat]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}
    place = np.repeat(np.arange(len(flat), dtype=np.int32), [len(table) for _, table in flat])
    _write({"group": place, **columns}, {"schema_version": SCHEMA_VERSION, "tables": words}, path)


def load_tables(path: Path_) -> dict[Any, Any]:
    """Read the tables that `save_tables` wrote, under the same groups and in the same order.

    Examples
    --------
    >>> import tempfile
    >>> import calibrant as cal
    >>> table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.EqualWidth(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tables({"at": table, "de": table}, f"{folder}/tables.parquet")
    ...     list(load_tables(f"{folder}/tables.parquet"))
    ['at', 'de']
    """
    with reading_back(_opened(path), "a valid file of tables"):
        data, about = _read(path, ("group", *_COLUMNS))
        words, columns = about["tables"], _arrays(data)
        place = data["group"].to_numpy()
        if len(place) and not ((np.diff(place) >= 0).all() and place[0] >= 0 and place[-1] < len(words)):
            fail(f"group must rise from 0 to at most {len(words) - 1}", ValueError)
        ends = np.searchsorted(place, np.arange(len(words)), side="right")
        found: dict[Any, Any] = {}
        for about_one, start, end in zip(words, [0, *ends[:-1]], ends, strict=True):
            table = _table({name: values[start:end] for name, values in columns.items()}, about_one)
            _put(found, [_group(step) for step in about_one["group"]], table)
        return found


def _put(found: dict[Any, Any], steps: list[Any], table: BinTable) -> None:
    """Add a table under its groups, of which no other table may have the same."""
    *outer, last = steps
    place = found
    for step in outer:
        place = place.setdefault(step, {})
    if last in place:
        fail(f"the group {last!r} occurs twice", ValueError)
    place[last] = table


def _flat(tables: Mapping[Any, Any], steps: Steps = ()) -> Iterator[tuple[Steps, BinTable]]:
    """Every table with the groups that lead to it."""
    if not isinstance(tables, Mapping):
        message = f"tables must map groups to tables, as bin_tables(..., by=...) does, got {type(tables).__name__}."
        raise TypeError(message)
    for group, table in tables.items():
        if isinstance(table, BinTable):
            yield (*steps, group), table
        else:
            yield from _flat(table, (*steps, group))


def _plain(group: Any) -> Any:
    """A group as JSON has it; dates by name, so that they come back as dates."""
    if isinstance(group, np.generic):
        group = group.item()
    if isinstance(group, tuple):
        return [_plain(part) for part in group]
    if isinstance(group, datetime.datetime):
        return {"datetime": group.isoformat()}
    if isinstance(group, datetime.date):
        return {"date": group.isoformat()}
    if isinstance(group, float) and not math.isfinite(group):  # which JSON does not have
        return {"float": str(group)}
    if group is None or isinstance(group, (str, int, float)):
        return group
    message = f"Groups must be text, numbers, dates or tuples of them to be saved, got {group!r}: rename it first."
    raise TypeError(message)


def _group(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_group(part) for part in plain)
    if isinstance(plain, dict):
        ((kind, text),) = plain.items()
        return _WRITTEN_AS_TEXT[kind](text)
    return plain


def _columns(table: BinTable) -> dict[str, Any]:
    columns = (table.key, table.low, table.high, *table.sums)
    return {name: np.ascontiguousarray(values) for name, values in zip(_COLUMNS, columns, strict=True)}


def _words(table: BinTable) -> dict[str, Any]:
    task: Any = table.task
    return {
        "schema_version": SCHEMA_VERSION,
        "cut": {"kind": type(table.cut).__name__, **asdict(table.cut)},
        "task": {"kind": type(task).__name__, **asdict(task)},
        "invalid": dict(table.invalid),
        **({"weight_unit": table.weight_unit} if table.weight_unit else {}),
    }


def _table(columns: Mapping[str, Any], words: Mapping[str, Any]) -> BinTable:
    """The table, if some rows could have given it."""
    cut, sums = dict(words["cut"]), np.stack([columns[name] for name in SUMS]).astype(np.float64, copy=False)
    if words.get("nested") and np.array_equal(columns["weight"], columns["weight_squares"]):
        sums[0] = columns["weight"]  # version 1 counted the labelled rows of a single sample twice
    key, low, high = (columns[name] for name in ("key", "low", "high"))
    about = (_task(words), dict(words["invalid"]), int(words.get("weight_unit", 0)))
    table = BinTable(_CUTS[cut.pop("kind")](**cut), key, low, high, sums, *about)
    require_possible(table)
    return table


def _arrays(data: Any) -> dict[str, Any]:
    """The columns of numbers, without missing values."""
    found = {}
    for name in _COLUMNS:
        values = data[name].to_numpy()
        if values.dtype.kind not in "fiu" or data[name].null_count:
            fail(f"column {name!r} must hold numbers, and none may be missing", ValueError)
        found[name] = values
    return found


def _task(words: Mapping[str, Any]) -> Task:
    if "task" in words:
        fields = dict(words["task"])
        task: Task = _TASKS[fields.pop("kind")](**fields)
        return task
    if words["prior"] is None:  # version 1
        return Spread() if words["spread"] else Labelled()
    known = words["label_frequency"] is not None
    return Unlabeled(None if known else words["prior"], words["label_frequency"], words["nested"])


def _write(columns: Mapping[str, Any], about: Mapping[str, Any], path: Path_) -> None:
    arrow, parquet = _pyarrow()
    data = arrow.table(columns).replace_schema_metadata({_FIELD: json.dumps(about).encode()})
    with replacing(path) as place:
        parquet.write_table(data, place, compression="zstd")


def _opened(path: Path_) -> Path_:
    """The path, if there is a file that can be opened: a missing file is not an invalid one."""
    with open(path, "rb"):
        return path


def _read(path: Path_, needed: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
    _, parquet = _pyarrow()
    try:
        data = parquet.read_table(Path(path), partitioning=None)
    except Exception as error:
        fail(f"{os.fspath(path)} is not a readable Parquet file: {error}", InvalidFile, cause=error)
    what = "a table that BinTable.save wrote"
    if (text := (data.schema.metadata or {}).get(_FIELD)) is None:
        fail(f"{os.fspath(path)} is a Parquet file, but not {what}.", InvalidFile)
    about = dict(parsed_json(text, path, what))
    layout_version(about.get("schema_version"), READABLE, path)
    if "group" in needed and "tables" not in about:
        fail(f"{os.fspath(path)} holds one table, not one per group: read it with BinTable.load.", InvalidFile)
    missing = [name for name in needed if name not in data.column_names]
    if missing:
        fail(f"{os.fspath(path)} lacks the columns {', '.join(missing)} of a table.", InvalidFile)
    return data, about


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        fail("Saving tables needs pyarrow: pip install 'calibrant[files]'.", ImportError, cause=error)
    return pyarrow, pyarrow.parquet


#: Sums of the same rows in another order, or of single precision, differ by less than this part.
#: Derived: ten times the spacing of single precision at 1, 1.2e-7.
ROUNDING = 1e-6


def require_possible(table: BinTable) -> None:
    """Raise `InvalidPredictions` unless some rows could have given this table."""
    for name in ("prior", "label_frequency"):
        share = getattr(table.task, name, None)
        if share is not None and not (isinstance(share, (int, float)) and 0 < share <= 1):
            fail(f"{name} must lie in (0, 1], got {share!r}.")
    if not isinstance(nested := getattr(table.task, "nested", False), bool):
        fail(f"nested must be true or false, got {nested!r}.")
    _require_cells(table)
    with np.errstate(all="ignore"):
        _require_sums(table)
    for reason, count in table.invalid.items():
        whole(f"invalid[{reason!r}]", count, minimum=0)


def _require_cells(table: BinTable) -> None:
    """Keys that the cut has, bounds in order, and scores that the task can have."""
    key, low, high, cut = table.key, table.low, table.high, table.cut
    for name, values in (("key", key), ("low", low), ("high", high)):
        require(name, values, np.isfinite(values), "must be finite")
    require("low", low, low <= high, "must not be above high")
    if not isinstance(cut, Distinct):
        require("key", key, key == np.floor(key), "must be whole")
    if isinstance(cut, Edges):
        require("key", key, (key >= 0) & (key < len(cut.edges) - 1), "must be the number of a bin")
        require("key", key, np.diff(key, prepend=-1) > 0, "must rise")
        at = key.astype(np.intp)
        require("low", low, (low == cut.edges[at]) & (high == cut.edges[at + 1]), "must be an edge, as high must")
        return
    if isinstance(cut, HybridGrid):
        most = cut.cells * (cut.equal_width or 1)  # edges of equal width divide cells further
        require("key", key, (key >= 0) & (key < most), "must be the number of a cell")
    require("low", low, np.diff(low, prepend=low[:1]) >= 0, "must rise")
    if isinstance(table.task, Spread):
        require("low", low, low > 0, "must be positive, as predicted spreads are")
    else:
        require("low", low, (low >= 0) & (high <= 1), "must lie in [0, 1], as high must")


def _require_sums(table: BinTable) -> None:
    count, weight, predicted, observed = table.count, table.weight, table.predicted, table.observed
    for name in ("count", "weight", "weight_squares", "predicted", "observed", "product", "observed_squares"):
        values = getattr(table, name)
        require(name, values, np.isfinite(values) & (values >= 0), "must be finite and not negative")
    squares = table.predicted_squares
    known = ~np.isnan(squares)  # of bins they may have been left out
    require("predicted_squares", squares, (known | (not table.fine)) & ~(squares < 0), "must not be negative")
    if table.fine:
        require("count", count, count == np.rint(count), "must be whole")
        require("weight", weight, _at_most(table.weight_squares, weight**2), "must fit weight_squares")
    require("weight", weight, _at_most(weight**2, count * table.weight_squares), "must fit count and weight_squares")
    fits = ~known | _at_most(predicted**2, weight * squares)
    require("predicted_squares", squares, fits, "must fit predicted and weight")
    if table.fine:
        power = 2 if isinstance(table.task, Spread) else 1
        inside = _at_most(table.low**power * weight, predicted) & _at_most(predicted, table.high**power * weight)
        require("predicted", predicted, inside, "must lie between low and high times the weight")
    if isinstance(table.task, Spread):
        return
    require("predicted", predicted, _at_most(predicted, weight), "must not exceed the weight")
    require("product", table.product, _at_most(table.product, observed), "must not exceed observed")
    if isinstance(table.task, Unlabeled):
        return
    require("observed", observed, _at_most(observed, weight), "must not exceed the weight")
    require("product", table.product, _at_most(table.product, predicted), "must not exceed predicted")
    require("observed_squares", table.observed_squares, _at_most(table.observed_squares, observed), "must fit observed")


def _at_most(smaller: Floats, larger: Floats) -> NDArray[np.bool_]:
    """Whether one is at most the other but for rounding."""
    return np.asarray(smaller <= larger * (1 + ROUNDING) + np.finfo(np.float64).tiny)
