"""The variational estimator against probmetrics' recommended map, on real predictions, in one run.

usage: CALIBRANT_PEERS=/path/to/venv python -m benchmarks.variational [--rows 3000] [--work FOLDER]

The peers' environment needs torch, probmetrics, numba, pandas and catboost. Every case is kept in FOLDER as it is
done, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cal
from benchmarks.measuring import RESULTS, cpu_seconds, peers_python, run_peer, write_results
from benchmarks.variational_cases import binary_cases, multiclass_cases
from calibrant.estimators.cross_fitting import contributions

PEERS = ("TS", "isotonic", "SMS", "WS CatBoost")
NORMS = {"L1": 1.0, "L2": 2.0, "squared": "squared", "KL": "kl"}
#: Cases whose largest primary error is below this are well calibrated and left out, as in the paper.
LEAST = 0.02
#: Probabilities are clipped here before logarithms, for all methods alike.
FLOOR = 1e-6


def errors(f: np.ndarray, g: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The estimates of one set of out-of-fold maps."""
    outcome = np.eye(f.shape[1])[y]
    if f.shape[1] == 2:
        f, g, outcome = f[:, 1:], g[:, 1:], outcome[:, 1:]
    found = {}
    for name, norm in NORMS.items():
        if norm == "kl":
            found[name] = float(contributions(norm, floored(f), floored(g), outcome).mean())
        else:
            found[name] = float(contributions(norm, f, g, outcome).mean())
    return found


def floored(p: np.ndarray) -> np.ndarray:
    clipped = np.clip(p, FLOOR, 1 - FLOOR)
    return clipped if p.shape[1] == 1 else clipped / clipped.sum(axis=1, keepdims=True)


def prepare(folder: Path, cases) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, p, y in cases:
        target = folder / f"{name}.npz"
        if target.exists():
            continue
        f = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        fold = np.random.default_rng(0).permutation(np.arange(len(y)) % 5)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as part:
            np.savez(part, f=f, y=y, fold=fold)
        os.replace(part.name, target)


def ours(f: np.ndarray, y: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, float]:
    """Our out-of-fold maps on the same folds, and the CPU time of the whole public call (its folds are its own)."""
    from calibrant.numerics import multiclass_map as class_map
    from calibrant.numerics import smoothers

    if f.shape[1] == 2:
        g = smoothers.cross_fitted(f[:, 1], fold, y.astype(float), 1.0 - y)
        data, g = cal.Binary(y, f[:, 1]), np.stack([1 - g, g], axis=1)
    else:
        g = class_map.cross_fitted(f, fold, y, np.ones(len(y)))
        data = cal.Multiclass(y, f)
    seconds = cpu_seconds(
        lambda: cal.estimators.variational_errors(data, norms=list(NORMS.values())), 3 if len(y) < 5000 else 1
    )
    return g, seconds


def stored_rows() -> dict[str, list[dict[str, object]]]:
    """The peers' rows of the last run, by case."""
    found: dict[str, list[dict[str, object]]] = {}
    with (RESULTS / "variational.csv").open(encoding="utf8") as file:
        for row in csv.DictReader(file):
            if row["method"] in PEERS:
                numbers = {name: float(row[name]) for name in ("seconds", *NORMS)}
                found.setdefault(row["case"] + row["classes"], []).append(
                    {**row, "n": int(row["n"]), "classes": int(row["classes"]), **numbers}
                )
    return found


def rows_of(folder: Path, stored: dict[str, list[dict[str, object]]] | None) -> list[dict[str, object]]:
    """One row per case and method."""
    found: list[dict[str, object]] = []
    files = sorted(folder.glob("*.npz"))
    for number, file in enumerate(files):
        print(f"\rcalibrant {number + 1}/{len(files)} {file.stem:50.50}", end="", file=sys.stderr, flush=True)
        case = np.load(file)
        f, y, fold = case["f"], case["y"], case["fold"]
        head = {"case": file.stem, "n": len(y), "classes": f.shape[1]}
        g, seconds = ours(f, y, fold)
        found.append({**head, "method": "calibrant", "seconds": seconds, **errors(f, g, y)})
        if stored is not None:
            found += stored[file.stem + str(f.shape[1])]
            continue
        for peer in PEERS:
            out = folder / "out" / f"{file.stem}__{peer}.npz"
            if not out.exists():
                continue
            stored = np.load(out)
            failed = bool(str(stored["failed"]))
            values = dict.fromkeys(NORMS, 0.0) if failed else errors(f, stored["g"], y)
            found.append({**head, "method": peer, "seconds": float(stored["seconds"]), **values})
    print(file=sys.stderr)
    return found


