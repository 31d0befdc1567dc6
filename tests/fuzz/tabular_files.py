"""Files and frames of random types, nulls and bad values: every engine gives what NumPy gives, or all refuse.

Text files of random dialects, damaged or not: every reader reads the rows that Python's own modules find, or refuses.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet

import calibrant as cal
from calibrant.cli.apply import apply_to_file
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.files import load
from calibrant.scale import bin_table

LABELS = [np.int8, np.int64, np.float32, np.float64, bool]
BAD_SCORES = [np.nan, -0.1, 1.5, np.inf]


def frame(rng):
    """A log of outcomes, scores and weights, in which some rows may be bad; and which are good."""
    n = int(rng.integers(1, 60))
    p = np.round(rng.random(n), int(rng.integers(1, 17)))
    y = (rng.random(n) < p).astype(LABELS[rng.integers(len(LABELS))])
    weight = rng.random(n) + 0.1
    good = np.ones(n, dtype=bool)
    if rng.random() < 0.5:
        bad = rng.integers(0, n, 2)
        p = p.copy()
        p[bad] = BAD_SCORES[rng.integers(len(BAD_SCORES))]
        good[bad] = False
    if rng.random() < 0.3:
        bad = int(rng.integers(n))
        weight[bad] = -1.0
        good[bad] = False
    return pd.DataFrame({"y": y, "p": p.astype(rng.choice([np.float32, np.float64])), "w": weight}), good


def sources(log, folder):
    """The same rows in every kind of source that needs no server."""
    made = {
        "pandas": log,
        "pandas on Arrow": log.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.from_pandas(log),
        "polars lazy": pl.from_pandas(log).lazy(),
        "pyarrow": pa.Table.from_pandas(log),
    }
    path = Path(folder) / "log"
    log.to_parquet(path.with_suffix(".parquet"))
    pl.from_pandas(log).write_ndjson(path.with_suffix(".jsonl"))
    half = len(log) // 2
    if half:
        parts = path.parent / "parts"
        parts.mkdir(exist_ok=True)
        log[:half].to_parquet(parts / "0.parquet")
        log[half:].to_parquet(parts / "1.parquet")
        made["folder"] = str(parts)
    finite = bool(np.isfinite(log["p"]).all()) and log["p"].dtype == np.float64  # JSON knows no other numbers
    return (
        made
        | {"parquet": str(path.with_suffix(".parquet"))}
        | ({"jsonl": str(path.with_suffix(".jsonl"))} if finite else {})
    )


def tabular(rng, folder):
    """One table by every engine against that of the good rows in NumPy, and refused without leave to drop the bad."""
    log, good = frame(rng)
    weight = "w" if rng.random() < 0.5 else None
    good = (
        good | (log["w"].to_numpy() < 0) & (np.isfinite(log["p"]) & log["p"].between(0, 1)).to_numpy()
        if weight is None
        else good
    )
    some = log[good]
    expected = None
    if len(some):
        data = cal.Binary(some["y"], some["p"], weight=None if weight is None else some["w"])
        expected = cal.BinTable.of(data, cal.table.HybridGrid())
    for name, source in sources(log, folder).items():
        read = {"y_true": "y", "y_prob": "p", "weight": weight, "progress": False}
        if not good.all():
            try:
                bin_table(source, **read)
            except cal.InvalidPredictions:
                pass
            else:
                raise AssertionError(f"{name} took bad rows")
        try:
            found = bin_table(source, max_invalid=1.0, **read)
        except cal.InvalidPredictions:
            if expected is not None:
                raise
            continue
        assert expected is not None, f"{name} gave a table of no good rows"
        np.testing.assert_array_equal(found.key, expected.key, err_msg=name)
        np.testing.assert_allclose(found.sums[:6], expected.sums[:6], rtol=1e-9, atol=1e-12, err_msg=name)
        assert sum(found.invalid.values()) == int((~good).sum()), f"{name}: {found.invalid}"


#: Texts that a careless reader takes for something else.
TEXTS = [
    "",
    "a",
    "#",
    "# 1",
    "a,b",
    "a;b",
    'say "no"',
    "two\nlines",
    "x\r\ny,0.5",
    "1,0.5",
    "NA",
    "1.10",
    " a ",
    "'",
    "\\",
    "é",
]
MAP = cal.recalibrate.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])


def csv_text(rng):
    """A CSV file, and whether anything was done to it that a strict reader may refuse."""
    delimiter, ending = rng.choice([",", ";", "\t", "|"]), rng.choice(["\n", "\r\n"])
    made = io.StringIO(newline="")
    writer = csv.writer(made, delimiter=delimiter, lineterminator=ending)
    n, first = int(rng.integers(1, 40)), bool(rng.random() < 0.5)
    text = [TEXTS[rng.integers(len(TEXTS))] for _ in range(n)]
    rows = [[t, y, p] for t, y, p in zip(text, rng.integers(0, 2, n), rng.random(n).round(3), strict=True)]
    for row in [["t", "y", "p"], *rows]:
        writer.writerow(row if first else row[::-1])
    lines = made.getvalue().split(ending)
    clean = bool(rng.random() < 0.5)
    if clean:
        content = ending.join(lines) + ending * int(rng.integers(0, 3))
    else:
        damage = [
            "#x",
            "y,p",
            "t,y,p,more",
            lines[0],
            lines[-2] + delimiter,
            lines[-2] + '"',
            '"',
            "\r",
            "x",
            "1,0.5,3,4",
        ]
        at = int(rng.integers(1, len(lines)))
        lines[at:at] = [str(rng.choice(damage)) for _ in range(int(rng.integers(1, 3)))]
        content = ending.join(lines)
    return ("\ufeff" if rng.random() < 0.2 else "") + content, clean, delimiter


def csv_rows(text, delimiter):
    """The scores of the rows by Python's reader; None where they are not as many fields as the header has."""
    records = [
        row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter) if row
    ]
    if any(len(row) != len(records[0]) for row in records):
        return None
    try:
        return [float(row[records[0].index("p")]) for row in records[1:]]
    except (ValueError, IndexError):
        return None


