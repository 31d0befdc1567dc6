"""Tables as schema version 1 wrote them; run with the last release that wrote it (commit 002cc7e or before)."""

from pathlib import Path

import calibrant as cal
from calibrant.table import save_tables

P = [0.1, 0.2, 0.4, 0.4, 0.7, 0.9]
KNOWN = {"labelled": [1, 0, 0, 1, 0, 1], "y_prob": P, "scenario": "single-sample"}


def tables():
    grid = cal.table.HybridGrid(64)
    return {
        "labelled": cal.BinTable.of(cal.Binary([0, 1, 0, 1, 1, 1], P, weight=[1, 2, 1, 1, 0.5, 1]), grid),
        "spread": cal.BinTable.of(
            cal.Gaussian([0.3, -1.0, 2.0], [0.0, 0.0, 1.0], [0.5, 1.0, 2.0]), cal.table.LogGrid()
        ),
        "prior": cal.BinTable.of(cal.PositiveUnlabeled(P[3:], P, prior=0.6), grid),
        "frequency": cal.BinTable.of(cal.PositiveUnlabeled.from_labels(**KNOWN, label_frequency=0.8), grid),
    }


if __name__ == "__main__":
    save_tables(tables(), Path(__file__).with_name("table_version_1.parquet"))