def table(rows: list[dict[str, object]], primary: str, columns: list[str], *, timed: bool) -> list[str]:
    """Mean per cent of the largest estimate, as in the paper's Table 1, and CPU time if all of one run."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    by_case: dict[str, dict[str, dict[str, object]]] = {}
    for row in rows:
        by_case.setdefault(row["case"], {})[row["method"]] = row
    complete = [case for case in by_case.values() if len(case) == len(methods)]
    kept = [case for case in complete if max(row[primary] for row in case.values()) > LEAST]
    lines = [
        f"{len(complete)} cases, {len(kept)} of them with an error ({primary}) above {LEAST}.",
        "",
        f"| map | {' | '.join(f'% of max {c}' for c in columns)} |" + " CPU s | WS CatBoost costs |" * timed,
        "|---" * (len(columns) + 1 + 2 * timed) + "|",
    ]
    base = sum(case["WS CatBoost"]["seconds"] for case in complete) if "WS CatBoost" in methods else np.nan
    for method in methods:
        cells = []
        for column in columns:
            most = [max(row[column] for row in case.values()) for case in kept]
            share = [100 * max(case[method][column], 0) / top for case, top in zip(kept, most, strict=True) if top > 0]
            cells.append(f"{np.mean(share):.1f} ± {np.std(share) / np.sqrt(len(share)):.1f}")
        seconds = sum(case[method]["seconds"] for case in complete)
        lines.append(f"| {method} | {' | '.join(cells)} |" + f" {seconds:.2f} | {base / seconds:.1f} x |" * timed)
    return [*lines, ""]


def by_size(rows: list[dict[str, object]], *, timed: bool) -> list[str]:
    """CPU time by number of classes and rows, and its ratio if all of one run."""
    lines = ["| classes | n | calibrant s |" + " WS CatBoost s | ratio |" * timed, "|---" * (3 + 2 * timed) + "|"]
    groups: dict[tuple[int, int], dict[str, list[float]]] = {}
    for row in rows:
        groups.setdefault((row["classes"], row["n"]), {}).setdefault(row["method"], []).append(row["seconds"])
    for (classes, n), found in sorted(groups.items()):
        if "WS CatBoost" in found:
            a, b = np.mean(found["calibrant"]), np.mean(found["WS CatBoost"])
            lines.append(f"| {classes} | {n} | {a:.3f} |" + f" {b:.2f} | {b / a:.1f} |" * timed)
    return [*lines, ""]


def large_lines() -> list[str]:
    """A million binary rows against one sort."""
    rng = np.random.default_rng(0)
    f = rng.beta(0.5, 0.5, 10**6)
    y = rng.random(10**6) < 1 / (1 + np.exp(-0.4 * np.log(f / (1 - f)) - 0.3))
    data = cal.Binary(y, f)
    sort = cpu_seconds(lambda: np.sort(f))
    one = cpu_seconds(lambda: cal.variational_error(data)) / sort
    lines = [f"Binary, n = 1,000,000: {one:.1f} x one sort of the scores (at most 20 x wanted).", ""]
    return [*lines, "Up to 1,000 classes: `python -m benchmarks.variational_many`.", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000, help="rows per binary case")
    parser.add_argument("--vectors", type=int, default=2000, help="rows per multiclass case")
    parser.add_argument("--large", type=int, default=10_000, help="rows of the three large multiclass cases")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "calibrant-variational")
    parser.add_argument(
        "--stored", action="store_true", help="take the peers' rows from the last run: same cases, folds"
    )
    options = parser.parse_args()
    prepare(options.work / "binary", binary_cases(options.rows))
    prepare(options.work / "multi", multiclass_cases(options.vectors, options.large))
    python = None if options.stored else peers_python()
    for kind in ("binary", "multi"):
        if python is not None:
            script = Path(__file__).with_name("variational_peer.py")
            subprocess.run([python, str(script), str(options.work / kind)], check=True)
    stored = stored_rows() if options.stored else None
    found = {kind: rows_of(options.work / kind, stored) for kind in ("binary", "multi")}
    with (RESULTS / "variational.csv").open("w", newline="", encoding="utf8") as out:
        writer = csv.DictWriter(out, fieldnames=list(found["binary"][0]), lineterminator="\n")
        writer.writeheader()
        for row in found["binary"] + found["multi"]:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    lines = [
        "Recipe of the paper's Table 1: estimates of all methods on the same five plain (not stratified) folds, "
        "clipped at 0, divided by the largest of the methods of the table, averaged over cases. One seed. "
        f"Binary and top-label files at up to {options.rows} rows; files of 3 to 20 classes at up to "
        f"{options.vectors}, three of them also at {options.large} rows and merged into 3 classes. CPU time is that of "
        "process and children, one thread; ours is the whole call for all norms, the peers' that of fitting and "
        "predicting. Logarithms are floored at 1e-6 for all. SMS is quadratic scaling for binary cases.",
        *(
            [
                "",
                "The peers' estimates are those of an earlier run (probmetrics 1.3.0, catboost 1.2.10), on the same "
                "cases and folds (`--stored`); its processor times are not compared with those of this one.",
            ]
            if options.stored
            else []
        ),
        "",
        "## Binary and top label",
        "",
        *table(found["binary"], "L1", ["L1", "squared", "KL"], timed=not options.stored),
        "## Multiclass",
        "",
        *table(found["multi"], "L2", ["L1", "L2", "squared", "KL"], timed=not options.stored),
        "## CPU time by size",
        "",
        *by_size(found["multi"], timed=not options.stored),
        "## Large",
        "",
        *large_lines(),
    ]
    versions = run_peer(
        "import json\nfrom importlib.metadata import version\n"
        "print(json.dumps({name: version(name) for name in ('probmetrics', 'catboost', 'torch')}))"
    )
    write_results(
        "variational",
        "Variational estimator",
        f"python -m benchmarks.variational{' --stored' * options.stored}",
        lines,
        **(versions or {}),
    )


if __name__ == "__main__":
    main()
