"""The variational estimate of calibrated multiclass predictions is zero on average.

usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.variational_calibrated
"""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import write_results
from benchmarks.variational_worlds import FIRST_SEED, NORMS, draw, folds, softmax
from calibrant.estimators.cross_fitting import contributions
from calibrant.numerics.multiclass_map import cross_fitted

#: Name, classes, rows, repeats, spread of the logits.
CALIBRATED = [
    ("K = 3", 3, 1000, 60, 2.0),
    ("K = 4", 4, 2000, 40, 2.0),
    ("K = 6, sharp", 6, 1000, 300, 6.0),
    ("K = 10, flat", 10, 2000, 20, 0.7),
    ("K = 60", 60, 2000, 16, 2.0),
    ("K = 300", 300, 3000, 12, 2.0),
]


def of_calibrated(classes: int, rows: int, repeats: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng(FIRST_SEED + 500 + repeat)
        f = softmax(spread * rng.normal(size=(rows, classes)))
        y = draw(rng, f)
        g = cross_fitted(f, folds(rows, rng), y, np.ones(rows)).astype(float)
        found.append([contributions(norm, f, g, np.eye(classes)[y]).mean() for norm in NORMS.values()])
    values = np.array(found)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(repeats)


def main() -> None:
    lines = [
        "Mean estimate over samples of calibrated predictions (standard error from their spread). Given the maps, L1 "
        "and L2 have the expectation 0, and squared and KL at most 0.",
        "",
        f"| predictions | n | samples | {' | '.join(NORMS)} | most above 0, in SE |",
        "|---" * (len(NORMS) + 4) + "|",
    ]
    for name, classes, rows, repeats, spread in CALIBRATED:
        mean, error = of_calibrated(classes, rows, repeats, spread)
        cells = " | ".join(f"{m:+.4f} ({e:.4f})" for m, e in zip(mean, error, strict=True))
        lines.append(f"| {name} | {rows} | {repeats} | {cells} | {(mean / error).max():+.1f} |")
        print(lines[-1], flush=True)
    command = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.variational_calibrated"
    write_results("variational_calibrated", "Variational estimator of calibrated predictions", command, lines)


if __name__ == "__main__":
    main()
