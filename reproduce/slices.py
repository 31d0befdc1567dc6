"""Does the search over columns and their crosses find what only combinations show, and nothing where there is nothing?

``python -m reproduce.slices`` writes reproduce/results/slices.csv: for calibrated models with 20 columns the share of
runs in which any slice is flagged at 5%, for models that are off by 15 points in every combination of two of 20 columns
(and right for every value of each) the share of runs in which such a slice is flagged; and with ``--rows`` the CPU
seconds of one search over 20 columns. Rows are independent, or in clusters of 10 that share half of the
variance of their luck and the values of five columns. What the file holds already is not measured again. No constant of
the method was chosen in these worlds.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

import calibrant as cal
from reproduce.resumable import Row, markdown, measured

RESULTS = Path(__file__).with_name("results")
COLUMNS = 20
#: Predictions: mean a half, and few events.
SCORES = {"uniform": (1.0, 1.0), "rare": (0.4, 12.0)}
#: Columns that rows of a cluster share, and the share of the variance of their luck.
SHARED_COLUMNS, SHARED_LUCK = ("names 2", "names 4", "names 8", "numbers 1", "numbers 3"), 0.5


def columns(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Ten columns of 2 to 11 names, five of numbers, five that depend on others of them."""
    made: dict[str, Any] = {f"names {k}": np.array(list("abcdefghijk"))[rng.integers(0, k + 2, n)] for k in range(10)}
    made |= {f"numbers {k}": rng.gamma(1 + k, size=n) for k in range(5)}
    for k in range(5):
        noise = rng.random(n) < 0.3
        made[f"like {k}"] = np.where(noise, made[f"names {k}"], made[f"names {k + 2}"])
    return made


def world(
    rng: np.random.Generator, n: int, scores: str, error: float, cluster_rows: int = 1
) -> tuple[cal.Binary, dict[str, Any]]:
    """Predictions that are off by `error`, up or down, in every combination of two columns, but in no column."""
    by, cluster = columns(rng, n), np.arange(n) // cluster_rows
    by |= {name: by[name][cluster * cluster_rows] for name in SHARED_COLUMNS}
    p = rng.beta(*SCORES[scores], n)
    p = p if error == 0 else error + p * (1 - 2 * error)
    odd = [np.isin(by[name], list("bdfh")) for name in ("names 2", "names 6")]  # of 4 and of 8 names
    sign = np.where(odd[0] == odd[1], 1.0, -1.0)
    if cluster_rows == 1:
        return cal.Binary(rng.random(n) < p + error * sign, p), by
    common, own = rng.normal(size=n)[cluster], rng.normal(size=n)
    luck = ndtr(np.sqrt(SHARED_LUCK) * common + np.sqrt(1 - SHARED_LUCK) * own)
    return cal.Binary(luck < p + error * sign, p, group=cluster), by


def search(data: cal.Binary, by: dict[str, Any], *, confirm: bool, intervals: int = 0) -> cal.inference.ByGroup:
    """All columns and all crosses of two, numbers in four ranges."""
    return cal.by_group(
        cal.brier, data, by=by, depth=2, quantiles=4, confirm=confirm, intervals=intervals, method=cal.Bootstrap(9)
    )


def cell(scores: str, error: float, n: int, confirm: bool, cluster_rows: int, runs: int) -> Row:
    """The share of runs in which a slice is flagged, and in which one of the wrong combinations is."""
    flagged, right, single = [], [], []
    for k in range(runs):
        data, by = world(np.random.default_rng([77, n, round(100 * error), k]), n, scores, error, cluster_rows)
        found = search(data, by, confirm=confirm, intervals=20 if confirm else 0)
        hits = [row for row in found.rows if row.adjusted < 0.05]
        flagged.append(bool(hits))
        right.append(any(row.column == "names 2 x names 6" for row in hits))
        single.append(any(" x " not in row.column for row in hits))
    shares = {"flagged": flagged, "combination_found": right, "column_flagged": single}
    return {name: round(float(np.mean(values)), 4) for name, values in shares.items()}


def seconds(rows: int, cluster_rows: int) -> str:
    """CPU seconds of one search with intervals of the calibration error for the worst 50 slices."""
    data, by = world(np.random.default_rng(5), rows, "uniform", 0.0, cluster_rows)
    start = time.process_time()
    found = cal.by_group(cal.ece, data, by=by, depth=2, quantiles=4)
    used, groups = time.process_time() - start, 0 if found.search is None else found.search.groups
    return f"{rows:,} rows, {COLUMNS} columns, {groups:,} slices, {len(found)} with intervals: {used:.1f} CPU s"


def main(runs: int) -> str:
    """Measure what is missing; the rows as a table."""
    tasks = [
        (*task, runs)
        for task in product(SCORES, (0.0, 0.15), (2_000, 20_000), (False, True), (1, 10))
        if task[1] == 0 or task[2] == 20_000
    ]
    keys = ("scores", "error", "n", "confirm", "cluster_rows", "runs")
    rows = measured(RESULTS / "slices.csv", tasks, keys, cell)
    return markdown(rows, (*keys, "flagged", "combination_found", "column_flagged"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=0, help="time one search instead")
    parser.add_argument("--cluster-rows", type=int, default=1, help="rows of each cluster of the timed search")
    asked = parser.parse_args()
    print(seconds(asked.rows, asked.cluster_rows) if asked.rows else main(asked.runs))
