"""Logs of every design: types of labels, scores and groups, missing values, weights; and the same rows as files."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl

import calibrant as cal
from calibrant.scale import EventColumns

LABELS = {
    "int8": (np.int8(1), np.int8(0)),
    "float": (1.0, 0.0),
    "bool": (True, False),
    "as pandas writes them": ("True", "False"),
    "yes and no": ("yes", "no"),
    "fraud": ("fraud", "legit"),
}
GROUPS = {
    "text": ["at", "no", "a, b"],
    "int": [1, 2, 10],
    "float": [0.5, 2.0, -1.0],
    "all rows": ["all rows", "(missing)"],
}
SCORES = ("float32", "float64", "whole first")


@dataclass(frozen=True)
class Design:
    """One log; `whole first` has scores of 0 and 1 in its first half, so that its files differ in type."""

    labels: str
    scores: str
    groups: str
    categorical: bool
    missing_rows: bool
    missing_groups: bool
    weighted: bool
    seed: int

    @property
    def task(self):
        return EventColumns(positive="fraud" if self.labels == "fraud" else None)

    @property
    def missing_name(self):
        return "((missing))" if self.groups == "all rows" else "(missing)"

    def frame(self, n=60):
        """The log as a Polars frame, which knows null in every type."""
        rng = np.random.default_rng(self.seed)
        half, p = n // 2, rng.random(n).astype(np.float32).astype(np.float64)
        if self.scores == "whole first":
            p[:half] = rng.integers(0, 2, half)
        yes, no = LABELS[self.labels]
        y = [yes if happened else no for happened in rng.random(n) < p]
        columns = {
            "y": pl.Series(y),
            "p": pl.Series(p, dtype=pl.Float32 if self.scores == "float32" else pl.Float64),
            "g": pl.Series([GROUPS[self.groups][k] for k in rng.integers(0, len(GROUPS[self.groups]), n)]),
            "w": pl.Series(rng.gamma(2.0, size=n)),
        }
        holes = {"y": self.missing_rows, "p": self.missing_rows, "g": self.missing_groups}
        for name in (name for name, wanted in holes.items() if wanted):
            kept = pl.Series(rng.random(n) < 0.9)
            columns[name] = pl.select(pl.when(kept).then(columns[name])).to_series()
        frame = pl.DataFrame(columns)
        text = self.categorical and frame["g"].dtype == pl.String
        return frame.with_columns(pl.col("g").cast(pl.Categorical)) if text else frame

    def expected(self, frame):
        """The table of each group from the rows in memory, and how many rows are missing."""
        valid = frame.drop_nulls(["y", "p"])
        yes = LABELS[self.labels][0]
        tables = {}
        for (group,), rows in valid.cast({"g": pl.String} if frame["g"].dtype == pl.Categorical else {}).group_by("g"):
            weight = rows["w"].to_numpy() if self.weighted else None
            data = cal.Binary((rows["y"] == yes).to_numpy(), rows["p"].to_numpy(), weight=weight)
            tables[self.missing_name if group is None else group] = cal.BinTable.of(data, cal.table.HybridGrid())
        return tables, len(frame) - len(valid)


def as_files(frame, folder):
    """The log as files: whole, in one file of each format; and in two Parquet files and one of each format together."""
    whole, parts, mixed = (folder / name for name in ("whole", "parts", "mixed"))
    for place in (whole, parts, mixed):
        place.mkdir()
    frame.write_parquet(whole / "log.parquet")
    _write(frame, whole / "log.csv")
    _write(frame, whole / "log.json")
    half = len(frame) // 2
    first = frame[:half]
    if set(first["p"].drop_nulls().unique()) <= {0.0, 1.0}:
        first = first.cast({"p": pl.Int64})
    first.write_parquet(parts / "0.parquet")
    frame[half:].write_parquet(parts / "1.parquet")
    texts = frame.cast({"y": pl.Int64} if frame["y"].dtype == pl.Boolean else {})
    texts[:half].write_parquet(mixed / "0.parquet")
    _write(texts[half : half + 10], mixed / "1.csv")
    _write(texts[half + 10 :], mixed / "2.jsonl")
    found = {path.name: str(path) for path in sorted(whole.iterdir())}
    return found | {"two files": str(parts), "three formats": str(mixed)}


def _write(frame, path):
    rows = frame.cast({"p": pl.Float64}).to_dicts()
    if path.suffix == ".csv":
        pd.DataFrame(rows, dtype=object, columns=frame.columns).to_csv(path, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
