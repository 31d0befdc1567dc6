"""Structured matrix and vector scaling against probmetrics and a plain L-BFGS: time and objective, in one run.

Run with one thread: `OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.matrix_scaling`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import scipy
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from benchmarks.measuring import ROOT, cpu_seconds, run_peer, write_results
from calibrant.recalibrate import StructuredMatrixScaling, StructuredVectorScaling
from calibrant.recalibrate.logistic import Temperature

PEER = """
import json, sys, time, warnings
import numpy as np, torch
from importlib.metadata import version
from probmetrics.calibrators import get_calibrator
warnings.simplefilter("ignore"); torch.set_num_threads(1)
with np.load(sys.argv[1]) as data: p, y = data["p"], data["y"]
name, repeats = sys.argv[2], int(sys.argv[3])
times = []
for _ in range(repeats):
    peer = get_calibrator(name); start = time.process_time(); peer.fit(p, y); times.append(time.process_time() - start)
n, k = p.shape
z = np.log(np.maximum(peer.ts_.predict_proba(p).astype(np.float64), np.finfo(np.float32).tiny))
q = peer.predict_proba(p).astype(np.float64)
if name == "sms":
    matrix, b = peer.W_[:, :k].astype(np.float64), peer.W_[:, k].astype(np.float64)
    logits = z @ matrix.T + b
    delta = matrix - np.eye(k); off = delta - np.diag(np.diag(delta))
    penalty = (k * b @ b + k * (np.diag(delta) ** 2).sum() + k * (k - 1) * (off ** 2).sum()) / n
    logits -= logits.max(axis=1, keepdims=True)
    loss = (np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(n), y]).mean()
    objective = loss + penalty
else:
    objective = None
print(json.dumps(dict(seconds=min(times), objective=objective, loss=float(-np.log(q[np.arange(n), y]).mean()),
                      version=version("probmetrics"))))
"""


def simulated(n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident logits; the first class is confused with the second."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, classes)) * 3
    truth = 0.5 * logits
    truth[:, 0] += 0.3 * logits[:, 1] + 0.3
    return logits, (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)


def image_like(n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident logits of points near one of many centres in 24 dimensions, with an error per class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes, 24))
    logits = (centres[rng.integers(0, classes, n)] + 1.1 * rng.normal(size=(n, 24))) @ centres.T * 0.8
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return 1.7 * logits + 0.5 * rng.normal(size=classes), labels


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Simulated scores, and real ones where they are at hand."""
    found = {f"simulated, K = {classes}": simulated(10_000, classes) for classes in (10, 100)}
    found["simulated, K = 1000, n = 5,000"] = simulated(5000, 1000)
    found["image-like, K = 1000, n = 5,000"] = image_like(5000, 1000)
    candidates = [os.environ.get("CALIBRANT_SHARED_DATA", ""), ROOT / "../shared/data", ROOT / "../../shared/data"]
    folder = next((Path(place) for place in candidates if str(place) and Path(place).is_dir()), None)
    for name in ("cy_cifar10_resnet20", "cy_cifar10_vgg16_bn", "cy_cifar100_resnet20"):
        if folder is not None:
            with np.load(folder / "classification" / f"{name}.npz") as data:
                logits = data["logits"].astype(np.float64)
                found[f"{name}, K = {logits.shape[1]}"] = logits, data["labels"].astype(np.intp)
    return found


def rival_objective(p: np.ndarray, y: np.ndarray) -> float:
    """The objective of structured matrix scaling, as low as L-BFGS brings it, in ten lines of their own."""
    n, k = p.shape
    z = np.log(Temperature(laplace=1).fit(p, y).predict_proba(p))
    cost = np.where(np.eye(k, dtype=bool), k / n, k * (k - 1) / n)

    def evaluated(theta: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = theta[: k * k].reshape(k, k), theta[k * k :]
        logs = log_softmax(z + z @ w.T + b, axis=1)
        residual = np.exp(logs)
        residual[np.arange(n), y] -= 1
        value = -logs[np.arange(n), y].mean() + (cost * w**2).sum() + k / n * b @ b
        return value, np.concatenate(
            [(residual.T @ z / n + 2 * cost * w).ravel(), residual.mean(axis=0) + 2 * k / n * b]
        )

    options = {"maxiter": 3000 if k <= 10 else 300, "maxfun": 5000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-9}
    return float(minimize(evaluated, np.zeros(k * k + k), jac=True, method="L-BFGS-B", options=options).fun)


def measured(name: str, logits: np.ndarray, y: np.ndarray) -> tuple[list[str], str | None]:
    """Lines of the table for one case, and the version of the peer."""
    p = softmax(logits, axis=1)
    repeats = 5 if p.shape[1] <= 10 else 2 if p.shape[1] <= 100 else 1
    lines, version = [], None
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "case.npz", p=p, y=y)
        for label, scaling, peer_name in (
            ("SMS", StructuredMatrixScaling, "sms"),
            ("SVS", StructuredVectorScaling, "svs"),
        ):
            seconds = cpu_seconds(lambda scaling=scaling: scaling().fit(p, y), repeats)
            ours = scaling().fit(p, y)
            peer = run_peer(PEER, str(Path(folder) / "case.npz"), peer_name, str(repeats))
            known = label == "SMS" and p.shape[1] <= 100  # beyond, L-BFGS to the last digit takes an hour
            rival = f"{ours.objective_ - rival_objective(p, y):+.1e}" if known else ""
            cells = ["peer absent", "", ""]
            if peer is not None:
                version = str(peer["version"])
                above = "" if peer["objective"] is None else f"{peer['objective'] - ours.objective_:+.1e}"
                cells = [f"{peer['seconds']:.3f}", f"{peer['seconds'] / seconds:.1f}", above]
            lines.append(f"| {label}, {name} | {seconds:.4f} | {' | '.join(cells)} | {rival} |")
    return lines, version


def main() -> None:
    lines = [
        "n = 10,000 rows unless said otherwise; the whole fit, temperature scaling included; least CPU time of several "
        "fits, one thread.",
        "The bar: at K = 10 at least 3 times as fast as probmetrics, with 100 and 1,000 classes at least as fast, "
        "at an equal or lower objective.",
        "",
        "| map and scores | CPU s | probmetrics CPU s | times as fast | its objective minus ours "
        "| our objective minus that of L-BFGS |",
        "|-|-|-|-|-|-|",
    ]
    versions = {"SciPy": scipy.__version__}
    for name, (logits, y) in cases().items():
        more, version = measured(name, logits, y)
        lines += more
        if version is not None:
            versions["probmetrics"] = version
    command = "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.matrix_scaling"
    write_results("matrix_scaling", "Structured matrix and vector scaling", command, lines, **versions)


if __name__ == "__main__":
    main()
