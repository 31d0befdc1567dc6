"""The default interval, test and report at 1e4 rows against those of an earlier source tree, in one run.

python -m benchmarks.before path/to/earlier/src
python -m benchmarks.before path/to/earlier/src --multiclass    # the variational error of multiclass data instead
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import write_results
from benchmarks.variational_cases import multiclass_cases

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


MULTICLASS_ROWS = 1000
MULTICLASS_CHILD = """
import json, sys, time
import numpy as np
import calibrant as cal

found, norms = {}, [1, 2, "squared", "kl"]
with np.load(sys.argv[1]) as cases:
    for name in [key[2:] for key in cases if key.startswith("p ")]:
        data, times = cal.Multiclass(cases["y " + name], cases["p " + name]), []
        for _ in range(4):
            start = time.process_time()
            cal.estimators.variational_errors(data, norms=norms)
            times.append(time.process_time() - start)
        found[name] = min(times)
print(json.dumps(found))
"""


def asked(source: str, code: str, question: str) -> dict[str, Any]:
    """What this code prints in a process of its own, with the package of this source tree."""
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, question]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def multiclass(before: str, now: str) -> None:
    """The variational error in four norms on real predictions of 3 to 20 classes."""
    runs, cases = 3, list(multiclass_cases(MULTICLASS_ROWS, MULTICLASS_ROWS))
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/cases.npz"
        np.savez(file, **{f"{kind} {name}": part for name, p, y in cases for kind, part in (("p", p), ("y", y))})
        every = [asked(source, MULTICLASS_CHILD, file) for source in (before, now) * runs]
    old, new = ({name: 1000 * min(one[name] for one in every[k::2]) for name in every[k]} for k in (0, 1))
    ratios = {name: new[name] / old[name] for name in old}
    classes = {name: p.shape[1] for name, p, _ in cases}
    lines = [
        f"Processor time of `variational_errors` in L1, L2, squared and KL, {MULTICLASS_ROWS:,} rows each: "
        f"milliseconds before (one division into folds) -> now (three), the least of 4 calls in {runs} processes in "
        "turn. The bar is a ratio of 3 in every case.",
        "",
        "| predictions | classes | ms | ratio |",
        "|---|---|---|---|",
        *(
            f"| {name} | {classes[name]} | {old[name]:.0f} -> {new[name]:.0f} | {ratios[name]:.2f} |"
            for name in sorted(ratios, key=lambda name: -ratios[name])
        ),
        f"| all together | | {sum(old.values()):.0f} -> {sum(new.values()):.0f} "
        f"| {sum(new.values()) / sum(old.values()):.2f} |",
    ]
    title = "The variational error of multiclass data against an earlier source tree"
    command = "python -m benchmarks.before EARLIER/src --multiclass` with EARLIER at `dc701c8"
    write_results("before_multiclass", title, command, lines)


def main() -> None:
    before, now = sys.argv[1], str(Path(__file__).parents[1] / "src")
    if "--multiclass" in sys.argv:
        multiclass(before, now)
        return
    samples, runs = 8, 2
    question = json.dumps([WORLDS, CALLS, ROWS, samples, 1])
    every = [asked(source, CHILD, question) for source in (before, now) * runs]  # a busy minute meets both
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
