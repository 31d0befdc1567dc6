"""CPU time and memory of the variational estimator with 10, 100 and 1,000 classes, each in a process of its own.

usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.variational_many
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

import calibrant as cal
from benchmarks.measuring import ROOT, cpu_seconds, write_results
from benchmarks.variational_cases import data_folder, subset, vectors

#: What is measured: real files of 10 and 100 classes, and predictions like those of images of 1,000 classes.
REAL = ("cy_cifar10_resnet20", "netcal_lenet_5_cifar_10", "widmann_cifar10_vgg16_bn", "pycalib_mnist_AdaBoost",
        "cy_cifar100_resnet20", "cy_cifar100_vgg16_bn", "netcal_densenet_bc_100_cifar_100")  # fmt: skip
THOUSAND = "image-like"
NORMS = [1, 2, "squared", "kl"]


def image_like(n: int, classes: int) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Overconfident probabilities in single precision, outcomes, and the true errors."""
    rng = np.random.default_rng(5)
    centres = np.random.default_rng(0).normal(size=(classes, 24))
    shift = 0.5 * np.random.default_rng(1).normal(size=classes)
    p, y, errors = np.empty((n, classes), np.float32), np.empty(n, np.intp), np.zeros(4)
    for start in range(0, n, 2000):
        rows = slice(start, min(start + 2000, n))
        m = rows.stop - start
        logits = (centres[rng.integers(0, classes, m)] + 1.1 * rng.normal(size=(m, 24))) @ centres.T * 0.8
        logs, truth = (_log_softmax(z) for z in (1.7 * logits + shift, logits))
        f, h = np.exp(logs), np.exp(truth)
        p[rows], y[rows] = f, np.minimum((h.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1), classes - 1)
        gap = f - h
        errors += [
            np.abs(gap).sum(),
            np.linalg.norm(gap, axis=1).sum(),
            (gap**2).sum(),
            (h * (truth - logs)).sum(),
        ]
    return p, y, (errors / n).tolist()


def _log_softmax(z: np.ndarray) -> np.ndarray:
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def measure(name: str) -> None:
    """Measure one case and print it as JSON."""
    truth = None
    if name == THOUSAND:
        p, y, truth = image_like(50_000, 1000)
    else:
        p, y = subset(name, *vectors(data_folder() / f"{name}.npz"), 10_000)
    unit = cpu_seconds(lambda: np.sort(p[:2000], axis=1), 3) * len(p) / 2000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(1 if name == THOUSAND else 3):
        start = time.process_time()
        found = cal.estimators.variational_errors(cal.Multiclass(y, p), norms=NORMS)
        times.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = {"n": len(p), "classes": p.shape[1], "seconds": min(times), "unit": unit, "before": before, "peak": peak}
    print(json.dumps({**result, "found": [float(value) for value in found], "truth": truth}))


def main() -> None:
    lines = [
        "The whole call for L1, L2, squared and KL, made from arrays: least CPU time of three (of one for 1,000 "
        "classes), one thread; the unit is one sort of every row of the same matrix. Memory is the peak of the "
        "process, with its input. The bars: 0.7 s, 3 s and 40 s for 10, 100 and 1,000 classes; 3 GB.",
        "",
        "| predictions | classes | n | CPU s | units | MB before | MB at most | L1 | L2 | squared | KL |",
        "|---" * 11 + "|",
    ]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    for name in (*REAL, THOUSAND):
        command = [sys.executable, "-m", "benchmarks.variational_many", name]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        row = json.loads(done.stdout.strip().splitlines()[-1])
        cells = [f"{value:.4f}" for value in row["found"]]
        if row["truth"] is not None:
            cells = [f"{value:.4f} of {true:.4f}" for value, true in zip(row["found"], row["truth"], strict=True)]
        lines.append(
            f"| {name} | {row['classes']} | {row['n']} | {row['seconds']:.2f} | {row['seconds'] / row['unit']:.0f} | "
            f"{row['before'] / 1024:.0f} | {row['peak'] / 1024:.0f} | {' | '.join(cells)} |"
        )
        print(lines[-1], flush=True)
    command = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.variational_many"
    write_results("variational_many", "Variational estimator with many classes", command, lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        main()
