"""What the tables of pairs and the local corrections of the multiclass map add on real predictions.

usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.variational_stages FOLDER
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.measuring import write_results
from benchmarks.variational_worlds import NORMS, folds, softmax
from calibrant.estimators.cross_fitting import contributions
from calibrant.numerics.multiclass_map import Frame, Locality, fit_stages, working_weights
from calibrant.numerics.multiclass_matrices import PairTables

WAYS = ("neither", "tables", "local", "both")


def predictions(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Probabilities and labels, or None where there are fewer than three classes."""
    with np.load(path) as data:
        names = [name for name in ("probs", "logits", "logits_test") if name in data]
        if not names or data[names[0]].shape[1] < 3:
            return None
        scores = data[names[0]].astype(float)
        p = scores / scores.sum(axis=1, keepdims=True) if names == ["probs"] else softmax(scores)
        return p, data["labels_test" if "labels_test" in data else "labels"].astype(int)


def by_stage(p: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Cross-fitted probabilities with neither stage, one of them, and both."""
    frame, rows = Frame.of(p)
    weight, position, local = working_weights(np.ones(len(y))), rows.entries.positions(y), Locality.of(rows)
    fold, found = folds(len(y), np.random.default_rng(1)), {way: p.copy() for way in WAYS}
    for k in range(5):
        stages = fit_stages(frame, rows, position, weight, np.flatnonzero(fold != k), seed=k, group=None)
        empty = tuple(PairTables(t.pair[:0], t.other[:0], t.values[:0]) for t in stages.tables)
        own = np.flatnonzero(fold == k)
        some = rows.take(own)
        for used, names in ((replace(stages, tables=empty), WAYS[::2]), (stages, WAYS[1::2])):
            logs = used.logs(some)
            corrected = local.fitted(used, y, weight, fold != k)[0].added_to(logs, some.places)
            for name, values in zip(names, (logs, corrected), strict=True):
                found[name][own] = np.exp(np.maximum(values, -87))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    lines = [
        "Cross-fitted variational error of real multiclass predictions (10,000 rows but for 20news and hpc) in "
        "L1, squared and KL, with both stages, and what is lost without the tables, without the local corrections, and "
        "without either, in percent of it.",
        "",
        "| predictions | K | L1 | squared | KL | without tables | without local | without either |",
        "|---" * 8 + "|",
    ]
    for path in sorted(parser.parse_args().folder.glob("*.npz")):
        given = predictions(path)
        if given is None:
            continue
        p, y = given
        outcome = np.eye(p.shape[1])[y]
        norms = {name: norm for name, norm in NORMS.items() if name != "L2"}
        errors = {
            way: np.array([contributions(norm, p, g, outcome).mean() for norm in norms.values()])
            for way, g in by_stage(p, y).items()
        }
        both = errors["both"]
        with np.errstate(invalid="ignore"):
            lost = {way: 100 * (both - errors[way]) / both for way in ("local", "tables", "neither")}
        cells = [" / ".join(f"{value:.2f}" for value in lost[way]) for way in lost]
        row = [path.stem, str(p.shape[1]), *(f"{value:.4f}" for value in both), *cells]
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
    command = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.variational_stages FOLDER"
    write_results("variational_stages", "Stages of the multiclass map on real predictions", command, lines)


if __name__ == "__main__":
    main()
