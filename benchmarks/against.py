"""Speed of this tree against another commit, measured in turn in one run: python -m benchmarks.against COMMIT

Writes benchmarks/results/against.md. Each call runs in a process of its own, three times per commit in turn; the ratio
is that of the smallest processor times.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
ROUNDS = 3
#: What each process prepares, and the calls that are timed, with the times that each is repeated.
SETUP = """
import sys, time
import numpy as np
import calibrant as cal
rng = np.random.default_rng(1)
n = int(sys.argv[1])
p = rng.random(n)
y = (rng.random(n) < p**1.2).astype(np.int8)
files = sys.argv[2]
"""
CALLS = {
    "ece, 1e7 rows": (10**7, 4, "cal.ece(cal.Binary(y, p))"),
    "interval(ece), 1e4 rows": (10**4, 12, "cal.interval(cal.ece, cal.Binary(y, p))"),
    "report, 1e4 rows": (10**4, 5, "str(cal.report(cal.Binary(y, p)))"),
    "bin_table of Parquet, 1e7 rows": (10, 3, "cal.scale.bin_table(f'{files}/rows.parquet', y_true='y', y_prob='p')"),
    "bin_table of CSV, 2e6 rows": (10, 3, "cal.scale.bin_table(f'{files}/rows.csv', y_true='y', y_prob='p')"),
    "bin_table of quoted CSV, 2e6 rows": (10, 3, "cal.scale.bin_table(f'{files}/q.csv', y_true='y', y_prob='p')"),
}
TIMED = """
times = []
for _ in range({repeats} + 1):
    begin = time.process_time()
    {call}
    times.append(time.process_time() - begin)
print(min(times[1:]))
"""


def write_files(folder: Path) -> None:
    """The rows that are read: 1e7 as Parquet, 2e6 as CSV, also with a quoted column."""
    import pandas as pd

    rng = np.random.default_rng(0)
    p = rng.random(10**7)
    frame = pd.DataFrame({"y": (rng.random(10**7) < p).astype(np.int8), "p": p, "g": rng.integers(0, 9, 10**7)})
    frame.to_parquet(folder / "rows.parquet")
    few = frame[: 2 * 10**6]
    few.to_csv(folder / "rows.csv", index=False)
    few.assign(g='"' + few["g"].astype(str) + '"').to_csv(folder / "q.csv", index=False, quoting=3)


def seconds(source: Path, name: str, files: Path) -> float:
    """The smallest processor time of a call with the package in `source`."""
    n, repeats, call = CALLS[name]
    code = SETUP + TIMED.format(repeats=repeats, call=call)
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(n), str(files)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main(commit: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run(["git", "worktree", "add", "-q", "--detach", place / "other", commit], cwd=ROOT, check=True)
        try:
            write_files(place)
            rows = []
            for name in CALLS:
                pairs = [
                    [seconds(source, name, place) for source in (place / "other" / "src", ROOT / "src")]
                    for _ in range(ROUNDS)
                ]
                before, after = (min(times) for times in zip(*pairs, strict=True))
                rows.append(f"| {name} | {before:.3f} | {after:.3f} | {after / before:.2f} |")
                print(rows[-1], flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", place / "other"], cwd=ROOT, check=True)
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [
        "# Against another commit",
        "",
        f"`python -m benchmarks.against {commit}`, {datetime.date.today()}, commit {head.stdout.strip()}, Python "
        f"{sys.version.split()[0]}, NumPy {np.__version__}; processor seconds, the smallest of {ROUNDS} rounds.",
        "",
        "| call | before | now | ratio |",
        "|---|---|---|---|",
        *rows,
    ]
    (ROOT / "benchmarks/results/against.md").write_text("\n".join(lines) + "\n", encoding="utf8")


if __name__ == "__main__":
    main(sys.argv[1])
