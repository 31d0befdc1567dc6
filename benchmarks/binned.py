"""Binned estimators against the cost of reading and sorting the scores, and against other packages, in one run."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import sklearn
from sklearn.calibration import calibration_curve

import calibrant as cal
from benchmarks.measuring import cpu_seconds, run_peer, write_results

LARGE, MIDDLE = 10**7, 10**6

PEER = """
import json, sys, time
import numpy as np
rng = np.random.default_rng(0)
p = rng.random({n}); y = (rng.random({n}) < p).astype(np.int64)
base = min((lambda s: (p.sum(), y.sum(), time.process_time() - s)[2])(time.process_time()) for _ in range(5))
{setup}
times = []
for _ in range(2):
    start = time.process_time(); value = {call}; times.append(time.process_time() - start)
print(json.dumps(dict(ratio=min(times) / base, value=float(value), version=version)))
"""

PEERS = {
    "torchmetrics": (
        "import torch, torchmetrics; from torchmetrics.functional.classification import binary_calibration_error\n"
        "torch.set_num_threads(1); version = torchmetrics.__version__\n"
        "tp, ty = torch.from_numpy(p), torch.from_numpy(y)",
        "binary_calibration_error(tp, ty, n_bins=15)",
    ),
    "netcal": (
        "from importlib.metadata import version as find; from netcal.metrics import ECE\nversion = find('netcal')",
        "ECE(15).measure(p, y)",
    ),
}


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p).astype(np.int64), p


def equal_width_lines() -> list[str]:
    y, p = rows(LARGE)
    read = cpu_seconds(lambda: (p.sum(), y.sum()))
    ours = cpu_seconds(lambda: cal.ece(y, p, bins=cal.EqualWidth(15))) / read
    tracemalloc.start()
    cal.ece(y, p, bins=cal.EqualWidth(15))
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    value = float(cal.ece(y, p, bins=cal.EqualWidth(15)))
    curve = cpu_seconds(lambda: calibration_curve(y, p, n_bins=15), 2) / read
    lines = [
        f"ECE, 15 equal-width bins, n = {LARGE:.0e}; times as multiples of `p.sum() + y.sum()` (bar: at most 9).",
        "",
        "| package | time | slower than Calibrant | value |",
        "|---|---|---|---|",
        f"| Calibrant (extra memory {memory:.0f} MB, bar 100) | {ours:.1f} | | {value:.6f} |",
        f"| scikit-learn {sklearn.__version__} `calibration_curve` (bar 3 x) "
        f"| {curve:.1f} | {curve / ours:.1f} x | curve only |",
    ]
    for name, (setup, call) in PEERS.items():
        peer = run_peer(PEER.format(n=LARGE, setup=setup, call=call))
        bar = "10" if name == "netcal" else "3"
        if peer is None:
            lines.append(f"| {name} | not installed here | | |")
        else:
            ratio = float(peer["ratio"])
            label = f"{name} {peer['version']} (bar {bar} x)"
            lines.append(f"| {label} | {ratio:.1f} | {ratio / ours:.1f} x | {float(peer['value']):.6f} |")
    return lines


def sorting_lines() -> list[str]:
    y, p = rows(LARGE)
    ratio = cpu_seconds(lambda: cal.ece(y, p), 3) / cpu_seconds(lambda: np.sort(p), 3)
    lines = [
        "",
        "Times as multiples of one `np.sort` of the scores.",
        "",
        "| estimator | n | multiple | bar |",
        "|---|---|---|---|",
        f"| `ece`, 15 bins of equal mass | {LARGE:.0e} | {ratio:.2f} | 2 |",
    ]
    y, p = y[:MIDDLE].copy(), p[:MIDDLE].copy()
    data = cal.Binary(y, p)
    sort = cpu_seconds(lambda: np.sort(p), 15)
    cases = {
        "`sweep_ece`": (lambda: cal.sweep_ece(y, p), "2.5"),
        "`debiased_ece`": (lambda: cal.debiased_ece(y, p, norm=2), "2.5"),
        "`decompose`, Brier": (lambda: cal.decompose(data), "5"),
        "`ks_error`": (lambda: cal.ks_error(y, p), ""),
    }
    for name, (action, bar) in cases.items():
        lines.append(f"| {name} | {MIDDLE:.0e} | {cpu_seconds(action, 9) / sort:.2f} | {bar} |")
    return lines


def import_lines() -> list[str]:
    def cost(statement: str) -> float:
        script = f"import time; s = time.process_time(); {statement}; print(time.process_time() - s)"
        runs = [
            subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(7)
        ]
        return min(float(run.stdout) for run in runs)

    ratio = cost("import calibrant") / cost("import numpy")
    return ["", f"`import calibrant` costs {ratio:.2f} x `import numpy` (bar: at most 1.3)."]


if __name__ == "__main__":
    write_results(
        "binned",
        "Binned estimators",
        "python -m benchmarks.binned",
        [*equal_width_lines(), *sorting_lines(), *import_lines()],
        calibrant=cal.__version__,
    )
