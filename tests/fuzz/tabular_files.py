"""Files and frames of random types, nulls and bad values: every engine gives what NumPy gives, or all refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import calibrant as cal
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
