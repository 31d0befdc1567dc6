"""The default interval, test and report at 1e4 rows against those of an earlier source tree, in one run.

python -m benchmarks.before path/to/earlier/src
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.measuring import write_results

ROWS = 10_000
#: Scores and true probabilities of a sample named p and c.
WORLDS = {
    "uniform, calibrated": "p = rng.random(n); c = p",
    "uniform, power 1.5": "p = rng.random(n); c = p**1.5",
    "uniform, 0.6 points too high": "p = rng.random(n); c = np.clip(p - 0.006, 0, 1)",
    "uniform, slope 0.9": "p = rng.random(n); c = 1 / (1 + (1 / p - 1) ** 0.9)",
    "uniform, 6 faint waves": "p = rng.random(n); c = p + 0.16 * p * (1 - p) * np.sin(12 * np.pi * p)",
    "Beta(1.1, 0.1), power 1.3": "p = rng.beta(1.1, 0.1, n); c = p**1.3",
    "rare, calibrated": "p = 1 / (1 + np.exp(5 - rng.normal(size=n))); c = p",
    "rare, twice too high": "p = 1 / (1 + np.exp(5 - rng.normal(size=n))); c = p / 2",
    "two modes, 3 points too high": "p = np.where(rng.random(n) < 0.5, 0.03, 0.9) + 0.01 * rng.random(n); c = p - 0.03",
    "two digits, zigzag": "p = np.round(rng.beta(1, 2, n), 2); c = np.clip(p + 0.04 * (-1) ** np.round(100 * p), 0, 1)",
    "wrong in the top 2 %": "p = rng.random(n); c = np.where(p > 0.98, 0.8, p)",
}
CALLS = {
    "interval(ece)": "cal.interval(cal.ece, data)",
    "calibration_test": "cal.calibration_test(data)",
    "report": "cal.report(data)",
}
CHILD = """
import json, sys, time, warnings
import numpy as np
import calibrant as cal

warnings.simplefilter("ignore")
worlds, calls, n, samples, repeats = json.loads(sys.argv[1])
found = {}
for world, make in worlds.items():
    for k in range(samples):
        rng = np.random.default_rng([n, k, *world.encode()])
        exec(make)
        y = rng.random(n) < c
        for name, call in calls.items():
            data, times = cal.Binary(y, p), []
            if len(found) < len(calls):  # the first time, it imports
                eval(call)
            for _ in range(repeats):
                data = cal.Binary(y, p)
                start = time.process_time()
                eval(call)
                times.append(time.process_time() - start)
            found.setdefault(f"{name}, {world}", []).append(min(times))
print(json.dumps(found))
"""


def times(source: str, samples: int, repeats: int) -> dict[str, list[float]]:
    """Processor seconds of each call and sample, the least of some runs, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    asked = json.dumps([WORLDS, CALLS, ROWS, samples, repeats])
    command = [sys.executable, "-c", CHILD, asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def main() -> None:
    before, now = sys.argv[1], str(Path(__file__).parents[1] / "src")
    samples, runs = 2, 2
    every: list[dict[str, list[float]]] = []
    for source in (before, now) * runs:  # in turn, so that a busy minute meets both
        every.append(times(source, samples, 1))
    least = [{name: np.min([one[name] for one in every[k::2]], axis=0) for name in every[k]} for k in (0, 1)]
    lines = [
        f"Processor time at {ROWS:,} rows: milliseconds before -> now, and their ratio; means of {samples} samples, of "
        f"each the least of {runs} runs in turn. The bars are ratios of 1.5 for `interval(ece)`, 1.2 for `report`.",
        "",
        "| world | " + " | ".join(f"`{call}` | ratio" for call in CALLS) + " |",
        "|---" * (1 + 2 * len(CALLS)) + "|",
    ]
    ratios = []
    for world in WORLDS:
        cells, row = [], []
        for call in CALLS:
            old, new = (1000 * float(found[f"{call}, {world}"].mean()) for found in least)
            cells += [f"{old:.1f} -> {new:.1f}", f"{new / old:.2f}"]
            row.append((old, new))
        ratios.append(row)
        lines.append(f"| {world} | " + " | ".join(cells) + " |")
    total = np.array(ratios)
    mean = (total[:, :, 1] / total[:, :, 0]).mean(axis=0)
    whole = total.sum(axis=0)
    summed = [f"{whole[k, 0]:.1f} -> {whole[k, 1]:.1f} | {whole[k, 1] / whole[k, 0]:.2f}" for k in range(len(CALLS))]
    lines += [
        f"| all together | {' | '.join(summed)} |",
        "",
        "Mean of the ratios: " + ", ".join(f"`{c}` {r:.2f}" for c, r in zip(CALLS, mean, strict=True)) + ".",
    ]
    write_results("before", "Against an earlier source tree", "python -m benchmarks.before EARLIER/src", lines)


if __name__ == "__main__":
    main()