def json_text(rng):
    """Objects one a line or as a list, and whether they were damaged."""
    n = int(rng.integers(1, 40))
    rows = [
        {"t": TEXTS[rng.integers(len(TEXTS))], "y": int(rng.integers(0, 2)), "p": round(rng.random(), 3)}
        for _ in range(n)
    ]
    parts, several, clean = [json.dumps(row) for row in rows], bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    if not clean:
        damage = ["{}", '{"y": 1}', "null", "7", parts[0][:-1], '{"y": 1, "p": 0.5, "p": 0.25}', "[]", f"[{parts[0]}]"]
        parts.insert(int(rng.integers(len(parts) + 1)), str(rng.choice(damage)))
    return ("\n".join(parts) + "\n" if several else f"[{', '.join(parts)}]"), clean


def json_rows(text):
    """The scores of the objects by Python's reader; None where it refuses them."""
    try:
        found = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
        return [float(row["p"]) for row in found]
    except (ValueError, TypeError, KeyError):
        return None


def readers(path, folder):
    """The scores that each way into the package finds in a file; that of `load` is behind `measure` and `report`."""
    fixed = Path(folder) / "fixed.parquet"

    def applied():
        apply_to_file(MAP, str(path), fixed, Columns(prob=("p",)), suffix="_new")
        return pl.read_parquet(fixed)["p"].to_list()

    def binned():
        table = bin_table(path, y_true="y", y_prob="p", progress=False)
        return np.repeat(table.predicted / table.count, table.count.astype(int))

    return {
        "bin_table": binned,
        "load": lambda: load([str(path)], Columns("y", ("p",))).data.y_prob,
        "apply": applied,
    }


def require_rows(path, folder, expected, *, clean):
    """Every reader finds the expected scores, or refuses a file that was damaged."""
    for name, read in readers(path, folder).items():
        try:
            found = np.asarray(read())
        except (cal.InvalidPredictions, UsageError) as error:
            if clean:
                raise AssertionError(f"{name} refuses a good file: {error}") from error
            continue
        assert expected is not None, f"{name} takes a damaged file"
        np.testing.assert_allclose(np.sort(found), np.sort(expected), atol=1e-9, err_msg=f"{name} of {path}")


def rows_of_text(rng, folder):
    """A CSV or JSON file, compressed or not: every row is read once, by every reader."""
    if rng.random() < 0.6:
        text, clean, delimiter = csv_text(rng)
        expected, ending = csv_rows(text, delimiter), ".csv"
    else:
        text, clean = json_text(rng)
        expected, ending = json_rows(text), ".jsonl" if rng.random() < 0.5 else ".json"
    packed = bool(rng.random() < 0.3)
    path = Path(folder) / f"log{ending}{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    require_rows(path, folder, expected, clean=clean)


def rows_of_tables(rng, folder):
    """A Parquet, Arrow or NumPy file: every row is read once, by every reader."""
    n = int(rng.integers(1, 60))
    table = pa.table({"y": rng.integers(0, 2, n), "p": rng.random(n).round(3)})  # one score a cell
    kind = rng.choice(["parquet", "arrow", "stream", "npz"])
    path = Path(folder) / f"log.{'arrow' if kind == 'stream' else kind}"
    if kind == "parquet":
        pa.parquet.write_table(table, path, row_group_size=int(rng.integers(1, n + 1)))
    elif kind == "npz":
        np.savez(path, **{name: table[name].to_numpy() for name in table.column_names})
    else:
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=int(rng.integers(1, n + 1)))
    require_rows(path, folder, table["p"].to_pylist(), clean=True)
