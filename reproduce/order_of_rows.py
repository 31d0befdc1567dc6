"""How far do the variational error and its bounds move with the order of the rows, and with the seed?

    python -m reproduce.order_of_rows      # two minutes; results/order_of_rows.md and .csv

1,000 rows of each of four public files of predictions and of two simulated worlds, in 12 orders and with 12 seeds.
Spreads are standard deviations over the 12, in standard errors of the estimate (`details["standard_error"]`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant._atomic_write import replacing
from calibrant.numerics.random_draws import generator
from reproduce import data
from reproduce.auto_candidates import files
from reproduce.variational_worlds import draw_binary, draw_multiclass

RESULTS = Path(__file__).with_name("results")
ROWS, TIMES = 1000, 12
BINARY_FILES = ("538_nba_games", "toplabel_kangsepp_densenet40_c100")
MULTICLASS_FILES = ("netcal_lenet_5_cifar_10", "tidymodels_hpc_cv")
Bound = cal.estimators.CrossFittedBound | cal.estimators.SplitSampleBound


def low_of(bound: Bound) -> Callable[..., float]:
    """The lower confidence bound of the variational error by one method."""

    def low(rows: Any, seed: int = 0) -> float:
        interval = cal.variational_error(rows, bound=bound, seed=seed).interval
        return float(interval.low) if interval is not None else float("nan")

    return low


def default_low(rows: Any, seed: int = 0) -> float:
    """The lower end of the default interval."""
    interval = cal.interval(cal.variational_error, rows, seed=seed).interval
    return float(interval.low) if interval is not None else float("nan")


STATISTICS: dict[str, Callable[..., float]] = {
    "error": lambda rows, seed=0: float(cal.variational_error(rows, seed=seed)),
    "CrossFittedBound": low_of(cal.estimators.CrossFittedBound()),
    "SplitSampleBound": low_of(cal.estimators.SplitSampleBound()),
    "default interval, lower end": default_low,
}


def cases() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, probabilities and outcomes."""
    folder = data.folder("classification")
    for name in BINARY_FILES if folder else ():
        with np.load(folder / f"{name}.npz") as stored:
            found = (
                (stored["prob"], stored["labels"])
                if "prob" in stored
                else (stored["conf"], stored["pred"] == stored["labels"])
            )
        yield name, *_some(found[0].astype(float), found[1].astype(int))
    for name, p, y in files():
        if name in MULTICLASS_FILES:
            yield name, *_some(p, y)
    yield "calibrated, 2 classes", *draw_binary(np.random.default_rng([38, 2]), "calibrated", ROWS)
    yield "calibrated, 3 classes", *draw_multiclass(np.random.default_rng([38, 3]), "calibrated", 3, ROWS)


def _some(p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = generator(0, "rows of the study of orders").permutation(len(y))[:ROWS]
    return p[rows], y[rows]


def found(name: str, p: np.ndarray, y: np.ndarray) -> Iterator[dict[str, Any]]:
    """One row of the table for each statistic of a case."""
    task = cal.Binary if p.ndim == 1 else cal.Multiclass
    orders = [generator(k, "orders of rows").permutation(len(y)) for k in range(TIMES)]
    error = cal.variational_error(task(y, p)).details["standard_error"]
    for words, statistic in STATISTICS.items():
        by_order = np.array([statistic(task(y[k], p[k])) for k in orders])
        by_seed = np.array([statistic(task(y, p), seed=seed) for seed in range(TIMES)])
        yield {
            "data": name,
            "classes": 2 if p.ndim == 1 else p.shape[1],
            "number": words,
            "value": statistic(task(y, p)),
            "standard_error": error,
            "over_orders": by_order.std(ddof=1) / error,
            "over_seeds": by_seed.std(ddof=1) / error,
        }


def page(rows: list[dict[str, Any]]) -> list[str]:
    """The largest spreads first."""
    lines = ["# Order of rows and seeds: spread of the variational error and its bounds", ""]
    lines += [(__doc__ or "").partition("\n\n")[2].strip().partition("\n\n")[2], ""]
    lines += [
        "| data | classes | number | value | spread over orders | spread over seeds |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (-round(row["over_orders"], 6), -row["over_seeds"])):
        lines.append(
            f"| {row['data']} | {row['classes']} | {row['number']} | {row['value']:.4f} | {row['over_orders']:.3f} "
            f"| {row['over_seeds']:.3f} |"
        )
    return [*lines, "", f"Made on {date.today()} with calibrant {cal.__version__}, NumPy {np.__version__}."]


def main() -> None:
    rows = [row for case in cases() for row in found(*case)]
    with replacing(RESULTS / "order_of_rows.csv") as place, place.open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    with replacing(RESULTS / "order_of_rows.md") as place:
        place.write_text("\n".join(page(rows)) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
